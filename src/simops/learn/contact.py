"""Contact learned from tosses: first the numbers of a law, then the shape that touches, then a small network.

What is minimised is how far whole throws end up from their recordings, begun at the first row alone, and beside it
how far short stretches do that begin where the body last flew free: the first is what counts, the second is smooth.
Recorded speed is often that of the frame before; how long ago it was is learned as the rest is, and taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias, final

import numpy as np

from simops.core.params import Param
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.throwing import Missed, Thrower, Throws, missed
from simops.learn.evolve import evolve

LAW = (
    "stiffness",
    "damping",
    "grip",
    "slow",
    "slow_speed_m_s",
    "load",
    "creep_m_s",
    "rounding_m",
    "inertia",
)
"""Settings that are numbers of a law; the first rung."""
SHAPE = (*(f"corners_m_{i}" for i in range(24)), "rounding_m")
"""Where the corners truly are; the second rung."""
NETWORK = tuple(f"network_{i}" for i in range(26))
"""The weights of what the law cannot say; the third."""
LAG = Param("velocity_lag_s", 0.0, "s", -0.02, 0.02, about="how long ago the recorded velocity was true")
SPIN = Param("spin_gain", 1.0, "", 0.8, 1.25, about="true spin over the recorded one at the first row")
"""More than 1 where throws are still in the hand at their first row."""
STRETCH = 14
"""Rows of a short stretch."""
GRAVITY_M_S2 = 9.81

Watch: TypeAlias = Callable[[int, float], None]
"""Called with a generation's number and the least cost so far."""


@final
@dataclass(frozen=True, kw_only=True)
class How:
    """How a law is sought."""

    generations: int = 60
    width: float = 1.0
    """How far the search goes from where it begins; less than 1 to refine what was learned before."""
    prior: float = 0.02
    """Weight of the earlier thought, in costs a squared spread, shared among the throws."""
    way_m: float = 0.0105
    """A miss this far costs as much as one by `turn_rad`."""
    turn_rad: float = 0.244
    stretches: float = 0.5
    """Weight of the short stretches beside the whole throws."""
    lengths: float = 1.0
    """What the recording shows of a metre."""
    seed: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Law:
    """A contact that was learned."""

    values: dict[str, float]
    """Settings of the engine, and the lag of the recorded velocity."""
    cost: float
    began: float
    free: tuple[str, ...] = field(repr=False)


def learn_law(
    thrower: Thrower,
    task: Task,
    throws: Throws,
    names: Sequence[str],
    *,
    how: How | None = None,
    start: dict[str, float] | None = None,
    watch: Watch | None = None,
) -> Law:
    """Find settings `names` of the engine, and the lag if it is among them, that explain the throws best.

    Args:
        thrower: The engine, begun at its own settings.
        task: Whose body is thrown.
        throws: What was recorded.
        names: What is free.
        how: How hard to try.
        start: What was learned before, kept where it is not free.
        watch: Told of every generation.
    """
    how = how or How()
    search = _Search(thrower, task, throws, tuple(names), how, dict(start or {}))
    count = len(search.params)
    seen = [0]

    def costs(points: Array) -> Array:
        found = np.array([search.cost(point) for point in points])
        if watch is not None:
            watch(seen[0], float(found.min()))
        seen[0] += 1
        return found

    zero = np.zeros(count)
    best = evolve(costs, zero, search.low, search.high, generations=how.generations, seed=how.seed)
    return Law(values=search.values(best), cost=search.cost(best), began=search.cost(zero), free=tuple(names))


def predict(
    thrower: Thrower, task: Task, throws: Throws, values: dict[str, float], *, lengths: float = 1.0
) -> dict[str, Array]:
    """Roll every throw out from its first row, at a law; poses in the recording's own metres."""
    engine = thrower.at({name: value for name, value in values.items() if name not in {LAG.name, SPIN.name}})
    begun = {name: cells[:, 0] for name, cells in throws.columns.items()}
    seen = engine.throw(task, _begun(begun, values, lengths), throws.rows)
    return {"position": seen["position"] * lengths, "quaternion": seen["quaternion"]}


def misses(thrower: Thrower, task: Task, throws: Throws, values: dict[str, float], *, lengths: float = 1.0) -> Missed:
    """How far a law is from throws it may never have seen, each from its first row alone."""
    seen = predict(thrower, task, throws, values, lengths=lengths)
    return missed(seen["position"], seen["quaternion"], throws)


def _begun(columns: Columns, values: dict[str, float], lengths: float) -> dict[str, Array]:
    velocity, lag_s = columns["velocity"] / lengths, values.get(LAG.name, 0.0)
    return {
        **columns,
        "position": columns["position"] / lengths,
        "velocity": velocity - np.array([0.0, 0.0, GRAVITY_M_S2 * lag_s]),
        "angular_velocity": columns["angular_velocity"] * values.get(SPIN.name, 1.0),
    }


@final
class _Search:
    """The problem in spreads from the start."""

    def __init__(
        self, thrower: Thrower, task: Task, throws: Throws, names: tuple[str, ...], how: How, start: dict[str, float]
    ) -> None:
        self.thrower, self.task, self.throws, self.how, self.start = thrower, task, throws, how, start
        known = {param.name: param for param in (*thrower.settings, LAG, SPIN)}
        self.params = tuple(known[name] for name in names)
        self.middle = np.array([start.get(p.name, p.nominal) for p in self.params])
        self.logs = np.array([p.low > 0 for p in self.params])
        self.spread = how.width * np.array([0.3 if p.low > 0 else (p.high - p.low) / 20.0 for p in self.params])
        low, high = (np.array([getattr(p, side) for p in self.params]) for side in ("low", "high"))
        self.low, self.high = self._unit(low), self._unit(high)
        self.stretches = stretches(throws, STRETCH) if how.stretches > 0 else None

    def values(self, point: Array) -> dict[str, float]:
        shifted = self.spread * np.clip(point, self.low, self.high)
        found = np.where(self.logs, np.abs(self.middle) * np.exp(shifted), self.middle + shifted)
        return self.start | dict(zip([p.name for p in self.params], found.tolist(), strict=True))

    def cost(self, point: Array) -> float:
        values, how = self.values(point), self.how
        whole = self._cost(misses(self.thrower, self.task, self.throws, values, lengths=how.lengths), bend=0.0)
        short = 0.0
        if self.stretches is not None:
            flying = values | {LAG.name: 0.0, SPIN.name: 1.0}
            off = misses(self.thrower, self.task, self.stretches, flying, lengths=how.lengths)
            short = how.stretches * self._cost(off, bend=0.2)
        return whole + short + how.prior * float((point**2).sum()) / len(self.throws)

    def _cost(self, off: Missed, bend: float) -> float:
        way, turn = off.way_m / self.how.way_m, off.turn_rad / self.how.turn_rad
        return float(np.mean(np.sqrt(way**2 + bend**2)) + np.mean(np.sqrt(turn**2 + bend**2)))

    def _unit(self, side: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.maximum(side, 1e-12) / np.maximum(np.abs(self.middle), 1e-12))
        return np.where(self.logs, logs, side - self.middle) / self.spread


def fallen(throws: Throws) -> float:
    """What the recordings show of a metre, by how fast a body speeds up that nothing touches."""
    found: list[float] = []
    for i in range(len(throws)):
        one = {key: cells[i, : throws.rows[i]] for key, cells in throws.columns.items()}
        for begin, end in _flights(one, throws.dt_s):
            gained = one["velocity"][end, 2] - one["velocity"][begin, 2]
            found.append(-float(gained) / (GRAVITY_M_S2 * (end - begin) * throws.dt_s))
    return float(np.median(found)) if found else 1.0


def stretches(throws: Throws, rows: int) -> Throws | None:
    """Short throws that begin where the body has flown free for five rows and is about to strike.

    Its speed and spin there are those of the flight before, fitted, so nothing of the frame's own noise or lag is in
    them.
    """
    names: list[str] = []
    each: list[Columns] = []
    for i, name in enumerate(throws.names):
        one = {key: cells[i, : throws.rows[i]] for key, cells in throws.columns.items()}
        for begin, end in _flights(one, throws.dt_s):
            if throws.rows[i] - end >= rows:
                names.append(f"{name}+{end}")
                each.append(_stretch(one, begin, end, rows, throws.dt_s))
    return Throws.of(names, each, throws.dt_s) if each else None


def _flights(one: Columns, dt_s: float) -> list[tuple[int, int]]:
    """First and last row of every free flight of five rows or more, the last of them not the throw's."""
    fall = np.diff(one["velocity"], axis=0) + np.array([0.0, 0.0, GRAVITY_M_S2 * dt_s])
    kicked = (np.linalg.norm(fall, axis=1) > 0.04) | (
        np.linalg.norm(np.diff(one["angular_velocity"], axis=0), axis=1) > 0.5
    )
    edges = [0, *(np.flatnonzero(kicked) + 1).tolist()]
    return [(a + 1, b - 2) for a, b in pairwise(edges) if b - a >= 8]


def _stretch(one: Columns, begin: int, end: int, rows: int, dt_s: float) -> Columns:
    begin = max(begin, end - 6)
    time_s = (np.arange(begin, end + 1) - end) * dt_s
    flat = one["position"][begin : end + 1] + 0.5 * np.array([0.0, 0.0, GRAVITY_M_S2]) * time_s[:, None] ** 2
    line = np.polynomial.polynomial.polyfit(time_s, flat, 1)
    cut = {key: cells[end : end + rows].copy() for key, cells in one.items()}
    cut["velocity"][0] = line[1]
    cut["angular_velocity"][0] = spun(one["quaternion"][begin], one["quaternion"][end]) / ((end - begin) * dt_s)
    return cut


def spun(first: Array, last: Array) -> Array:
    """The turn from one orientation to another, as a vector in the body's axes."""
    w = float(first @ last)
    v = first[0] * last[1:] - last[0] * first[1:] - np.cross(first[1:], last[1:])
    if w < 0:
        w, v = -w, -v
    size = float(np.linalg.norm(v))
    return 2.0 * np.arctan2(size, w) * v / size if size > 1e-12 else np.zeros(3)
