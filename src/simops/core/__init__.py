"""The nouns, and the loops over time: numpy only, no files, no threads."""
