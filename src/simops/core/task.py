"""A task: the scene, what is read from it, what is asked of it, and how it is scored.

Scores are pure functions of named columns. They cannot tell thousands of simulations at one
instant from one log over time, so the reward that trained a policy also reads the robot's log.
Besides the state they may use `action` (just executed), `previous_action` and `time_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np

from simops.core.belief import Belief
from simops.core.errors import SignalError
from simops.core.mirror import Mirror, require_mirror
from simops.core.params import Params
from simops.core.signal import Array, Columns, Schema, Signal


@final
@dataclass(frozen=True)
class Scene:
    """An MJCF or URDF file; every engine is built from the model it compiles to."""

    path: str
    """Where there is no actuator at all, as in a URDF, the action's labels name joints and are torques on them."""
    robot: str = ""
    """Name of the robot in it, as a spec may ask for."""


@final
@dataclass(frozen=True)
class Joint:
    """Joints of the scene, in this order."""

    names: tuple[str, ...]
    what: Literal["position", "velocity", "torque"] = "position"
    """`torque` is what the actuators put on the joints."""


@final
@dataclass(frozen=True)
class Body:
    """A body of the scene; a free one can also be put somewhere by the initial state."""

    name: str
    what: Literal["position", "quaternion", "velocity", "angular_velocity"] = "position"
    """In the world, but `angular_velocity` in the body's own frame; quaternions are w, x, y, z."""


@final
@dataclass(frozen=True)
class Site:
    """A site fixed to a body."""

    name: str
    what: Literal["position", "quaternion"] = "position"


@final
@dataclass(frozen=True)
class Sensor:
    """Sensors of the scene by name, side by side."""

    names: tuple[str, ...]


@final
@dataclass(frozen=True)
class Marker:
    """A body without physics that shows a goal; the initial state puts it somewhere."""

    name: str


@final
@dataclass(frozen=True)
class Scan:
    """Rays from a site: how far each gets, or how squarely it meets what it hits; 0 where it meets nothing."""

    site: str
    directions: tuple[tuple[float, float, float], ...]
    """In the site's frame, as `beams` gives them; the body that carries the site is seen through."""
    what: Literal["range", "incidence"] = "range"


def beams(
    *, rings: int, points: int, across_deg: tuple[float, float], up_deg: tuple[float, float] = (0.0, 0.0)
) -> tuple[tuple[float, float, float], ...]:
    """Directions of a LiDAR that turns: `points` about the vertical in turn, `rings` at each, from low to high."""
    full = abs(across_deg[1] - across_deg[0]) >= 360.0
    turns: Array = np.deg2rad(np.linspace(across_deg[0], across_deg[1], points, endpoint=not full))
    lifts: Array = np.deg2rad(np.linspace(up_deg[0], up_deg[1], rings) if rings > 1 else [sum(up_deg) / 2])
    turn, lift = np.repeat(turns, len(lifts)), np.tile(lifts, len(turns))
    rows: list[list[float]] = np.stack(
        [np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)], axis=1
    ).tolist()
    return tuple((x, y, z) for x, y, z in rows)


Source: TypeAlias = Joint | Body | Site | Sensor | Marker | Scan


@final
@dataclass(frozen=True)
class Reading:
    """One signal of the state, and where in the scene it comes from."""

    signal: Signal
    source: Source


@final
@dataclass(frozen=True)
class Draw:
    """What a task may use to begin an episode or to set its goal: never anything else."""

    params: Params
    seeds: Array
    """(n,) uint64; random numbers are pure functions of these."""
    step: Array
    """(n,) control steps since the episode began."""


@final
@dataclass(frozen=True)
class Term:
    """One named part of the reward."""

    name: str
    weight: float
    score: Callable[[Columns], Array]


def _same(columns: Columns) -> Columns:
    return columns


def _no_goal(_: Draw) -> Columns:
    return {}


@final
@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked of a robot: functions over columns, and the numbers around them."""

    name: str
    scene: Scene
    state: tuple[Reading, ...]
    """What is read from the engine at every control step."""
    action: Signal
    """What the policy writes, in physical units, with limits."""
    action_centre: tuple[float, ...] = ()
    """What a raw network output of 0 means; empty for the middle of the limits."""
    action_scale: tuple[float, ...] = ()
    """What a raw network output of 1 adds to the centre; empty for half the width of the limits."""
    observation: Schema
    """What the policy reads. A signal named as one of the state or the goal is that one."""
    observe: Callable[[Columns], Columns] = _same
    """Compute the other observation signals from state, goal, `previous_action` and `time_s`."""
    control_dt_s: float
    horizon_s: float
    belief: Belief
    initial: Callable[[Draw], Columns]
    """Columns of the state to begin with; what is left out starts as the scene has it."""
    goal_signals: Schema = field(default_factory=lambda: Schema(()))
    """What is asked for, constant or changing, and not read from the engine."""
    goal: Callable[[Draw], Columns] = _no_goal
    """The goal as a pure function of the draw, asked anew every `goal_every_s`."""
    goal_every_s: float = float("inf")
    reward: tuple[Term, ...] = ()
    failure: Callable[[Columns], Array]
    """Rows in which the episode has failed."""
    success: Callable[[Columns], Array]
    """Rows that are as asked."""
    success_hold_s: float = 0.0
    """How long rows must stay as asked."""
    failure_margin: Callable[[Columns], Array] | None = None
    """How far rows are from having failed: 1 or more is far, below 0 says that they have, and by how much."""
    success_margin: Callable[[Columns], Array] | None = None
    """How far inside of what is asked rows are: below 0 says that they are not, and -1 is far from it."""
    ends_on_success: bool = True
    """Whether an episode ends when it has succeeded, or must still be as asked at the horizon."""
    mirror: Mirror = field(default_factory=dict[str, tuple[int, ...]])
    """What swapping left and right makes of signals, if the task looks the same then; see `core.mirror`."""
    expert: str = ""
    """Name of a policy that can do this task, if there is one."""

    def __post_init__(self) -> None:
        if self.horizon_s < self.control_dt_s:
            raise SignalError(f"{self.name} lasts {self.horizon_s} s, less than one step of {self.control_dt_s} s")
        for name in ("action_centre", "action_scale"):
            given: tuple[float, ...] = getattr(self, name)
            if given and len(given) != self.action.size:
                raise SignalError(f"{self.name}: {name} has {len(given)} of {self.action.size} elements")
        require_mirror(
            self.mirror, (*self.state_schema.signals, *self.observation.signals, self.action), where=self.name
        )

    @property
    def steps(self) -> int:
        """Control steps until the horizon."""
        return round(self.horizon_s / self.control_dt_s)

    @property
    def goal_every(self) -> int:
        """Control steps between two goals; more than an episode has when the goal is constant."""
        return max(1, round(min(self.goal_every_s, self.horizon_s + self.control_dt_s) / self.control_dt_s))

    @cached_property
    def state_schema(self) -> Schema:
        """The signals read from the engine, then those of the goal."""
        return Schema(tuple(reading.signal for reading in self.state) + self.goal_signals.signals)

    @cached_property
    def sources(self) -> Mapping[str, Source]:
        """Where each state signal comes from."""
        return {reading.signal.name: reading.source for reading in self.state}
