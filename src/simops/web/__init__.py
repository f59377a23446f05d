"""The dashboard: reads runs and datasets, serves pages to the browser of this machine, and writes nothing."""
