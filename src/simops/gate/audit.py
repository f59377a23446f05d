"""What no robot could have done: looks in every episode for a simulator that was exploited.

An episode is judged by its recorded columns, which any engine and any robot has, and by what the scene's masses and
shapes say they imply; no engine is asked about itself. Each limit is far beyond what a sound simulation does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from simops.core.signal import Array, Columns
from simops.core.task import Body, Joint, Site, Task
from simops.core.trajectory import Trajectory

NUMBERLESS = "not a number"
"""Kind of a command that is none: whatever became of its episode, such a policy does not go out."""


class Suspicion(NamedTuple):
    """One thing that cannot have been."""

    kind: str
    """As `penetration`."""
    what: str
    value: float
    limit: float
    step: int
    """Control step of the worst moment."""

    def __str__(self) -> str:
        return f"{self.kind} of {self.what}: {self.value:.3g}, at most {self.limit:.3g}, worst at step {self.step}"


@final
@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far an episode may go."""

    speed_m_s: float = 20.0
    """Of any body whose position is recorded, from one control step to the next."""
    speed_rad_s: float = 100.0
    """Of any joint, as recorded and from one control step to the next."""
    beyond_rad: float = 0.1
    """How far a joint may be outside the limits that its signal names; metres for one that slides."""
    apart: float = 3.0
    """Times the recorded speed that a position may move."""
    penetration_m: float = 0.02
    """How deep two bodies may be in each other."""
    contact_n: float = 2e4
    """Force of a contact."""
    gained: float = 0.1
    """Energy that may come from nowhere, as a share of the most that was there."""
    gained_j: float = 2.0
    """Energy that may come from nowhere in any case."""


def audit(task: Task, trajectory: Trajectory, told: Columns, limits: Limits) -> tuple[Suspicion, ...]:
    """Everything about an episode that cannot have been, by its columns and by what they imply of the physics.

    Args:
        task: What the episode was about.
        trajectory: As it was recorded.
        told: A row a control step of any of `energy_j`, `work_j` (the most that motors could have done since the
            start), `penetration_m` and `outer_n` (force from outside on a free body).
        limits: How far it may go.
    """
    return (*recorded(task, trajectory, limits), *implied(told, limits))


def recorded(task: Task, trajectory: Trajectory, limits: Limits) -> tuple[Suspicion, ...]:
    """What the columns of an episode alone say: speeds, leaps, joints beyond their limits."""
    found: list[Suspicion] = []
    speeds = {
        source.names: name
        for name, source in task.sources.items()
        if isinstance(source, Joint) and source.what == "velocity"
    }
    asked = np.isfinite(trajectory.columns["action"][:-1].reshape(len(trajectory), -1)).all(axis=1)
    if not asked.all():
        found.append(Suspicion(NUMBERLESS, "the command", 1.0, 0.0, int(np.argmin(asked))))
    for name, source in task.sources.items():
        rows = trajectory.columns[name].astype(float).reshape(len(trajectory) + 1, -1)
        rows = rows[np.isfinite(rows).all(axis=1)]
        if len(rows) < 2:
            continue
        if isinstance(source, Joint) and source.what == "position":
            found += _joint(task, name, rows, limits)
            if source.names in speeds:
                said = trajectory.columns[speeds[source.names]].astype(float).reshape(len(trajectory) + 1, -1)
                found += _leaps(task, name, rows, said[: len(rows)], limits)
        elif isinstance(source, Joint) and source.what == "velocity":
            found += _most("speed", name, np.abs(rows).max(axis=1), limits.speed_rad_s)
        elif isinstance(source, Body | Site) and source.what == "position":
            speed = np.linalg.norm(np.diff(rows, axis=0), axis=1) / task.control_dt_s
            found += _most("teleport", name, speed, limits.speed_m_s)
    return tuple(found)


def implied(told: Columns, limits: Limits) -> tuple[Suspicion, ...]:
    """What the physics behind the columns says: bodies in one another, forces, energy that nothing put in."""
    found: list[Suspicion] = []
    if "penetration_m" in told:
        found += _most("penetration", "two bodies", told["penetration_m"], limits.penetration_m)
    if "outer_n" in told:
        found += _most("contact force", "a free body", told["outer_n"], limits.contact_n)
    if {"energy_j", "work_j"} <= set(told):
        there = np.abs(told["energy_j"] - told["energy_j"].min()).max()
        gained = told["energy_j"] - told["energy_j"][0] - told["work_j"] - limits.gained * there
        found += _most("energy gain", "the whole scene", gained, limits.gained_j)
    return tuple(found)


def _joint(task: Task, name: str, rows: Array, limits: Limits) -> list[Suspicion]:
    signal = task.state_schema[name]
    if not signal.low or not signal.high:
        return []
    outside = np.maximum(np.array(signal.low) - rows, rows - np.array(signal.high)).max(axis=1)
    return _most("joint limit", name, outside, limits.beyond_rad)


def _leaps(task: Task, name: str, rows: Array, speeds: Array, limits: Limits) -> list[Suspicion]:
    """A position that moves further than its recorded speed at both ends of a step explains."""
    moved = np.abs(np.diff(rows, axis=0))
    fastest = np.maximum(np.abs(speeds[:-1]), np.abs(speeds[1:]))
    slack = 0.02 * limits.speed_rad_s * task.control_dt_s
    excess = (moved - limits.apart * fastest * task.control_dt_s - slack).max(axis=1)
    return _most("teleport", name, excess, 0.0)


def _most(kind: str, what: str, values: Array, limit: float) -> list[Suspicion]:
    worst = int(np.argmax(values))
    return [Suspicion(kind, what, float(values[worst]), limit, worst)] if values[worst] > limit else []
