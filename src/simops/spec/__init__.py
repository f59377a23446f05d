"""Simulation as code: YAML or Python in, frozen objects out."""
