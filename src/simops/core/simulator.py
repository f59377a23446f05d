"""A simulator as a thing with versions: a task's scene, an engine, and what is believed of the world's numbers.

It is released as a policy is. Where it was learned from recordings it says how far they could tell: what the
residual of its predictions is, and which numbers are only as good as they were before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

from simops.core.belief import Belief
from simops.core.errors import SignalError
from simops.core.protocols import Engine, Sensor
from simops.core.task import Task


@final
@dataclass(frozen=True)
class Told:
    """What recordings said of one param."""

    name: str
    nominal: float
    mean: float
    spread: float
    """Standard deviation of what is believed now."""
    before: float
    """Standard deviation of what was believed before."""
    trusted: bool
    """Whether the recordings said enough to move it; if not, it is believed as it was before."""

    @property
    def contraction(self) -> float:
        """Share of the earlier spread that is gone, 0 for nothing learned."""
        return 1.0 - self.spread / self.before if self.before > 0 else 0.0


@final
@dataclass(frozen=True, kw_only=True)
class Simulator:
    """What to train in: open `engine` for `believed`, and draw worlds from `belief`."""

    task: Task
    """With the belief it came with."""
    engine: Engine
    """Its motor, and learned parts within, included."""
    belief: Belief
    """What worlds are drawn from: over params of the task, and perhaps over fewer."""
    sensors: tuple[Sensor, ...] = ()
    task_name: str = ""
    """What a spec calls the task, as `velocity` or `./mine.py:walk`; the task's own name when left out."""
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scalar of the state to the standard deviation of what stays unexplained a window ahead."""
    told: tuple[Told, ...] = ()
    """What recordings said, param by param; empty for a simulator nobody taught."""
    notes: tuple[str, ...] = ()
    """What was not learned, and why."""

    def __post_init__(self) -> None:
        known = {param.name for param in self.task.belief.params}
        strange = [param.name for param in self.belief.params if param.name not in known]
        if strange:
            raise SignalError(f"{self.task.name} has no param {strange[0]!r}", where=self.task.name)

    @property
    def named(self) -> str:
        """What a spec calls the task."""
        return self.task_name or self.task.name

    @property
    def believed(self) -> Task:
        """The task, with worlds drawn from what is believed now."""
        return replace(self.task, belief=self.belief)

    @classmethod
    def untouched(cls, task: Task, engine: Engine, *, sensors: tuple[Sensor, ...] = ()) -> Simulator:
        """The simulator as it comes, before anything was recorded."""
        return cls(task=task, engine=engine, belief=task.belief, sensors=sensors)
