"""The factory: specs become runs, and runs become datasets."""
