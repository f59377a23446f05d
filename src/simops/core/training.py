"""Training: a course in, laps of learning out, and a checkpoint that goes on from where it was taken."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, final

from simops.core.belief import Belief
from simops.core.errors import Problem, nearest
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.task import Task


@final
@dataclass(frozen=True, kw_only=True)
class Course:
    """Everything that is learned from, but for who learns."""

    task: Task
    engine: Engine
    sensors: tuple[Sensor, ...] = ()
    belief: Belief | None = None
    """The task's own when left out."""
    seed: int = 0
    """Every random number of the training follows from it."""
    begun: bytes = field(default=b"", repr=False)
    """Checkpoint of an earlier training, of any course with this contract, whose networks this one begins from."""


class Dump(NamedTuple):
    """What is kept of a copy that broke down, under a name of its own."""

    name: str
    data: bytes


class Lap(NamedTuple):
    """One round of collecting and learning."""

    number: int
    """Counted from one."""
    figures: Mapping[str, float]
    """By name: `reward`, `success`, `episode_s`, `steps_per_s`, `physics_share` and more."""
    dumps: tuple[Dump, ...]
    """Of copies that broke down in it."""


class Training(Protocol):
    """A training under way."""

    @property
    def done(self) -> int:
        """Laps behind it."""
        ...

    @property
    def laps(self) -> int:
        """Laps in all."""
        ...

    @property
    def due(self) -> bool:
        """Whether a checkpoint taken now continues with the very bytes that this training continues with."""
        ...

    @property
    def policy(self) -> Policy:
        """What has been learned so far, acting without noise."""
        ...

    def advance(self) -> Lap:
        """Collect and learn once."""
        ...

    def checkpoint(self) -> bytes:
        """Everything that the rest of the training depends on; when it is not `due`, all but where the copies are."""
        ...


class Trainer(Protocol):
    """A recipe for learning."""

    def open(self, course: Course, *, checkpoint: bytes = b"") -> AbstractContextManager[Training]:
        """Begin, or go on from a checkpoint; raises if that is damaged or of another course."""
        ...


def reweighted(task: Task, weights: Mapping[str, float]) -> Task:
    """The same task with some of its reward terms weighing otherwise."""
    terms = tuple(replace(term, weight=weights.get(term.name, term.weight)) for term in task.reward)
    return replace(task, reward=terms)


def unknown_terms(task: Task, weights: Mapping[str, float]) -> list[Problem]:
    """What is wrong with names of reward terms."""
    known = [term.name for term in task.reward]
    return [
        Problem(
            name,
            f"{task.name} has no reward term {name!r}",
            attempt=nearest(name, known) or ", ".join(known) or "leaving it out",
            fault="CFG-001",
        )
        for name in weights
        if name not in known
    ]
