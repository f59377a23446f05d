"""By how much an episode succeeded or failed: one number that a search can follow downhill.

Above 0 where the episode succeeded and below where it did not, always. A task that says how far rows are from
failing and from what is asked gives it a slope everywhere; one that does not still tells a long hold from a short
one and a late fall from an early one.
"""

from __future__ import annotations

import numpy as np

from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.trajectory import Block, Trajectory, scored

LEAST = 1e-9
"""What keeps a success above 0 and a failure below."""
BROKEN = -2.0
"""An episode whose physics came to no number."""


def margins(task: Task, block: Block) -> Array:
    """The margin of each episode, (n,)."""
    return np.array([margin(task, trajectory) for trajectory in block], float)


def margin(task: Task, trajectory: Trajectory) -> float:
    """How far an episode is from the other outcome.

    Succeeded: the least distance from failing on the way, or the share of the horizon that was left, or, where the
    episode must still be as asked at the end, how far inside it was; whichever is least. Timed out: how near it came
    to a whole hold of what is asked. Failed: how far, and the share of the horizon that it missed besides.
    """
    if trajectory.outcome == "diverged":
        return BROKEN
    columns = scored(task, trajectory)
    left = 1.0 - len(trajectory) / task.steps
    safe = _safe(task, columns)
    if trajectory.outcome == "failure":
        return max(min(float(safe[-1]), 0.0), BROKEN) - left - LEAST
    hold = max(1, round(task.success_hold_s / task.control_dt_s))
    asked = _asked(task, columns, hold)
    if trajectory.outcome == "timeout":
        near = _held(asked, hold, last=not task.ends_on_success)
        return min(max(near, -1.0), -LEAST)
    inside = left if task.ends_on_success else _held(asked, hold, last=True)
    return max(min(float(safe.min()), inside), LEAST)


def _safe(task: Task, columns: Columns) -> Array:
    """Distance of each row from failing."""
    if task.failure_margin is not None:
        return np.nan_to_num(np.asarray(task.failure_margin(columns), float), nan=-1.0)
    return np.where(task.failure(columns), -1.0, 1.0)


def _asked(task: Task, columns: Columns, hold: int) -> Array:
    """How far inside of what is asked each row is; without the task's own word, by how long it has been as asked."""
    if task.success_margin is not None:
        return np.nan_to_num(np.asarray(task.success_margin(columns), float), nan=-1.0)
    streak = np.zeros(len(columns["time_s"]))
    count = 0
    for row, inside in enumerate(np.asarray(task.success(columns), bool).tolist()):
        count = count + 1 if inside else 0
        streak[row] = count
    return np.where(streak >= hold, 1.0, streak / hold - 1.0)


def _held(asked: Array, hold: int, *, last: bool) -> float:
    """The best hold of the episode, or its last: the least of its rows."""
    hold = min(hold, len(asked))
    if last:
        return float(asked[-hold:].min())
    return float(np.lib.stride_tricks.sliding_window_view(asked, hold).min(axis=1).max())
