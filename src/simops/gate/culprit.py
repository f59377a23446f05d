"""Which difference between two worlds makes a policy fail in one of them, and how much of the gap is its doing.

The same scenarios are run in mixtures of both worlds. Each factor is swapped twice: taken into the world that works,
where it may break the policy, and out of the world that fails, where it may mend it. Its share is the mean of what
it breaks and what it mends, of the whole gap: the first and the last place of Shapley's average over all orders in
which the worlds could be exchanged part by part. Where either of two causes is enough, each breaks and neither mends;
where both are needed, each mends and neither breaks; both ways each is half of the gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import chance
from simops.core.signal import Array
from simops.core.verdict import Interval
from simops.gate.compare import Pairs, interval

DRAWS = 2000
ALPHA = 0.01
"""Probability, at most, with which a gap is seen where there is none; and of each end of a share's interval."""
LEAST = 0.15
"""A factor with a smaller share is none of the causes."""


@final
@dataclass(frozen=True, eq=False)
class Swapped:
    """A factor, or several together, exchanged between two worlds; one row a scenario, whether it succeeded."""

    factors: tuple[str, ...]
    broken: Array
    """In the world that works, with these taken from the other."""
    mended: Array
    """In the world that fails, with these taken from the other."""


@final
@dataclass(frozen=True)
class Share:
    """How much of a gap one factor, or several together, explain."""

    factors: tuple[str, ...]
    share: float
    """1 for all of the gap."""
    interval: Interval
    breaks: float
    """By how much the success rate falls where it works."""
    mends: float
    """By how much it rises where it fails."""

    @property
    def certain(self) -> bool:
        """Whether it is a cause."""
        return self.interval.low > 0.0 and self.share >= LEAST


@final
@dataclass(frozen=True)
class Diagnosis:
    """What lies between two worlds."""

    works: float
    """Success rate in the one."""
    fails: float
    """Success rate in the other."""
    interval: Interval
    """Of their difference."""
    shares: tuple[Share, ...]
    """Of every factor that differs, the largest first."""
    together: tuple[Share, ...] = ()
    """Of pairs, where single factors leave much of the gap unexplained."""

    @property
    def gap(self) -> bool:
        """Whether the policy fails more often in the second world, beyond doubt."""
        return self.interval.low > 0.0

    @property
    def culprits(self) -> tuple[Share, ...]:
        """The causes, the largest first; none where there is no gap."""
        if not self.gap:
            return ()
        alone = tuple(share for share in self.shares if share.certain)
        more = tuple(
            pair
            for pair in self.together
            if pair.certain and pair.share > 0.5 + sum(s.share for s in self.shares if s.factors[0] in pair.factors)
        )
        return tuple(sorted((*alone, *more), key=lambda share: -share.share))


def gap_of(works: Array, fails: Array) -> Interval:
    """Where the difference of two success rates over the same scenarios lies."""
    better, worse = int(np.sum(works & ~fails)), int(np.sum(~works & fails))
    return interval(Pairs(better, len(works) - better - worse, worse), ALPHA)


def diagnose(works: Array, fails: Array, swapped: Sequence[Swapped]) -> Diagnosis:
    """Say how much of the gap each swap explains.

    Args:
        works: (n,) whether each scenario succeeded in the world that works.
        fails: The same in the other.
        swapped: Every factor that differs, and perhaps some pairs.
    """
    shares = sorted((_share(works, fails, each) for each in swapped), key=lambda share: (-share.share, share.factors))
    return Diagnosis(
        float(works.mean()),
        float(fails.mean()),
        gap_of(works, fails),
        tuple(share for share in shares if len(share.factors) == 1),
        tuple(share for share in shares if len(share.factors) > 1),
    )


def unexplained(diagnosis: Diagnosis) -> float:
    """Share of the gap that no factor alone accounts for."""
    return 1.0 - sum(max(share.share, 0.0) for share in diagnosis.shares)


def _share(works: Array, fails: Array, swapped: Swapped) -> Share:
    good, bad = works.astype(float), fails.astype(float)
    effect = ((good - swapped.broken) + (swapped.mended.astype(float) - bad)) / 2.0
    gap = good - bad
    n = len(gap)
    seeds = chance.seeds(0, np.arange(DRAWS), realm="bootstrap")
    rows = (chance.uniform(seeds, "rows", (n,)) * n).astype(int)
    below = gap[rows].mean(axis=1)
    drawn = effect[rows].mean(axis=1) / np.where(np.abs(below) < 1 / n, np.nan, below)
    known = drawn[np.isfinite(drawn)]
    ends = np.quantile(known, [ALPHA, 1 - ALPHA]) if len(known) else np.array([-np.inf, np.inf])
    whole = float(gap.mean())
    return Share(
        swapped.factors,
        float(effect.mean()) / whole if whole else 0.0,
        Interval(float(ends[0]), float(ends[1])),
        float((good - swapped.broken).mean()),
        float((swapped.mended - bad).mean()),
    )


def worst(shares: Mapping[str, float], count: int) -> tuple[str, ...]:
    """The names with the largest shares."""
    return tuple(sorted(shares, key=lambda name: -shares[name])[:count])
