"""How often the gate lets a policy through that is not as asked, and how many episodes it takes where one is.

    python benchmarks/gate.py [--full] [--gates 10000] [--budget 2000]

Gates of which the true success rate is exactly the one asked about, looked at after every episode, alone and as
campaigns of ten candidates of which the best is kept; beside it, on the same episodes, what is usually done: the lower
Clopper-Pearson bound, looked at as often. Exits 1 if a bound that was promised does not hold.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np

from simops.core import chance
from simops.core.signal import Array
from simops.gate.judge import Category, Judge
from simops.gate.plan import arrivals, fixed, plan
from simops.gate.rate import wanted
from simops.ops.campaign import share

ALPHA, ASKED, GOOD = 0.05, 0.95, 0.99


class Share(NamedTuple):
    """How many of how many, and the upper 95 % bound of the share."""

    hits: int
    of: int

    @property
    def upper(self) -> float:
        """Clopper-Pearson, by halving."""
        low, high = self.hits / self.of, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _at_most(self.hits, self.of, middle) > 0.05 else (low, middle)
        return high

    def __str__(self) -> str:
        return f"{self.hits / self.of:.4f} ({self.hits} of {self.of}, at most {self.upper:.4f} with 95 %)"


def main() -> int:
    """Print every figure and say whether what was promised holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=400, help="episodes at which a gate gives up")
    parser.add_argument("--full", action="store_true", help="a budget of 2,000 episodes")
    args = parser.parse_args()
    budget = 2000 if args.full else args.budget
    print(f"{args.gates:,} gates at the limit: {ASKED} true, {ASKED} to be exceeded, {budget} episodes, all looked at")
    alone, peeking = false_accepts(args.gates, budget, ALPHA, 1), naive(args.gates, budget)
    print(f"  this gate, alpha {ALPHA}: {alone}")
    print(f"  exactly, from its boundary: {arrivals(ASKED, ALPHA, ASKED, budget).sum():.4f}")
    print(f"  Clopper-Pearson, looked at as often: {peeking}")
    ten = false_accepts(args.gates, budget, ALPHA, 10)
    print(f"  the best of ten candidates of a campaign: {ten}")
    late = false_accepts(args.gates, budget, ALPHA, 10, announced=False)
    print(f"  the best of ten where nobody said how many there would be: {late}")
    same = agrees(200, min(budget, 400))
    print(f"  the judge itself, fed 200 of them one by one, decides as this boundary does: {'yes' if same else 'NO'}")
    reached = cost()
    held = same and reached and all(one.upper <= 1.1 * ALPHA for one in (alone, ten, late))
    print("all of it holds" if held else "NOT all of it holds")
    return 0 if held else 1


def false_accepts(gates: int, budget: int, alpha: float, candidates: int, *, announced: bool = True) -> Share:
    """Campaigns in which some candidate exactly at the limit passes."""
    passed = np.zeros(gates, bool)
    for number in range(1, candidates + 1):
        own = share(alpha, number, candidates if announced else 0)
        enough = wanted(ASKED, own if candidates > 1 else alpha, budget)
        passed |= np.concatenate([crossed(some, enough) for some in draws(gates, budget, number)])
    return Share(int(passed.sum()), gates)


def naive(gates: int, budget: int) -> Share:
    """The same episodes judged by a bound that is meant for one look."""
    enough: list[int] = []
    n = 1
    for failures in range(budget):
        n = max(n, failures + 1)
        while n <= budget and _at_most(failures, n, 1 - ASKED) > ALPHA:
            n += 1
        if n > budget:
            break
        enough.append(n - failures)
    passed = np.concatenate([crossed(some, np.array(enough)) for some in draws(gates, budget, 1)])
    return Share(int(passed.sum()), gates)


def draws(gates: int, budget: int, number: int) -> list[Array]:
    """Successes, (gates, episodes), some gates at a time."""
    seeds = chance.seeds(number, np.arange(gates), realm="benchmark")
    return [chance.uniform(seeds[i : i + 1000], "success", (budget,)) < ASKED for i in range(0, gates, 1000)]


def crossed(successes: Array, enough: Array) -> Array:
    """Whether a gate has passed at some look."""
    won = np.asarray(np.cumsum(successes, axis=1), np.int64)
    failed = np.arange(1, successes.shape[1] + 1, dtype=np.int64) - won
    bar = np.append(enough, np.iinfo(np.int64).max)[np.clip(failed, 0, len(enough))]
    return np.asarray(np.any(won >= bar, axis=1))


def agrees(gates: int, budget: int) -> bool:
    """Whether the judge that gates use comes to the same."""
    episodes = draws(gates, budget, 1)[0]
    quick = crossed(episodes, wanted(ASKED, ALPHA, budget))
    category = Category(name="nominal", scenarios=tuple(map(str, range(budget))), rate=ASKED)
    for row, passed in zip(episodes, quick, strict=True):
        judge = Judge("policy", (category,), ALPHA)
        for i, success in enumerate(row):
            judge.count(str(i), "success" if success else "failure")
        if (judge.standing(category).status == "pass") != passed:
            return False
    return True


def cost() -> bool:
    """Episodes until a good policy is let through."""
    found = plan(ASKED, ALPHA, GOOD, budget=400)
    size = fixed(ASKED, ALPHA, GOOD, found.power)
    usual = fixed(ASKED, ALPHA, GOOD, 0.95)
    print(f"to let {GOOD} through where {ASKED} is asked: half by {found.median} episodes, nine in ten by {found.p90}, "
          f"{found.mean:.0f} on average, {found.least} without a failure; power {found.power:.4f}")  # fmt: skip
    for test, name in ((size, "equal errors"), (usual, "a power of 0.95")):
        less = 1 - found.mean / test.episodes
        print(f"  a test of fixed size with {name}: {test.episodes}; on average {less:.0%} fewer here, "
              f"at the median {1 - (found.median or 0) / test.episodes:.0%}")  # fmt: skip
    fewer = 1 - found.mean / size.episodes
    return (found.median or 1e9) <= 140 and (found.p90 or 1e9) <= 250 and fewer >= 0.4


def _at_most(k: int, n: int, p: float) -> float:
    """Binomial probability of at most k of n."""
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(k + 1)]
    return math.fsum(math.exp(g + i * math.log(p) + (n - i) * math.log1p(-p)) for i, g in enumerate(logs))


if __name__ == "__main__":
    raise SystemExit(main())
