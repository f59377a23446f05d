"""Identify one joint from its commands and positions, and say how well that predicts recordings it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.params import Param
from simops.core.signal import Array
from simops.learn.bench import Bench, params, swing
from simops.learn.fit import Estimate, Fit, Unknowns, finite, fit

SHORTEST_S = 2.0
"""Less recorded motion than this is not learned from."""

STEP_S = 0.003
"""About how long a physics step of a bench is."""


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """How to identify."""

    tolerance_rad: float = 0.01
    """What counts as one standard deviation of a position; beyond three of them an error counts by its size."""
    window_s: float = 8.0
    """Length of the stretches that are replayed side by side; a recording that is shorter stays whole."""
    polish_s: float = 0.0
    """Length of the stretches a second fit, that begins where the first ended, predicts; 0 for no second fit."""
    every: int = 3
    """Of the instants, how many go by between two that are compared."""
    substeps: int = 0
    """Physics steps from one instant to the next; as many as make about 3 ms when 0."""
    known: Mapping[str, tuple[float, float]] | None = None
    """Means and spreads of what is known better than a small servo is in general."""
    members: int = 3
    """Fits that set out from places of their own: friction leaves many hollows, and where they differ nobody knows."""
    fit: Fit = field(default_factory=lambda: Fit(starts=3, iterations=16))


@final
@dataclass(frozen=True, kw_only=True)
class Joint:
    """What was found of a joint, everything per inertia."""

    params: tuple[Param, ...]
    estimate: Estimate
    """The best of the fits."""
    members: Array
    """(fits, params): what each of them found, the best first."""

    def predicted(self, bench: Bench, *, points: Array | None = None, substeps: int = 0) -> Array:
        """Positions over whole recordings from their first instant and their commands: (points, recordings, instants).

        Args:
            bench: Recordings.
            points: Other values of the numbers, a row each; those of every member when left out.
            substeps: Physics steps from one instant to the next.
        """
        names = [param.name for param in self.params]
        chosen = self.members if points is None else points
        return swing(bench, names, chosen, substeps=substeps or fine(bench))

    @property
    def numbers(self) -> dict[str, float]:
        """What was found, by name."""
        return dict(zip((p.name for p in self.params), self.estimate.mean.tolist(), strict=True))


def identify(bench: Bench, asked: Asked | None = None, *, where: str = "") -> Joint:
    """Find the numbers of a joint and its load; raises where the recordings hold too little to tell."""
    asked = asked or Asked()
    enough(bench, where)
    unknown, spread = params(bench, asked.known)
    prior = Unknowns(params=unknown, mean=np.array([p.nominal for p in unknown]), spread=spread)
    found = sorted((_member(bench, asked, prior, k) for k in range(asked.members)), key=lambda one: one.cost)
    return Joint(params=unknown, estimate=found[0], members=np.stack([one.mean for one in found]))


def _member(bench: Bench, asked: Asked, prior: Unknowns, number: int) -> Estimate:
    """One fit to stretches, and where asked for one more to whole recordings from there."""
    how = replace(asked.fit, seed=asked.fit.seed + number)
    found = _fitted(bench, asked, prior, asked.window_s, how)
    if not asked.polish_s:
        return found
    again = replace(prior, mean=np.clip(found.mean, prior.low, prior.high), spread=0.3 * prior.spread)
    last = _fitted(bench, asked, again, asked.polish_s, replace(how, evolve=0, starts=1))
    return replace(last, before=prior.spread)


def _fitted(bench: Bench, asked: Asked, unknowns: Unknowns, window_s: float, how: Fit) -> Estimate:
    """Fit to stretches of a length, replayed side by side."""
    cut = bench.windows(max(8, round(window_s / period_s(bench))))
    names = [param.name for param in unknowns.params]
    substeps = asked.substeps or fine(bench)
    compared: Array = np.arange(0, int(cut.time_s.shape[1]), asked.every)

    def residuals(points: Array) -> Array:
        found = swing(cut, names, points, substeps=substeps)[:, :, compared]
        off = (found - cut.position_rad[:, compared]) / asked.tolerance_rad
        return np.where(cut.within[:, compared], off, 0.0).reshape(len(points), -1)

    return fit(residuals, unknowns, groups=np.repeat(np.arange(len(cut)), len(compared)), how=how)


def period_s(bench: Bench) -> float:
    """Time from one instant to the next, the median."""
    return float(np.median(np.diff(bench.time_s, axis=1)[bench.within[:, 1:]]))


def fine(bench: Bench) -> int:
    """Physics steps from one instant to the next that are short beside what a servo does."""
    return max(1, round(period_s(bench) / STEP_S))


def enough(bench: Bench, where: str) -> None:
    """Raise unless there is motion, of numbers, long enough to learn from."""
    finite([("command", bench.command_rad[bench.within]), ("position", bench.position_rad[bench.within])], where)
    if not np.ptp(bench.position_rad[bench.within]):
        raise DataError("the position is constant", where=where, attempt="a recording of motion", fault="LRN-002")
    told_s = float(sum(np.ptp(t[w]) for t, w in zip(bench.time_s, bench.within, strict=True)))
    if told_s < SHORTEST_S:
        raise DataError(
            f"{told_s:.1f} s were recorded", where=where, attempt=f"{SHORTEST_S:g} s or more", fault="LRN-004"
        )


def errors(bench: Bench, found: Array) -> tuple[Array, Array]:
    """Root mean square and mean absolute error of each recording."""
    off = np.where(bench.within, found - bench.position_rad, 0.0)
    count = bench.within.sum(axis=1)
    return np.sqrt((off**2).sum(axis=1) / count), np.abs(off).sum(axis=1) / count


def lagged(bench: Bench, delays_s: Sequence[float], lags_s: Sequence[float]) -> Array:
    """The commands as seen through a delay and a first-order lag, the pair that comes nearest: (recordings, instants).

    What a joint is often taken for. It is chosen on these recordings, so it is given every advantage.
    """
    best: tuple[float, Array] | None = None
    for delay in delays_s:
        late = _late(bench, delay)
        for lag in lags_s:
            found: Array = np.zeros(late.shape)
            found[:, 0] = bench.position_rad[:, 0]
            for row in range(1, late.shape[1]):
                share = 1.0 - np.exp(-(bench.time_s[:, row] - bench.time_s[:, row - 1]) / max(lag, 1e-6))
                found[:, row] = found[:, row - 1] + share * (late[:, row - 1] - found[:, row - 1])
            off = float(np.square(errors(bench, found)[0]).mean())
            if best is None or off < best[0]:
                best = off, found
    if best is None:
        raise DataError("no delay or no lag to try")
    return best[1]


def _late(bench: Bench, delay_s: float) -> Array:
    """The commands of so long ago, between rows where need be."""
    found = np.empty(bench.command_rad.shape)
    for row, (times, commands) in enumerate(zip(bench.time_s, bench.command_rad, strict=True)):
        found[row] = np.interp(times - delay_s, times, commands)
    return found
