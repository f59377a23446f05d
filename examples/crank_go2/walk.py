"""The walking task in trials of five seconds: one command each, so that many fit in a minute of a robot's time."""

from dataclasses import replace

from simops.core.task import Task
from simops.tasks.velocity.task import velocity


def walk() -> Task:
    """Walk as commanded for five seconds."""
    return replace(velocity(), horizon_s=5.0)
