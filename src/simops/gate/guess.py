"""A guess at the margin between the points whose margins are known: which untried ones are worth a try.

A parabola along each axis, by Bayesian least squares: few numbers, so a hundred episodes teach it something, and its
own doubt is known. What it misses is read off the neighbours, at a distance of chance. Every pick is the least of one
draw from what it may be (Thompson 1933), so where it knows little the picks spread by themselves.
"""

from __future__ import annotations

from typing import final

import numpy as np

from simops.core import chance
from simops.core.signal import Array

POOL = 512
NEAR = 0.16
"""How far at most, of the cube's edge, a candidate is moved away from a point that is known; an eighth at least."""
KEPT = 256
"""Known points that a candidate's neighbourhood is read from: the worst, and as many of the newest."""
CROWD = 0.15
"""What a cell of the map that was looked at e times as often has to be better by, in spreads of the margins."""
PRIOR = 4.0
"""How strongly slopes are believed to be none, in episodes."""


@final
class Guess:
    """What a parabola along each axis makes of margins."""

    def __init__(self, points: Array, margins: Array, axes: tuple[int, ...], cells: int) -> None:
        """Fit; margins beyond 1 say no more than 1. The map is over `axes`, with so many cells along each."""
        self._axes, self._cells = axes, cells
        self._tried = np.zeros((cells,) * len(axes))
        np.add.at(self._tried, self._places(points), 1)
        known = np.clip(margins, -1.0, 1.0)
        self._crowd = CROWD * float(known.std())
        rows = _features(points)
        # summed by einsum: the same bytes at any number of threads
        precision: Array = np.einsum("ni,nj->ij", rows, rows) + PRIOR * np.eye(rows.shape[1])
        seen: Array = np.einsum("ni,n->i", rows, known)
        self._mean: Array = np.asarray(np.linalg.solve(precision, seen), float)
        left: Array = known - np.einsum("ni,i->n", rows, self._mean)
        self._noise = float(np.sqrt(np.mean(left**2)) + 1e-6)
        self._factor: Array = np.linalg.inv(np.linalg.cholesky(precision))
        order = np.argsort(margins, kind="stable")
        self._low = points[order[: max(8, len(points) // 10)]]
        beside = np.unique(np.concatenate([order[: KEPT // 2], np.arange(len(points))[-KEPT // 2 :]]))
        self._beside, self._left = points[beside], left[beside]

    def picks(self, count: int, seeds: Array) -> Array:
        """So many points that may fail: half of the candidates near the worst that are known, half anywhere."""
        size = self._low.shape[1]
        found = np.empty((count, size))
        for i in range(count):
            own = seeds[i : i + 1]
            near = NEAR * 2.0 ** float(-3.0 * chance.uniform(own, "guess/scale")[0])
            tried = chance.uniform(own, "guess/anywhere", (POOL, size))[0]
            moved = near * chance.normal(own, "guess/near", (POOL // 2, size))[0]
            which = (chance.uniform(own, "guess/which", (POOL // 2,))[0] * len(self._low)).astype(int)
            tried[: POOL // 2] = np.clip(self._low[which] + moved, 0.0, 1.0)
            weights = self._mean + self._noise * np.einsum(
                "ji,j->i", self._factor, chance.normal(own, "guess/draw", self._mean.shape)[0]
            )
            places = self._places(tried)
            worth = np.einsum("ni,i->n", _features(tried), weights) + self._around(tried, near)
            best = int(np.argmin(worth + self._crowd * np.log1p(self._tried[places])))
            found[i] = tried[best]
            self._tried[tuple(place[best] for place in places)] += 1
        return found

    def _around(self, points: Array, near: float) -> Array:
        """What the parabola misses around each point, as far as its neighbours say."""
        squares = np.zeros((len(points), len(self._beside)))
        for axis in range(points.shape[1]):
            squares += (points[:, axis, None] - self._beside[None, :, axis]) ** 2
        weights = np.exp(squares * (-0.5 / (near * near * points.shape[1])))
        return np.einsum("nk,k->n", weights, self._left) / (weights.sum(axis=1) + 1.0)

    def _places(self, points: Array) -> tuple[Array, ...]:
        return tuple(np.minimum((points[:, axis] * self._cells).astype(int), self._cells - 1) for axis in self._axes)


def _features(points: Array) -> Array:
    centred = 2.0 * points - 1.0
    return np.concatenate([np.ones((len(points), 1)), centred, centred**2], axis=1)
