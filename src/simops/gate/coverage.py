"""How much of what is believed was tried: cell by cell, pair by pair, and where the largest hole is.

Points lie in a cube, an axis a param. Each axis is cut into bins. Most failures take one or two params to be where they
should not, so what counts is whether every pair of bins of every two axes was tried; the largest ball without a point
and the discrepancy say how evenly the whole cube was filled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import final

import numpy as np

from simops.core import chance
from simops.core.signal import Array

PROBES = 4096
"""Places at which the largest empty ball is looked for."""
MOST = 2048
"""Points that the discrepancy is computed over."""
_BLOCK = 256


@final
@dataclass(frozen=True)
class Hole:
    """The largest ball in which nothing was tried."""

    centre: Array
    """(size,)."""
    radius: float
    """In edges of the cube."""


@final
@dataclass(frozen=True, eq=False)
class Coverage:
    """What was tried of a cube."""

    points: Array
    """(n, size), in the cube."""
    bins: int = 8
    seed: int = 0

    @property
    def size(self) -> int:
        """Axes."""
        return self.points.shape[1]

    @cached_property
    def counts(self) -> Array:
        """(pairs, bins, bins) how often each pair of bins was tried; pairs as `pairs` lists them."""
        places = binned(self.points, self.bins)
        found = np.zeros((len(self.pairs), self.bins, self.bins), np.int64)
        for number, (i, j) in enumerate(self.pairs):
            np.add.at(found[number], (places[:, i], places[:, j]), 1)
        return found

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Every two axes; an axis with itself where there is only one."""
        return tuple(combinations(range(self.size), 2)) or ((0, 0),)

    @property
    def possible(self) -> int:
        """Pairs of bins that could have been tried."""
        return self.bins**2 * len(self.pairs) if self.size > 1 else self.bins

    @property
    def pairwise(self) -> float:
        """Share of all pairs of bins, of every two axes, that were tried."""
        return int((self.counts > 0).sum()) / self.possible

    @property
    def single(self) -> Array:
        """(size,) share of the bins of each axis that were tried."""
        places = binned(self.points, self.bins)
        return np.array([len(np.unique(places[:, axis])) / self.bins for axis in range(self.size)])

    def expected(self, n: int) -> float:
        """The pairwise share that `n` points drawn evenly would reach on average."""
        cells = self.bins**2 if self.size > 1 else self.bins
        return 1.0 - (1.0 - 1.0 / cells) ** n

    @cached_property
    def hole(self) -> Hole:
        """The largest empty ball, as far as chance and a few steps away from the nearest points find it."""
        seeds = chance.seeds(self.seed, np.arange(PROBES), realm="hole")
        probes = chance.uniform(seeds, "probe", (self.size,))
        if not len(self.points):
            return Hole(np.full(self.size, 0.5), math.inf)
        radius = np.concatenate([_nearest(part, self.points) for part in np.array_split(probes, PROBES // _BLOCK)])
        best, reach = probes[int(np.argmax(radius))], float(radius.max())
        for step in range(6):  # smaller and smaller moves, each kept where the ball grows
            moves = chance.normal(seeds[:_BLOCK], f"move/{step}", (self.size,)) * 0.1 * 0.6**step
            near = np.clip(best + moves, 0.0, 1.0)
            found = _nearest(near, self.points)
            if float(found.max()) > reach:
                best, reach = near[int(np.argmax(found))], float(found.max())
        return Hole(best, reach)

    @cached_property
    def discrepancy(self) -> float:
        """Centred L2 discrepancy (Hickernell 1998): 0 for points that fill every box in proportion."""
        rows = self.points[:MOST]
        n, size = rows.shape
        if n == 0:
            return math.inf
        off = np.abs(rows - 0.5)
        first = (13 / 12) ** size
        second = float(np.prod(1 + 0.5 * off - 0.5 * off**2, axis=1).sum()) * 2 / n
        third = 0.0
        for part in range(0, n, _BLOCK):
            product = np.ones((min(_BLOCK, n - part), n))
            for axis in range(size):
                here, there = off[part : part + _BLOCK, axis, None], off[None, :, axis]
                apart = np.abs(rows[part : part + _BLOCK, axis, None] - rows[None, :, axis])
                product *= 1 + 0.5 * here + 0.5 * there - 0.5 * apart
            third += float(product.sum())
        return math.sqrt(max(first - second + third / n**2, 0.0))

    def closing(self, budget: int) -> Array:
        """At most so many points that try what was not tried, each as many untried pairs as it can; (m, size)."""
        left = self.counts == 0
        if self.size == 1:
            left &= np.eye(self.bins, dtype=bool)[None]
        found: list[Array] = []
        while len(found) < budget and left.any():
            seeds = chance.seeds(self.seed, np.array([len(self.points) + len(found)]), realm="close")
            bins = self._greedy(left, seeds)
            for number, (i, j) in enumerate(self.pairs):
                left[number, bins[i], bins[j]] = False
            found.append((bins + chance.uniform(seeds, "within", (self.size,))[0]) / self.bins)
        return np.array(found).reshape(-1, self.size)

    def _greedy(self, left: Array, seed: Array) -> Array:
        """Bins of one point: an untried pair to begin with, then each axis where it meets most that is untried."""
        ranks = chance.uniform(seed, "order", (self.size,))[0]
        open_cells = np.argwhere(left)
        number, a, b = open_cells[int(chance.uniform(seed, "first")[0] * len(open_cells))]
        i, j = self.pairs[int(number)]
        chosen = {i: int(a), j: int(b)}
        place = {pair: at for at, pair in enumerate(self.pairs)}
        for axis in np.argsort(ranks).tolist():
            if axis in chosen:
                continue
            gain = chance.uniform(seed, f"tie/{axis}", (self.bins,))[0] * 0.5
            for other, bin_ in chosen.items():
                low, high = min(axis, other), max(axis, other)
                cells = left[place[low, high]]
                gain = gain + (cells[:, bin_] if axis == low else cells[bin_])
            chosen[axis] = int(np.argmax(gain))
        return np.array([chosen[axis] for axis in range(self.size)])


def binned(points: Array, bins: int) -> Array:
    """The bin of each number."""
    return np.clip((points * bins).astype(int), 0, bins - 1)


def inside(points: Array) -> Array:
    """Rows that lie in the cube."""
    return np.all((points >= -1e-9) & (points <= 1 + 1e-9), axis=1)


def weakest(coverage: Coverage, names: Sequence[str]) -> list[tuple[str, str, float]]:
    """Pairs of axes by name with the share of their bins that was tried, the least first."""
    cells = coverage.possible / len(coverage.pairs)
    shares = (coverage.counts > 0).sum(axis=(1, 2)) / cells
    order = np.argsort(shares, kind="stable").tolist()
    found: list[tuple[str, str, float]] = []
    for at in order:
        one, other = coverage.pairs[int(at)]
        found.append((names[one], names[other], float(shares[at])))
    return found


def _nearest(probes: Array, points: Array) -> Array:
    """Distance from each probe to the nearest point."""
    least = np.full(len(probes), np.inf)
    for part in range(0, len(points), 4 * _BLOCK):
        some = points[part : part + 4 * _BLOCK]
        squares = np.zeros((len(probes), len(some)))
        for axis in range(probes.shape[1]):
            squares += (probes[:, axis, None] - some[None, :, axis]) ** 2
        least = np.minimum(least, squares.min(axis=1))
    return np.sqrt(least)
