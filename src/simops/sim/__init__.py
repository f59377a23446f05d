"""Engines, motors, sensors and randomization, one file each."""
