"""Built-in tasks and their scenes, one folder each."""
