"""What a suite of scenarios is made of, as a spec says it: how many of which kind, and what is asked of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, final

from simops.core.errors import Problem, nearest
from simops.core.task import Task
from simops.spec.bounds import Above, AtLeast, AtMost
from simops.spec.ranges import Range

MOST = 20_000
SHORT, LONG, BLINK, FEW = Range(0.05, 0.2), Range(0.1, 0.5), Range(0.02, 0.2), Range(1.0, 2.0)
Count = Annotated[int, AtLeast(0), AtMost(MOST)]
Rate = Annotated[float, Above(0.0), AtMost(1.0)]
Positive = Annotated[Range, AtLeast(0.0)]


@final
@dataclass(frozen=True, kw_only=True)
class Nominal:
    """Draws of the belief."""

    scenarios: Count = 400
    """At most so many are run."""
    rate: Rate = 0.95
    """Success rate that has to be exceeded."""


@final
@dataclass(frozen=True, kw_only=True)
class Edge:
    """Draws of the belief's corners, where every param is at an end, and of its margins, where one is."""

    scenarios: Count = 200
    rate: Rate = 0.9
    corners: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.5
    """Share of the scenarios that lie in a corner; the others lie at a margin."""


@final
@dataclass(frozen=True, kw_only=True)
class Shift:
    """Draws of the world outside what was trained in."""

    scenarios: Count = 0
    rate: Rate = 0.8
    beyond: Annotated[float, Above(0.0), AtMost(10.0)] = 0.25
    """How far outside a param may lie, as a share of its width."""


@final
@dataclass(frozen=True, kw_only=True)
class Blows:
    """Forces on bodies."""

    bodies: tuple[str, ...]
    force_n: Positive
    for_s: Positive = SHORT
    level: bool = False
    """Whether only horizontal ones."""


@final
@dataclass(frozen=True, kw_only=True)
class Delays:
    """Commands that are late for a while."""

    steps: Annotated[Range, AtLeast(1.0)] = FEW
    """Control steps; whole ones are drawn."""
    for_s: Positive = LONG


@final
@dataclass(frozen=True, kw_only=True)
class Losses:
    """Readings that fail for a while."""

    signals: tuple[str, ...]
    for_s: Positive = BLINK
    shows: Literal["last", "zero"] = "last"


@final
@dataclass(frozen=True, kw_only=True)
class Loads:
    """Mass that a body carries."""

    bodies: tuple[str, ...]
    mass_kg: Positive


@final
@dataclass(frozen=True, kw_only=True)
class Disturbed:
    """Draws of the belief, each disturbed in one of the ways that are named; by late commands if none is."""

    scenarios: Count = 0
    rate: Rate = 0.9
    push: Blows | None = None
    latency: Delays | None = None
    dropout: Losses | None = None
    payload: Loads | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Listed:
    """Scenarios out of a file, all of which are run: points that a search found, or every past failure."""

    file: Path
    """A suite, one scenario, or a folder of scenarios, as a gate or a search leaves behind."""
    rate: Rate = 1.0
    """Share of them that has to succeed."""


@final
@dataclass(frozen=True, kw_only=True)
class SuiteSpec:
    """A suite by its kinds of scenarios; every kind that has some is judged on its own."""

    nominal: Nominal = field(default_factory=Nominal)
    edge: Edge = field(default_factory=Edge)
    shift: Shift = field(default_factory=Shift)
    disturbance: Disturbed = field(default_factory=Disturbed)
    adversarial: Listed | None = None
    regression: Listed | None = None

    @property
    def rates(self) -> Mapping[str, float]:
        """What is asked of each kind."""
        kinds = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: kind.rate for name, kind in kinds.items() if kind is not None}


def suite_problems(suite: SuiteSpec, task: Task) -> Iterator[Problem]:
    """What does not fit the task; paths are relative to the suite."""
    signals = suite.disturbance.dropout.signals if suite.disturbance.dropout else ()
    for name in signals:
        if name not in task.state_schema:
            near = nearest(name, task.state_schema.names)
            yield Problem("disturbance.dropout.signals", f"{task.name} has no state or goal {name!r}", attempt=near)
    for kind in ("nominal", "edge", "shift", "disturbance"):
        asked = getattr(suite, kind)
        if asked.scenarios and asked.rate >= 1.0:
            what = "no number of draws shows a success rate to be above 1"
            yield Problem(f"{kind}.rate", what, attempt="a rate below 1, as 0.95", fault="CFG-005")
