"""Trajectories at rest: store, query, import, export."""
