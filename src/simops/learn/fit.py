"""Fit numbers to what was recorded: many starts side by side, least squares, then how sure one may be.

What is fitted is handed over as one function from points to residuals, many points at a time, so that a batch of
simulations is asked at once. Residuals are in units of their own noise. A posterior is as wide as the recordings,
taken session by session, disagree: residuals that follow each other are not independent, however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np

from simops.core import chance
from simops.core.errors import DataError
from simops.core.params import Param
from simops.core.signal import Array

Residuals: TypeAlias = Callable[[Array], Array]
"""(m, params) points to (m, residuals); NaN where a simulation broke down, which counts as far off."""
BROKEN = 50.0
"""What a residual that is no number counts, in its own standard deviations."""


@final
@dataclass(frozen=True, kw_only=True)
class Unknowns:
    """What is to be found, and what was thought of it before."""

    params: tuple[Param, ...]
    mean: Array
    spread: Array
    """Standard deviation of the thought; how far apart the starts are, too."""
    bound: bool = True
    """Whether the earlier thought counts as evidence beside the recordings."""
    coarse: frozenset[str] = frozenset()
    """Params that act in jumps, as a delay in whole steps does: they are searched, no slope is taken of them."""

    @property
    def low(self) -> Array:
        """Physical lower bounds."""
        return np.array([param.low for param in self.params])

    @property
    def high(self) -> Array:
        """Physical upper bounds."""
        return np.array([param.high for param in self.params])


@final
@dataclass(frozen=True, kw_only=True)
class Fit:
    """How hard to try."""

    starts: int = 3
    """Points from which least squares sets out, the best of eight times as many."""
    iterations: int = 12
    """Steps of least squares."""
    step: float = 0.03
    """Width of a finite difference, in spreads."""
    huber: float = 3.0
    """Residuals beyond this many standard deviations count by their size, not by their square."""
    evolve: int = 0
    """Generations of CMA-ES before least squares, for problems with many hollows; it wants the package `cma`."""
    seed: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What was found, and how sure one may be of it."""

    params: tuple[Param, ...]
    mean: Array
    covariance: Array
    before: Array
    """Standard deviations before."""
    cost: float
    """Robust mean square of the residuals at the mean."""
    began: float
    """The same at the centre of the earlier thought."""
    axes: Array = field(repr=False)
    """Directions from the best known to the least, columns, in spreads."""
    shares: Array = field(repr=False)
    """What is left of the earlier spread along each of them."""

    @property
    def spread(self) -> Array:
        """Standard deviation of each param."""
        return np.sqrt(np.diag(self.covariance))

    def blind(self, beyond: float = 0.7) -> list[tuple[float, str]]:
        """Directions in which the recordings say next to nothing, in words, and what is left of the spread there."""
        found: list[tuple[float, str]] = []
        for share, axis in zip(self.shares, self.axes.T, strict=True):
            if share > beyond:
                order: Array = np.argsort(-np.abs(axis))[:3]
                ranked: list[int] = order.tolist()
                strong = [i for i in ranked if abs(axis[i]) > 0.3]
                words = " ".join(f"{axis[i]:+.2f} {self.params[i].name}" for i in strong)
                found.append((float(share), words))
        return found


def fit(residuals: Residuals, unknowns: Unknowns, *, groups: Array | None = None, how: Fit | None = None) -> Estimate:
    """Find the params that explain the recordings best, and what else would explain them nearly as well.

    Args:
        residuals: The recordings, as a function of points.
        unknowns: What to find.
        groups: One number a residual, the same for those that depend on each other: of a session, or of a stretch.
        how: How hard to try.
    """
    how = how or Fit()
    search = _Search(residuals, unknowns, how)
    begun = search.costs(np.zeros((1, len(unknowns.params))))[0]
    best = search.run()
    return _posterior(search, best, float(begun), groups)


@final
class _Search:
    """The problem in spreads from the mean, where every param has a size of about one."""

    def __init__(self, residuals: Residuals, unknowns: Unknowns, how: Fit) -> None:
        self.of, self.unknowns, self.how = residuals, unknowns, how
        self.low = (unknowns.low - unknowns.mean) / unknowns.spread
        self.high = (unknowns.high - unknowns.mean) / unknowns.spread
        self.jumps = np.array([param.name in unknowns.coarse for param in unknowns.params])
        if not np.all(unknowns.spread > 0):
            raise DataError("what is to be found has no width", attempt="a prior with a spread")

    def residuals(self, points: Array) -> Array:
        found = self.of(self.unknowns.mean + self.unknowns.spread * points)
        return np.clip(np.nan_to_num(found, nan=BROKEN, posinf=BROKEN, neginf=-BROKEN), -1e6, 1e6)

    def costs(self, points: Array) -> Array:
        return self._cost(self.residuals(points), points)

    def run(self) -> Array:
        count = len(self.unknowns.params)
        draws = chance.normal(chance.seeds(self.how.seed, np.arange(8 * self.how.starts), realm="fit"), "fit", (count,))
        draws[0] = 0.0
        tried = np.clip(draws, self.low, self.high)
        costs = self.costs(tried)
        points = tried[np.argsort(costs, kind="stable")[: self.how.starts]]
        if self.how.evolve:
            points = np.concatenate([points[:-1], self._evolved(points[0])[None]])
        best = self._descend(points)
        for width in (2.0, 0.5) if self.jumps.any() else ():
            best = self._descend(self._scanned(best, width))
        return best

    def _scanned(self, best: Array, width: float) -> Array:
        """The best point, and those beside it in what acts in jumps; the three best of them."""
        points = [best]
        for i in np.flatnonzero(self.jumps).tolist():
            for off in np.linspace(-width, width, 9).tolist():
                moved = best.copy()
                moved[i] = np.clip(best[i] + off, self.low[i], self.high[i])
                points.append(moved)
        tried = np.unique(np.array(points), axis=0)
        return tried[np.argsort(self.costs(tried), kind="stable")[:3]]

    def _evolved(self, start: Array) -> Array:
        from simops.learn.evolve import evolve

        return evolve(self.costs, start, self.low, self.high, generations=self.how.evolve, seed=self.how.seed)

    def _descend(self, points: Array) -> Array:
        """Levenberg and Marquardt from every start at once; three dampings are tried in each step."""
        damping = np.full(len(points), 1e-2)
        here = self.residuals(points)
        costs = self._cost(here, points)
        for _ in range(self.how.iterations):
            before = costs.copy()
            slopes = self.slopes(points, here)
            tried = np.stack([self._steps(points, here, slopes, damping * f) for f in (0.1, 1.0, 10.0)])
            flat = tried.reshape(-1, points.shape[1])
            there = self.residuals(flat)
            found = self._cost(there, flat).reshape(3, -1)
            pick = found.argmin(axis=0)
            for i, which in enumerate(pick):
                if found[which, i] < costs[i]:
                    points[i], costs[i] = tried[which, i], found[which, i]
                    here[i] = there[which * len(points) + i]
                    damping[i] *= (0.1, 1.0, 10.0)[which]
                else:
                    damping[i] *= 100.0
            if np.all(before - costs <= 1e-6 * before):
                break
        return points[int(costs.argmin())]

    def slopes(self, points: Array, here: Array, *, width: float = 0.0, central: bool = False) -> Array:
        """(m, residuals, params) by finite differences, away from the nearer bound."""
        wide = np.where(self.jumps, 0.5, width or self.how.step)
        count = points.shape[1]
        steps = np.where(points + wide > self.high, -wide, wide)  # (m, params)
        moved = points[:, None, :] + steps[:, :, None] * np.eye(count)
        there = self.residuals(moved.reshape(-1, count)).reshape(len(points), count, -1)
        if not central:
            return np.moveaxis((there - here[:, None]) / steps[:, :, None], 1, 2)
        back = np.clip(points[:, None, :] - steps[:, :, None] * np.eye(count), self.low, self.high)
        behind = self.residuals(back.reshape(-1, count)).reshape(len(points), count, -1)
        moved_by = np.einsum("mpp->mp", moved - back)
        return np.moveaxis((there - behind) / moved_by[:, :, None], 1, 2)

    def _steps(self, points: Array, here: Array, slopes: Array, damping: Array) -> Array:
        found = np.empty_like(points)
        for i, (point, off, slope) in enumerate(zip(points, here, slopes, strict=True)):
            weights = self.weights(off)
            square = (slope * weights[:, None]).T @ slope
            pull = (slope * weights[:, None]).T @ off
            if self.unknowns.bound:
                square = square + np.eye(len(point))
                pull = pull + point
            held = self.jumps | ((point <= self.low) & (pull > 0)) | ((point >= self.high) & (pull < 0))
            free = ~held
            scale = np.maximum(np.diag(square), 1e-9) * damping[i]
            step = np.zeros_like(point)
            if free.any():
                step[free] = -np.linalg.solve((square + np.diag(scale))[np.ix_(free, free)], pull[free])
            found[i] = np.clip(point + np.clip(step, -2.0, 2.0), self.low, self.high)
        return found

    def weights(self, off: Array) -> Array:
        """Huber's: 1 within, falling as the distance beyond."""
        return np.minimum(1.0, self.how.huber / np.maximum(np.abs(off), 1e-12))

    def _cost(self, off: Array, points: Array) -> Array:
        size, bend = np.abs(off), self.how.huber
        cost = np.where(size <= bend, 0.5 * off**2, bend * (size - 0.5 * bend)).sum(axis=1)
        return cost + (0.5 * (points**2).sum(axis=1) if self.unknowns.bound else 0.0)


def _posterior(search: _Search, best: Array, begun: float, groups: Array | None) -> Estimate:
    """A normal about the best point, widened along every direction by how much the groups disagree there."""
    unknowns, count = search.unknowns, len(best)
    here = search.residuals(best[None])
    slope = search.slopes(best[None], here, width=2 * search.how.step, central=True)[0]
    off: Array = here[0]
    weights = search.weights(off)
    dispersion = max(1.0, float(np.mean(weights * off**2)))
    square = (slope * weights[:, None]).T @ slope / dispersion
    information = square + np.eye(count)  # the earlier thought, one spread wide
    values, axes = np.linalg.eigh(information)
    widen = np.ones(count)
    if groups is not None and len(np.unique(groups)) > 1:
        pulls = _pulls(slope * (weights * off)[:, None] / dispersion, groups)
        spread: Array = pulls @ axes
        told = np.einsum("pk,pq,qk->k", axes, square, axes)
        many = len(pulls)
        unrest = (spread**2).sum(axis=0) * many / (many - 1)
        widen = np.maximum(1.0, unrest / np.maximum(told, 1e-12))
    left = np.minimum(widen / values, 1.0)
    order = np.argsort(left)
    covariance = (axes * left) @ axes.T * np.outer(unknowns.spread, unknowns.spread)
    return Estimate(
        params=unknowns.params,
        mean=unknowns.mean + unknowns.spread * best,
        covariance=covariance,
        before=unknowns.spread,
        cost=float(search.costs(best[None])[0]),
        began=begun,
        axes=axes[:, order],
        shares=np.sqrt(left[order]),
    )


def _pulls(rows: Array, groups: Array) -> Array:
    """Sum over the residuals of each group."""
    names, index = np.unique(groups, return_inverse=True)
    pulls = np.zeros((len(names), rows.shape[1]))
    np.add.at(pulls, index, rows)
    return pulls


def finite(columns: Sequence[tuple[str, Array]], where: str) -> None:
    """Raise unless every column is made of numbers, and some of it moves."""
    for name, values in columns:
        bad = int(np.count_nonzero(~np.isfinite(values)))
        if bad:
            raise DataError(
                f"{name} holds {bad} of {values.size} values that are no numbers",
                where=where,
                attempt="cutting the stretch out, or filling it where that is honest",
                fault="LRN-001",
            )
    if columns and all(np.ptp(values, axis=0).max() == 0 for _, values in columns):
        names = ", ".join(name for name, _ in columns)
        raise DataError(
            f"nothing moves: {names} are constant", where=where, attempt="a recording of motion", fault="LRN-002"
        )
