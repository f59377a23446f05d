"""The episodes there could be, as a cube: each of its points is a scenario, each axis a number of one.

Params of a belief, where an episode begins, what it is asked for and what disturbs it are all axes alike. A number
that stays is no axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief, Box
from simops.core.belief import Joint as Beside
from simops.core.errors import SignalError, nearest
from simops.core.scenario import Category, Disturbance, Dropout, Latency, Payload, Push, Scenario
from simops.core.signal import Array
from simops.core.task import Task
from simops.spec.around import Around, Dropouts, Extent, Latencies, Payloads, Pushes
from simops.spec.ranges import Range

VISUAL = frozenset({"texture", "light", "camera_pan", "camera_tilt", "camera_roll"})
"""What only cameras see."""
REALM = "falsify"
"""Namespace of the seeds: nothing that trains or judges shares one."""
_DRAWS = 4096

Numbers = Mapping[str, float]
Made = Callable[[Numbers], Disturbance | None]


@final
@dataclass(frozen=True)
class Axis:
    """One number that may be anything from `low` to `high`."""

    name: str
    low: float
    high: float
    unit: str = ""
    whole: bool = False
    """Only whole numbers, both ends included."""

    def at(self, share: float) -> float:
        """The number this far along, 0 to 1."""
        if self.whole:
            return float(min(math.floor(self.low + (self.high - self.low + 1) * share), self.high))
        return min(max(self.low + (self.high - self.low) * share, self.low), self.high)

    def shares(self, value: Array) -> Array:
        """How far along numbers lie; outside of 0 to 1 where they are outside."""
        if self.whole:
            return (value - self.low + 0.5) / (self.high - self.low + 1)
        return (value - self.low) / (self.high - self.low)


@final
@dataclass(frozen=True)
class _Kind:
    """One disturbance: its axes, the numbers that stay, and how it is made of both."""

    axes: tuple[Axis, ...]
    still: Numbers
    make: Made


@final
@dataclass(frozen=True)
class Space:
    """What may be, of one task."""

    task: Task
    belief: Belief
    around: Around
    seed: int = 0
    same_seed: bool = False

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Every number that may vary; raises if none may."""
        begun = (axis for name, ends in self.around.initial.items() for axis in _initial(self.task, name, ends))
        found = (*self._believed, *(axis for axis in begun if axis.high > axis.low))
        found += tuple(axis for kind in self._kinds for axis in kind.axes)
        if not found:
            raise SignalError(f"nothing of {self.task.name} may vary", attempt="a range in `randomization` or `around`")
        return found

    def axis(self, name: str) -> int:
        """The place of an axis by name."""
        names = [axis.name for axis in self.axes]
        if name not in names:
            raise SignalError(f"no axis is called {name!r}", attempt=nearest(name, names))
        return names.index(name)

    def scenario(self, point: Sequence[float] | Array, number: int, category: Category = "adversarial") -> Scenario:
        """The scenario at a point of the cube, as episode `number`."""
        shares = np.asarray(point, float).tolist()
        numbers = {axis.name: axis.at(share) for axis, share in zip(self.axes, shares, strict=True)}
        made = (kind.make({**kind.still, **numbers}) for kind in self._kinds)
        seeds = chance.seeds(self.seed, np.array([0 if self.same_seed else number]), realm=REALM)
        return Scenario(
            name=f"{category} {number}",
            category=category,
            task=self.task.name,
            params={axis.name: numbers[axis.name] for axis in self._believed},
            initial={
                name: tuple(numbers.get(axis.name, axis.low) for axis in _initial(self.task, name, ends))
                for name, ends in self.around.initial.items()
            },
            disturbances=tuple(one for one in made if one is not None),
            seed=int(seeds[0]),
        )

    @cached_property
    def prototypes(self) -> tuple[Scenario, ...]:
        """Scenarios that name everything any other may need, to make a simulation ready for all of them."""
        return tuple(self.scenario([share] * len(self.axes), 0) for share in (0.0, 0.5, 1.0))

    @cached_property
    def _believed(self) -> tuple[Axis, ...]:
        return tuple(
            axis for axis in believed(self.belief) if axis.high > axis.low and axis.name not in self.around.fixed
        )

    @cached_property
    def _kinds(self) -> tuple[_Kind, ...]:
        """Every disturbance; the second push of a body is told from the first by its number."""
        found: list[_Kind] = []
        used: dict[str, int] = {}
        end = self.task.horizon_s

        def name(stem: str) -> str:
            used[stem] = used.get(stem, 0) + 1
            return stem if used[stem] == 1 else f"{stem}_{used[stem]}"

        around = self.around
        found += [_push(name(f"push_{one.body}"), one, end) for one in around.pushes]
        found += [_latency(name("latency"), one, end) for one in around.latencies]
        found += [_dropout(name(f"dropout_{one.signal}"), one, end) for one in around.dropouts]
        found += [_payload(name(f"payload_{one.body}"), one) for one in around.payloads]
        return tuple(found)


def believed(belief: Belief) -> tuple[Axis, ...]:
    """The range of each param that is not only seen: a box's own, of another belief what it draws."""
    if isinstance(belief, Beside):
        return tuple(axis for part in belief.parts for axis in believed(part))
    if isinstance(belief, Box):
        lows, highs = belief.low, belief.high
    else:
        drawn = belief.sample(chance.seeds(0, np.arange(_DRAWS), realm=REALM)).values
        lows, highs = tuple(drawn.min(axis=0).tolist()), tuple(drawn.max(axis=0).tolist())
    return tuple(
        Axis(p.name, low, high - p.integer * (high > low), p.unit, p.integer)
        for p, low, high in zip(belief.params, lows, highs, strict=True)
        if not {change.field for change in p.changes} & VISUAL
    )


def _initial(task: Task, name: str, extents: Sequence[Extent]) -> tuple[Axis, ...]:
    signal = task.state_schema[name]
    units = [part.strip() for part in signal.unit.split(",")]
    units = units if len(units) == signal.size else [signal.unit] * signal.size
    return tuple(
        Axis(scalar, *_ends(extent), unit) for scalar, extent, unit in zip(signal.scalars, extents, units, strict=True)
    )


def _ends(extent: Extent) -> tuple[float, float]:
    return (extent.low, extent.high) if isinstance(extent, Range) else (float(extent), float(extent))


def _kind(name: str, extents: Mapping[str, tuple[Extent, str]], make: Made, whole: Sequence[str] = ()) -> _Kind:
    """The axes among some extents, and the numbers that stay."""
    every = [Axis(f"{name}_{key}", *_ends(ends), unit, key in whole) for key, (ends, unit) in extents.items()]
    still = {axis.name: axis.low for axis in every if axis.high == axis.low}
    return _Kind(tuple(axis for axis in every if axis.high > axis.low), still, make)


def _push(name: str, one: Pushes, end_s: float) -> _Kind:
    def make(n: Numbers) -> Push | None:
        force, heading = n[f"{name}_force"], n[f"{name}_heading"]
        level = (force * math.cos(heading), force * math.sin(heading), 0.0)
        return Push(one.body, level, at_s=n[f"{name}_at"], for_s=n[f"{name}_for"]) if force else None

    extents = {"force": (one.force_n, "N"), "heading": (one.heading_rad, "rad"), **_when(one.at_s, one.for_s, end_s)}
    return _kind(name, extents, make)


def _latency(name: str, one: Latencies, end_s: float) -> _Kind:
    def make(n: Numbers) -> Latency | None:
        steps = int(n[f"{name}_steps"])
        return Latency(steps, n[f"{name}_at"], n[f"{name}_for"]) if steps else None

    return _kind(name, {"steps": (one.steps, ""), **_when(one.at_s, one.for_s, end_s)}, make, whole=("steps",))


def _dropout(name: str, one: Dropouts, end_s: float) -> _Kind:
    def make(n: Numbers) -> Dropout:
        return Dropout(one.signal, n[f"{name}_at"], n[f"{name}_for"], one.shows)

    return _kind(name, _when(one.at_s, one.for_s, end_s), make)


def _payload(name: str, one: Payloads) -> _Kind:
    def make(n: Numbers) -> Payload | None:
        return Payload(one.body, n[f"{name}_mass"]) if n[f"{name}_mass"] else None

    return _kind(name, {"mass": (one.mass_kg, "kg")}, make)


def _when(at_s: Extent | None, for_s: Extent, end_s: float) -> dict[str, tuple[Extent, str]]:
    return {"at": (Range(0.0, end_s) if at_s is None else at_s, "s"), "for": (for_s, "s")}
