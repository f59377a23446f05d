"""Learning a simulator from recordings: what a learner gets, what it gives, and what it is judged by.

A learner is a plugin of kind `learner`, a frozen dataclass. It is shown the recordings to learn from and no others,
and hands back candidates, from the simulator as it comes to the most that was learned. Each candidate can be asked
to predict a recording it has never seen; the framework does that, judges, and keeps the last that is better than all
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, final, runtime_checkable

import numpy as np

from simops.core.belief import Belief
from simops.core.errors import SignalError
from simops.core.protocols import Engine, Sensor
from simops.core.recording import Recording
from simops.core.rig import Rig
from simops.core.signal import Array
from simops.core.simulator import Told
from simops.core.task import Task

NOMINAL, PHYSICAL, LEARNED = "nominal", "physical", "learned"
"""Rungs of a ladder: the simulator as it comes, its numbers identified, and networks or residuals beyond them."""


@final
@dataclass(frozen=True, kw_only=True)
class Material:
    """What a learner is shown."""

    task: Task
    """The task, or the rig as one."""
    rig: Rig | None = None
    """What the recorded signals are; `None` where they are named as the task's state."""
    engine: Engine
    """The simulator as it comes, its motor included."""
    recordings: tuple[Recording, ...]
    """Only those to learn from."""
    sensors: tuple[Sensor, ...] = ()
    seed: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A simulator that was learned, as plain as it can be kept."""

    name: str
    """As `nominal`, `physical`, `learned`, or another word for what was added."""
    belief: Belief
    """Over params of the task; its centre is what predictions are made with."""
    engine: Engine
    """With its motor; a learned one names its weights as `parts/FILE`."""
    sensors: tuple[Sensor, ...] = ()
    parts: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """Files that belong to it, as `motor.safetensors` or `noise.json`, by name; never code."""
    told: tuple[Told, ...] = ()
    """What the recordings said, param by param."""
    notes: tuple[str, ...] = ()
    """What could not be told, and which excitation would tell."""


@final
@dataclass(frozen=True, kw_only=True)
class Predicted:
    """A recording beside what a candidate says it should have been."""

    names: tuple[str, ...]
    """One a column, as `position_elbow`."""
    units: tuple[str, ...]
    time_s: Array
    """(n,) when each row was recorded."""
    recorded: Array
    """(n, columns)."""
    expected: Array
    """(n, columns); NaN where the simulation broke down."""
    ahead_s: Array
    """(n,) how far each row lies beyond the state that its prediction began in."""
    low: Array | None = None
    """(n, columns) ends of the interval that should hold the recorded value in nine of ten."""
    high: Array | None = None
    errors: Mapping[str, float] = field(default_factory=dict[str, float])
    """Named errors, the one to be judged by first; left out, it is the share of the motion that is not explained."""

    def __post_init__(self) -> None:
        if self.recorded.shape != self.expected.shape or self.recorded.shape != (len(self.time_s), len(self.names)):
            raise SignalError(f"predicted {self.expected.shape}, recorded {self.recorded.shape}")

    @property
    def error(self) -> float:
        """What it is judged by."""
        return next(iter(self.errors.values())) if self.errors else self.unexplained

    @property
    def unexplained(self) -> float:
        """Root mean square of error over spread, over the columns that move at all; 10 where it broke down."""
        off: Array = np.nan_to_num(self.expected - self.recorded, nan=np.inf)
        spread: Array = np.std(self.recorded, axis=0)
        moving = spread > 0
        if not moving.any() or not len(off):
            return 0.0
        share: Array = np.minimum(np.abs(off[:, moving]) / spread[moving], 10.0)
        return float(np.sqrt(np.mean(share**2)))

    @property
    def coverage(self) -> float | None:
        """Share of the recorded values inside their interval."""
        if self.low is None or self.high is None:
            return None
        inside = (self.recorded >= self.low) & (self.recorded <= self.high)
        return float(inside.mean()) if inside.size else None


@final
@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a learner is."""

    stage: str
    done: int = 0
    total: int = 0
    """0 where nobody knows."""
    figures: Mapping[str, float] = field(default_factory=dict[str, float])
    checkpoint: bytes = field(default=b"", repr=False)
    """What the rest of the learning depends on; kept, so that a run that was stopped goes on."""


Watch = Callable[[Progress], None]
Predictor = Callable[[Recording], Predicted]


@final
@dataclass(frozen=True, kw_only=True)
class Learned:
    """What came of it."""

    candidates: tuple[Candidate, ...]
    """From the simulator as it comes, called `nominal`, upwards; each is to beat every one before it."""
    notes: tuple[str, ...] = ()
    tables: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict[str, "tuple[tuple[str, ...], ...]"])
    """For the report: a heading, then rows, the first of them the names of the columns."""


@final
@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Which motion to record next."""

    names: tuple[str, ...]
    """One a joint."""
    time_s: Array
    """(n,)."""
    command: Array
    """(n, joints)."""
    gain_nats: float
    """How much the logarithm of the posterior's volume would shrink."""
    spreads: Mapping[str, tuple[float, float]]
    """Param to its spread now, and then."""


@runtime_checkable
class Proposer(Protocol):
    """A learner that can say which motion would tell most."""

    def propose(self, candidate: Candidate, material: Material, *, seconds: float) -> Proposal:
        """The next excitation, within what the robot has done before."""
        ...


class Learner(Protocol):
    """A recipe for learning a simulator: a plugin of kind `learner`, whose fields are what a spec may set."""

    def learn(self, material: Material, watch: Watch, *, checkpoint: bytes = b"") -> Learned:
        """Learn; raise `DataError` where the recordings cannot tell, saying what is missing."""
        ...

    def predicting(self, candidate: Candidate, task: Task, rig: Rig | None) -> AbstractContextManager[Predictor]:
        """Hold `candidate` open to predict recordings, those it was kept for and those of another day."""
        ...
