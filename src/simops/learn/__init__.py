"""Policies and simulators from data and experience; the only package that knows torch."""
