"""Tasks among things that bend: foam to pick, a cable in the way, a cloth that falls."""
