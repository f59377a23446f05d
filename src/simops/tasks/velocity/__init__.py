"""A quadruped that walks as commanded."""
