"""One control step in the eyes of a task: what it was worth, and whether the episode ends with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.trajectory import OUTCOMES

SUCCESS, FAILURE, TIMEOUT, DIVERGED = (OUTCOMES.index(name) for name in OUTCOMES)


class Judged(NamedTuple):
    """Rows of a step, judged."""

    terms: Mapping[str, Array]
    """Each reward term, and `reward`, their weighted sum."""
    ended: Array
    outcome: Array
    """Index into OUTCOMES; has a meaning where the episode ended."""
    streak: Array
    """For how many steps the rows have been as asked."""


class Done(NamedTuple):
    """A step that was taken: rows of the state it led to, and what was done."""

    state: Array
    """Packed as the task's state schema says, with the goal that was in force."""
    action: Array
    previous: Array
    """The action before."""
    step: Array
    """Control steps taken since the episode began, this one included."""
    broken: Array
    """Whether the physics, or the policy, came to no number."""


def judge(task: Task, done: Done, streak: Array) -> Judged:
    """Score a step; a broken row is never a success, whatever its columns say."""
    columns = {
        **task.state_schema.unpack(done.state),
        "action": done.action,
        "previous_action": done.previous,
        "time_s": (done.step * task.control_dt_s).astype(np.float32),
    }
    with np.errstate(invalid="ignore", over="ignore"):
        terms = score(task, columns)
        failed, asked = task.failure(columns), task.success(columns)
    streak = np.where(asked & ~done.broken, streak + 1, 0)
    last = done.step >= task.steps
    hold = max(1, round(task.success_hold_s / task.control_dt_s))
    succeeded = (streak >= hold) & ~failed & (last | task.ends_on_success)
    outcome = np.full(len(last), TIMEOUT, np.int8)
    for rows, how in ((succeeded, SUCCESS), (failed, FAILURE), (done.broken, DIVERGED)):  # the gravest counts
        outcome[rows] = how
    return Judged(terms, done.broken | failed | succeeded | last, outcome, streak)


def score(task: Task, columns: Columns) -> Mapping[str, Array]:
    """Every reward term over rows, and their weighted sum as `reward`."""
    terms = {term.name: term.score(columns) for term in task.reward}
    total = np.zeros(len(columns["time_s"]), np.float32)
    for term in task.reward:
        total += np.float32(term.weight) * terms[term.name]
    return {"reward": total, **terms}
