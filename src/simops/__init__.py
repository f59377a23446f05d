"""Turns a robot's logs into a better simulator, and lets a policy out only with a verdict."""
