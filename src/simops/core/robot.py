"""The robot's interface: what a robot offers, and whatever stands in for one: open, read, act, stop.

A robot is slow, cannot be put anywhere, and tells no more than its sensors see. It keeps time and counts its trials.
Several may stand side by side; each place is one of them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array, Columns, every_row
from simops.core.task import Task
from simops.core.trajectory import Origin


class Reading(NamedTuple):
    """What the robots say of themselves, a row each."""

    columns: Columns
    """The signals of the task's state that are no goal, as the sensors see them."""
    time_s: Array
    """(n,) since the trial began, by the robot's own clock."""
    ended: Array
    """(n,) whether the trial is over."""
    outcome: Array
    """(n,) index into OUTCOMES; has a meaning where the trial is over."""


class Robot(Protocol):
    """Robots side by side that are open."""

    @property
    def n(self) -> int:
        """How many places."""
        ...

    @property
    def trials(self) -> int:
        """Trials begun since it was opened."""
        ...

    @property
    def identity(self) -> str:
        """Which robot it is: a serial number, or a digest that tells one from another and nothing about either."""
        ...

    @property
    def origin(self) -> Origin:
        """What is learned from it is called so."""
        ...

    def ready(self, numbers: Array, goal: Columns) -> Reading:
        """Begin the trials of these numbers, one a place from the first; each is counted."""
        ...

    def act(self, action: Array, goal: Columns) -> Reading:
        """Hold an action, a row a trial that was made ready, for one control period; what is over stays as it is."""
        ...

    def stop(self, places: Array) -> None:
        """Stop these trials at once; they have failed."""
        ...


class Reality(Protocol):
    """A recipe for robots."""

    def open(self, task: Task, places: int) -> AbstractContextManager[Robot]:
        """Connect; raises unless the robot is one of this task."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class Guard:
    """What a robot may be asked for and may get to, whatever the policy thinks."""

    rate: float = float("inf")
    """Largest change of an action from one control step to the next, in widths of its limits."""
    margin: float = 0.0
    """How far beyond a signal's own limits the state may get before the trial is stopped, in widths of those."""

    def passed(self, task: Task, action: Array, before: Array | None) -> Array:
        """The action that may go out: within limits, and no further from the one before than is allowed."""
        safe = task.action.clip(np.nan_to_num(action, nan=0.0, posinf=0.0, neginf=0.0))
        if before is None or not np.isfinite(self.rate):
            return safe.astype(np.float32)
        if not task.action.low or not task.action.high:
            raise EngineError(f"{task.action.name} has no limits to count a rate in", attempt="leaving the rate out")
        most = self.rate * (np.array(task.action.high) - np.array(task.action.low)).reshape(task.action.shape)
        return np.clip(safe, before - most, before + most).astype(np.float32)

    def violated(self, task: Task, columns: Columns, action: Array) -> Array:
        """(n,) whether a trial must be stopped: an action that is no number, or a state beyond its limits."""
        found: Array = ~every_row(np.isfinite(action))
        for reading in task.state:
            signal = reading.signal
            if not signal.low or not signal.high:
                continue
            low, high = np.array(signal.low), np.array(signal.high)
            rows, slack = columns[signal.name].reshape(len(action), -1), self.margin * (high - low)
            found = found | ~every_row((rows >= low - slack) & (rows <= high + slack))
        return found
