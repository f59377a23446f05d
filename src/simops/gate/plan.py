"""How many episodes a decision takes: computed from the very boundary that the judge uses, not simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from simops.core.errors import SignalError
from simops.gate.rate import wanted

if TYPE_CHECKING:
    from simops.core.signal import Array

MOST = 20_000
"""No plan looks further than this many episodes."""


class Fixed(NamedTuple):
    """A test of a size settled beforehand, looked at once."""

    episodes: int
    failures: int
    """At most so many are let through."""
    wrong: float
    """Probability of letting through a policy exactly at the requirement."""
    power: float


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to expect of a category."""

    requirement: float
    alpha: float
    rate: float
    """The true success rate that is hoped for."""
    budget: int
    power: float
    """Probability that the budget is enough to pass."""
    median: int | None
    """Episodes until half of all such policies have passed; none where the budget is too small."""
    p90: int | None
    least: int
    """Without a single failure."""
    mean: float
    """Episodes on average, with those that use the budget up."""


def arrivals(requirement: float, alpha: float, rate: float, budget: int) -> Array:
    """Probability that a policy of true success `rate` passes after exactly 1, 2, ... `budget` episodes."""
    enough = wanted(requirement, alpha, budget)
    here = np.zeros(len(enough) + 1)  # by failures so far; the last holds more than can ever pass
    here[0] = 1.0
    found = np.zeros(budget)
    for n in range(1, budget + 1):
        moved = here * rate
        moved[1:] += here[:-1] * (1.0 - rate)
        moved[-1] += here[-1] * (1.0 - rate)
        failures = np.arange(len(enough))
        done = n - failures >= enough
        found[n - 1] = moved[:-1][done].sum()
        moved[:-1][done] = 0.0
        here = moved
    return found


def plan(requirement: float, alpha: float, rate: float, *, power: float = 0.9, budget: int = 0) -> Plan:
    """Say what a category costs, at this budget, or at the smallest that passes a policy of `rate` so often."""
    if not 0 < requirement < rate <= 1 or not 0 < alpha < 1 or not 0 < power < 1:
        raise SignalError(
            f"no number of episodes shows a rate of {rate} to be above {requirement}",
            attempt=f"a true rate above {requirement:g}, and a power below 1",
            fault="CFG-005",
        )
    reach = budget or 256
    passed = np.cumsum(arrivals(requirement, alpha, rate, reach))
    while not budget and passed[-1] < power:
        if reach >= MOST:
            raise SignalError(
                f"{MOST} episodes do not show {rate} to be above {requirement} with a power of {power}",
                attempt="a rate further from the requirement",
                fault="CFG-005",
            )
        reach = min(2 * reach, MOST)
        passed = np.cumsum(arrivals(requirement, alpha, rate, reach))
    size = budget or _first(passed, power) or reach
    passed = passed[:size]
    running = 1.0 - np.concatenate([[0.0], passed[:-1]])
    return Plan(
        requirement=requirement,
        alpha=alpha,
        rate=rate,
        budget=size,
        power=float(passed[-1]),
        median=_first(passed, 0.5),
        p90=_first(passed, 0.9),
        least=int(wanted(requirement, alpha, max(size, 1024))[0]),
        mean=float(running.sum()),
    )


def fixed(requirement: float, alpha: float, rate: float, power: float) -> Fixed:
    """The smallest test of fixed size with both of these errors: exact binomial sums."""
    for failures in range(2000):
        # the fewest episodes with which so many failures are rare enough at the requirement
        low, high = failures, MOST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _at_most(failures, middle, 1 - requirement) <= alpha else (middle, high)
        reached = _at_most(failures, high, 1 - rate)
        if reached >= power:
            return Fixed(high, failures, _at_most(failures, high, 1 - requirement), reached)
    raise SignalError(f"no test of fixed size tells {rate} from {requirement}", fault="CFG-005")


def _first(passed: Array, share: float) -> int | None:
    there = np.flatnonzero(passed >= share)
    return int(there[0]) + 1 if there.size else None


def _at_most(k: int, n: int, p: float) -> float:
    """Binomial probability of at most k of n."""
    if p <= 0.0:
        return 1.0
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(min(k, n) + 1)]
    terms = [log + i * math.log(p) + (n - i) * math.log1p(-p) for i, log in enumerate(logs)]
    return min(1.0, math.fsum(math.exp(term) for term in terms))
