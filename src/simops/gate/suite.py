"""Suites of scenarios: drawn from a task, a belief and a seed, each the same wherever it is drawn.

Their seeds come from a realm of their own, so that nothing a gate runs was ever trained on. Scenarios of a kind are
independent draws, which is what makes a success rate of that kind a number that exists.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief, Box, Joint
from simops.core.errors import DataError, SignalError
from simops.core.params import Param, Params
from simops.core.scenario import (
    CATEGORIES,
    Category,
    Disturbance,
    Dropout,
    Latency,
    Payload,
    Push,
    Scenario,
)
from simops.core.signal import Array
from simops.core.task import Task
from simops.spec.ranges import Range
from simops.spec.suite import Blows, Delays, Disturbed, Loads, Losses, SuiteSpec

REALM = "gate"
"""Namespace of every seed a gate runs; no training uses it."""
_DRAWS = 4096
_AIR = 0.05
"""Width of a margin, as a share of a param's range."""
_TRIES = 16
_TRAINED_EPISODES = 1 << 20


@final
@dataclass(frozen=True)
class Suite:
    """Scenarios of one task, kind after kind, in the order in which they count."""

    task: str
    scenarios: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        found: set[str] = set()
        for each in self.scenarios:
            if each.task != self.task:
                raise DataError(f"scenario {each.name} is of {each.task}, not of {self.task}", fault="CFG-012")
            if each.hash in found:
                raise DataError(f"scenario {each.name} ({each.hash[:16]}) is there twice", fault="GAT-005")
            found.add(each.hash)

    def __len__(self) -> int:
        return len(self.scenarios)

    @cached_property
    def by_hash(self) -> Mapping[str, Scenario]:
        """Every scenario by its hash."""
        return {each.hash: each for each in self.scenarios}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over which scenarios count for which kind, in order."""
        lines = "".join(f"{each.category} {each.hash}\n" for each in self.scenarios)
        return hashlib.sha256(lines.encode()).hexdigest()

    def of(self, category: str) -> tuple[Scenario, ...]:
        """The scenarios of one kind, in order."""
        return tuple(each for each in self.scenarios if each.category == category)

    @property
    def categories(self) -> tuple[Category, ...]:
        """The kinds that have scenarios."""
        return tuple(name for name in CATEGORIES if any(each.category == name for each in self.scenarios))


class Reach(NamedTuple):
    """Between what a belief's params lie, one number a param."""

    low: Array
    high: Array


def draw(task: Task, spec: SuiteSpec, *, seed: int, listed: Sequence[Scenario] = ()) -> Suite:
    """Draw the suite that a spec describes over the task's belief; `listed` come from elsewhere and are added."""
    made: list[Scenario] = [
        *_nominal(task, spec.nominal.scenarios, seed),
        *_edge(task, spec.edge.scenarios, spec.edge.corners, seed),
        *_shift(task, spec.shift.scenarios, spec.shift.beyond, seed),
        *_disturbance(task, spec.disturbance, seed),
    ]
    there = {each.hash for each in made}
    unique = {each.hash: each for each in listed if each.hash not in there}
    return Suite(task.name, (*made, *unique.values()))


def disjoint(suite: Suite, roots: Sequence[int]) -> None:
    """Raise if a scenario's seed is one that a training under one of these root seeds used."""
    mine = np.array([each.seed for each in suite.scenarios], np.uint64)
    for root in roots:
        for realm in ("train", "evaluation"):
            theirs = chance.seeds(root, np.arange(_TRAINED_EPISODES), realm=realm)
            if np.isin(mine, theirs).any():
                raise DataError(
                    f"a scenario has the seed of an episode that training ran under root seed {root}",
                    attempt="scenarios drawn by simops validate: their seeds are of a realm of their own",
                    fault="GAT-004",
                )


def reach(belief: Belief) -> Reach:
    """The ends of every param: of a box its own, of anything else those of nearly all draws."""
    if isinstance(belief, Box):
        return Reach(np.array(belief.low, float), np.array(belief.high, float))
    if isinstance(belief, Joint):
        parts = [reach(part) for part in belief.parts]
        return Reach(*(np.concatenate([part[i] for part in parts]) for i in range(2)))
    points = belief.sample(chance.seeds(0, np.arange(_DRAWS), realm="reach")).values
    low, high = np.quantile(points, (0.005, 0.995), axis=0)
    return Reach(low, high)


def _nominal(task: Task, n: int, seed: int) -> list[Scenario]:
    seeds, points = _drawn(task, n, seed, "nominal")
    return [_scenario(task, "nominal", i, seeds, points) for i in range(n)]


def _edge(task: Task, n: int, corners: float, seed: int) -> list[Scenario]:
    seeds, points = _drawn(task, n, seed, "edge")
    low, high = reach(task.belief)
    free = _varied(low, high)
    if free.size:
        upper = chance.uniform(seeds, "suite/side", (len(low),)) < 0.5
        ends = np.where(upper, _top(task.belief.params, low, high), low)
        corner = chance.uniform(seeds, "suite/corner") < corners
        points[np.ix_(corner, free)] = ends[np.ix_(corner, free)]
        which = free[np.minimum((chance.uniform(seeds, "suite/which") * free.size).astype(int), free.size - 1)]
        depth = _AIR * chance.uniform(seeds, "suite/depth") * (high - low)[which]
        rows = np.arange(n)
        at = np.where(upper[rows, which], ends[rows, which] - depth, ends[rows, which] + depth)
        whole = np.array([task.belief.params[int(i)].integer for i in which], bool)
        at = np.where(whole, ends[rows, which], at)
        margin = ~corner
        points[rows[margin], which[margin]] = at[margin]
    return [_scenario(task, "edge", i, seeds, points) for i in range(n)]


def _shift(task: Task, n: int, beyond: float, seed: int) -> list[Scenario]:
    """Each varied param is moved outside with even chances, one of them at least."""
    if n == 0:
        return []
    seeds, points = _drawn(task, n, seed, "shift")
    params = task.belief.params
    low, high = reach(task.belief)
    wide = [int(i) for i in _varied(low, high) if not params[int(i)].integer]
    room = {i: _outside(params[i], float(low[i]), float(high[i]), beyond) for i in wide}
    able = [i for i in wide if any(last > first for first, last in room[i])]
    if not able:
        raise SignalError(
            f"nothing of {task.name} can lie outside its belief", attempt="shift: {scenarios: 0}", fault="CFG-005"
        )
    moved = chance.uniform(seeds, "suite/moved", (len(able),)) < 0.5
    sure = np.minimum((chance.uniform(seeds, "suite/sure") * len(able)).astype(int), len(able) - 1)
    moved[np.arange(n), sure] = True
    side, how = (chance.uniform(seeds, f"suite/{what}", (len(able),)) for what in ("side", "how"))
    for row in range(n):
        for column, i in enumerate(able):
            if moved[row, column]:
                spans = [span for span in room[i] if span[1] > span[0]]
                first, last = spans[int(side[row, column] * len(spans))]
                points[row, i] = last - (last - first) * how[row, column]
    _leave(task.belief, points, able, (low + high) / 2)
    return [_scenario(task, "shift", i, seeds, points) for i in range(n)]


def _leave(belief: Belief, points: Array, able: list[int], centre: Array) -> None:
    """Move what a belief without ends still vouches for further from its centre, until it does not."""
    params = belief.params
    low, high = (np.array([getattr(param, side) for param in params]) for side in ("low", "high"))
    for _ in range(_TRIES):
        inside = np.flatnonzero(belief.inside(Params(tuple(param.name for param in params), points)))
        if inside.size == 0:
            return
        for i in able:
            further = centre[i] + 1.25 * (points[inside, i] - centre[i])
            points[inside, i] = np.clip(further, low[i], high[i])


def _disturbance(task: Task, spec: Disturbed, seed: int) -> list[Scenario]:
    n = spec.scenarios
    seeds, points = _drawn(task, n, seed, "disturbance")
    ways = [way for way in (spec.push, spec.latency, spec.dropout, spec.payload) if way is not None] or [Delays()]
    found: list[Scenario] = []
    for i in range(n):
        own = seeds[i : i + 1]
        way = ways[min(int(_u(own, "way") * len(ways)), len(ways) - 1)]
        found.append(_scenario(task, "disturbance", i, seeds, points, (_one(task, way, own),)))
    return found


def _one(task: Task, way: object, own: Array) -> Disturbance:
    """One disturbance of a kind, drawn by a scenario's seed."""
    at_s = 0.8 * task.horizon_s * _u(own, "at")
    if isinstance(way, Blows):
        size, for_s = _in(own, "force", way.force_n), _in(own, "for", way.for_s)
        around, up = 2 * math.pi * _u(own, "around"), 0.0 if way.level else 2 * _u(own, "up") - 1
        flat = math.sqrt(max(0.0, 1 - up * up))
        force = (size * flat * math.cos(around), size * flat * math.sin(around), size * up)
        return Push(_pick(own, way.bodies), force, at_s=at_s, for_s=max(for_s, task.control_dt_s))
    if isinstance(way, Losses):
        for_s = max(_in(own, "for", way.for_s), task.control_dt_s)
        return Dropout(_pick(own, way.signals), at_s=at_s, for_s=for_s, shows=way.shows)
    if isinstance(way, Loads):
        return Payload(_pick(own, way.bodies), _in(own, "mass", way.mass_kg))
    delays = way if isinstance(way, Delays) else Delays()
    low, high = math.ceil(delays.steps.low), math.floor(delays.steps.high)
    steps = low + min(int(_u(own, "steps") * (high - low + 1)), high - low)
    return Latency(max(1, steps), at_s=at_s, for_s=max(_in(own, "for", delays.for_s), task.control_dt_s))


def _drawn(task: Task, n: int, seed: int, category: Category) -> tuple[Array, Array]:
    """Seeds of a kind's episodes and a point of the belief for each, within what is physical."""
    seeds = chance.seeds(seed, np.arange(n), realm=f"{REALM}/{category}")
    return seeds, np.array(task.belief.sample(seeds).values, float).reshape(n, len(task.belief.params))


def _scenario(
    task: Task, category: Category, i: int, seeds: Array, points: Array, disturbances: tuple[Disturbance, ...] = ()
) -> Scenario:
    names = [param.name for param in task.belief.params]
    return Scenario(
        name=f"{category}-{i:04d}",
        category=category,
        task=task.name,
        params=dict(zip(names, points[i].tolist(), strict=True)),
        disturbances=disturbances,
        seed=int(seeds[i]),
    )


def _varied(low: Array, high: Array) -> Array:
    return np.flatnonzero(high > low)


def _top(params: Sequence[Param], low: Array, high: Array) -> Array:
    """The largest value of each param: of a choice the last one."""
    whole = np.array([param.integer for param in params], bool)
    return np.where(whole & (high > low), high - 1, high)


def _outside(param: Param, low: float, high: float, beyond: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The stretches below and above the belief that are physical: from the belief's end outwards."""
    width = beyond * (high - low)
    return (max(low - width, param.low), low), (high, min(high + width, param.high))


def _u(own: Array, what: str) -> float:
    return float(chance.uniform(own, f"suite/disturbance/{what}")[0])


def _in(own: Array, what: str, span: Range) -> float:
    return span.low + (span.high - span.low) * _u(own, what)


def _pick(own: Array, names: Sequence[str]) -> str:
    return names[min(int(_u(own, "name") * len(names)), len(names) - 1)]
