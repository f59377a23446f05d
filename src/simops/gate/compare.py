"""A candidate beside a champion on the same scenarios: is it better, and is it at least no worse; valid at any look.

Each scenario gives one number x: 1 where only the candidate succeeds, -1 where only the champion does, else 0. To
refute that the mean of x is at most d, put u = (1 + x) / 2, q = (1 + d) / 2 and bet the share b of one's wealth on u
being above q: the wealth is multiplied by 1 + b (u / q - 1), which is never negative and, while the mean of u is at
most q, at most 1 on average whatever came before. So the wealth is a non-negative supermartingale that starts
at 1, a mixture over b is one too, and it ever reaches 1/alpha with a probability of at most alpha (Ville 1939). Of
all that happened only three counts matter. The share b has density 2b in sixty-four atoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, final

import numpy as np

from simops.core.errors import DataError
from simops.core.trajectory import Outcome
from simops.core.verdict import Finding, Interval
from simops.gate.judge import Category
from simops.gate.rate import proof

if TYPE_CHECKING:
    from simops.core.signal import Array

_ATOMS = 64
_HALVINGS = 50


class Pairs(NamedTuple):
    """On how many scenarios who succeeded."""

    better: int
    """Only the candidate did."""
    same: int
    """Both did, or neither."""
    worse: int
    """Only the champion did."""

    @property
    def both(self) -> int:
        """Scenarios that both ran."""
        return self.better + self.same + self.worse

    @property
    def difference(self) -> float:
        """Success rate of the candidate less that of the champion."""
        return (self.better - self.worse) / self.both if self.both else 0.0


@final
@dataclass(frozen=True, kw_only=True)
class Champion:
    """What a candidate is compared with."""

    policy: str
    """Digest."""
    outcomes: Mapping[str, Outcome]
    """By the scenario's hash."""
    margin: float = 0.02
    """By how much a candidate's success rate may be lower."""


def pairs(candidate: Mapping[str, Outcome], champion: Mapping[str, Outcome]) -> Pairs:
    """Count on the scenarios that the candidate ran; raises if the champion did not run one of them."""
    missing = [one for one in candidate if one not in champion]
    if missing:
        raise DataError(
            f"the champion never ran {len(missing)} of the scenarios, as {missing[0][:16]}", fault="GAT-005"
        )
    both = [(candidate[one] == "success", champion[one] == "success") for one in candidate]
    better = sum(mine and not theirs for mine, theirs in both)
    worse = sum(theirs and not mine for mine, theirs in both)
    return Pairs(better, len(both) - better - worse, worse)


def above(pairs: Pairs, difference: float) -> float:
    """Natural logarithm of the evidence against a mean difference of at most `difference`."""
    q = (1.0 + difference) / 2.0
    if q <= 0.0:
        return 0.0 if pairs.better + pairs.same == 0 else math.inf
    if q >= 1.0:
        return 0.0
    shares, stakes = _atoms()
    wealth = np.log(stakes)
    for count, u in ((pairs.better, 1.0), (pairs.same, 0.5), (pairs.worse, 0.0)):
        wealth = wealth + count * np.log1p(shares * (u / q - 1.0))
    most = float(wealth.max())
    return most + math.log(float(np.sum(np.exp(wealth - most))))


def below(pairs: Pairs, difference: float) -> float:
    """Natural logarithm of the evidence against a mean difference of at least `difference`."""
    return above(Pairs(pairs.worse, pairs.same, pairs.better), -difference)


def interval(pairs: Pairs, alpha: float) -> Interval:
    """Where the mean difference lies: at all times together, each end is wrong with a probability of at most alpha."""
    mirrored = Pairs(pairs.worse, pairs.same, pairs.better)
    return Interval(_last(pairs, alpha), -_last(mirrored, alpha))


def no_worse(pairs: Pairs, *, margin: float, alpha: float, category: str = "", ended: bool = True) -> Finding:
    """Whether the candidate's rate is above the champion's less a margin."""
    ends = interval(pairs, alpha)
    if pairs.both and proof(above(pairs, -margin), alpha):
        status = "pass"
    elif pairs.both and proof(below(pairs, -margin), alpha):
        status = "fail"
    else:
        status = "marginal" if ended and pairs.both else "not enough evidence"
    return Finding(
        check="no worse than the champion",
        category=category,
        value=pairs.difference if pairs.both else None,
        bound=-margin,
        interval=ends,
        count=pairs.both,
        status=status,
        fault="GAT-012" if status == "marginal" else "",
        note=f"{pairs.better} scenarios only the candidate does, {pairs.worse} only the champion",
    )


def _last(pairs: Pairs, alpha: float) -> float:
    """The largest difference that is refuted; evidence falls as the claimed difference rises."""
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if proof(above(pairs, middle), alpha) else (low, middle)
    return low


@cache
def _atoms() -> tuple[Array, Array]:
    """Shares in (0, 1) and the stake on each."""
    points, weights = np.polynomial.legendre.leggauss(_ATOMS)
    shares = (points + 1.0) / 2.0
    stakes = weights * shares
    return shares, stakes / stakes.sum()


class Ran(Protocol):
    """Episodes of the champion, run as they are asked for."""

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """By the scenario's hash."""
        ...

    def run(self, wanted: Sequence[str], tick: Callable[[], None] | None = None) -> None:
        """Run these scenarios."""
        ...


@final
class Contest:
    """A candidate beside a champion, category by category, looked at after every pair until it is decided."""

    def __init__(self, rival: Ran, categories: Sequence[Category], margin: float, alpha: float) -> None:
        """Nothing has run yet."""
        self.rival = rival
        self._categories, self._margin, self._alpha = tuple(categories), margin, alpha
        self._found: dict[str, Finding] = {}
        self._looked: dict[str, int] = {}
        self.take({}, {})

    def take(self, candidate: Mapping[str, Outcome], champion: Mapping[str, Outcome]) -> None:
        """Look at everything that both have run; pairs count in the order of their category."""
        for category in self._categories:
            while not self.decided(category.name):
                looked = self._looked.get(category.name, 0)
                some = category.scenarios[: looked + 1]
                last = len(some) == len(category.scenarios)
                if looked == len(some) or some[-1] not in candidate or some[-1] not in champion:
                    some = some[:looked]
                    self._found.setdefault(
                        category.name, self._finding(category, some, candidate, champion, last=False)
                    )
                    break
                self._looked[category.name] = len(some)
                self._found[category.name] = self._finding(category, some, candidate, champion, last=last)

    def decided(self, category: str) -> bool:
        """Whether more pairs of a category are of no use."""
        return category in self._found and self._found[category].status != "not enough evidence"

    def findings(self) -> tuple[Finding, ...]:
        """One a category."""
        return tuple(self._found[category.name] for category in self._categories)

    def _finding(
        self,
        category: Category,
        some: Sequence[str],
        candidate: Mapping[str, Outcome],
        champion: Mapping[str, Outcome],
        *,
        last: bool,
    ) -> Finding:
        found = pairs({one: candidate[one] for one in some}, champion)
        return no_worse(found, margin=self._margin, alpha=self._alpha, category=category.name, ended=last)
