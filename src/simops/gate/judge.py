"""The sequential judge: counts episodes in a fixed order, category by category, until each is decided or used up.

Which episodes count is settled before the first one runs: each category is a list of scenarios, and what counts is
always a prefix of it, however late or in whatever company an outcome arrives. A policy passes only if every category
passes on its own. Where a category's true rate is at most what is asked, its evidence reaches 1/alpha with a
probability of at most alpha, at any number of looks; so all of them together need no correction. An episode that
broke down counts against the policy, for nothing else is proven.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

from simops.core.errors import DataError, SignalError
from simops.core.trajectory import OUTCOMES, Block, Outcome
from simops.core.verdict import Finding, Interval, Status
from simops.gate import rate

MOST_NAMED = 3


@final
@dataclass(frozen=True, kw_only=True)
class Category:
    """Scenarios of one kind, in the order in which they count, and what is asked of them."""

    name: str
    scenarios: tuple[str, ...]
    """Hashes; how many there are is the most that will be run."""
    rate: float = 0.95
    """Success rate to be exceeded."""
    whole: bool = False
    """Whether the list itself is asked about, as for past failures: every one of it runs, and its share counts.
    Otherwise the scenarios are draws, and the rate asked about is that of the world they come from."""

    def __post_init__(self) -> None:
        if not 0.0 < self.rate <= 1.0 or (self.rate == 1.0 and not self.whole):
            attempt = "a rate above 0 and below 1; of a list that is run whole, also 1"
            raise SignalError(f"{self.name} asks for a success rate of {self.rate}", attempt=attempt, fault="CFG-005")
        if len(set(self.scenarios)) != len(self.scenarios):
            twice = next(one for one in self.scenarios if self.scenarios.count(one) > 1)
            raise DataError(f"{self.name} holds scenario {twice[:16]} twice", where=self.name, fault="GAT-005")


class Standing(NamedTuple):
    """How a category stands."""

    category: str
    asked: float
    successes: int
    failures: int
    """All others, whatever became of them."""
    interval: Interval
    status: Status
    """`not enough evidence` also says: go on."""
    left: int
    """Scenarios that have not been counted."""
    causes: Mapping[Outcome, int]

    @property
    def counted(self) -> int:
        """Episodes that count."""
        return self.successes + self.failures

    @property
    def decided(self) -> bool:
        """Whether more episodes are of no use."""
        return self.status != "not enough evidence"


@final
@dataclass
class Judge:
    """What is known so far about one policy."""

    policy: str
    """Digest of what is judged."""
    categories: Sequence[Category]
    alpha: float = 0.05
    """Probability, at most, of letting through a policy that is not as asked."""
    _seen: dict[str, Outcome] = field(default_factory=dict[str, Outcome], init=False, repr=False)
    _places: dict[str, str] = field(default_factory=dict[str, str], init=False, repr=False)
    _looked: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)
    """Up to where each category was looked at, episode by episode; where it was decided it stays."""

    def __post_init__(self) -> None:
        if not self.categories or not 0.0 < self.alpha < 0.5:
            raise SignalError(f"{len(self.categories)} categories at an alpha of {self.alpha}", fault="CFG-005")
        for category in self.categories:
            for one in category.scenarios:
                if self._places.setdefault(one, category.name) != category.name:
                    both = f"{self._places[one]} and {category.name}"
                    raise DataError(f"scenario {one[:16]} is in {both}", attempt="one of them", fault="GAT-005")

    def take(self, block: Block) -> None:
        """Take evidence in; raises for another policy's, for what was not asked, and for what came before."""
        if block.provenance.policy != self.policy:
            said = f"episodes of {block.provenance.policy[:16]}, not of {self.policy[:16]}"
            raise DataError(said, attempt="the episodes of the very artefact that is judged", fault="GAT-009")
        if len(block.scenarios) != len(block):
            raise DataError(f"{len(block)} episodes of {len(block.scenarios)} scenarios", fault="GAT-005")
        outcomes: list[int] = block.outcomes.tolist()
        for one, outcome in zip(block.scenarios, outcomes, strict=True):
            if not 0 <= outcome < len(OUTCOMES):
                raise DataError(f"an episode ended as number {outcome}, which is no outcome", fault="GAT-010")
            self.count(one, OUTCOMES[outcome])

    def count(self, scenario: str, outcome: Outcome) -> None:
        """Take one episode in."""
        if scenario not in self._places:
            raise DataError(f"no category holds scenario {scenario[:16]}", fault="GAT-005")
        if scenario in self._seen:
            raise DataError(f"scenario {scenario[:16]} was counted before", where=self.policy[:16], fault="GAT-005")
        self._seen[scenario] = outcome

    def standing(self, category: Category) -> Standing:
        """How a category stands by the episodes that count: those up to the one that decided, in the list's order.

        What ran beside that one, or after it, changes nothing any more; so a verdict is the same whatever ran together.
        """
        counted: list[Outcome] = []
        for one in category.scenarios:
            if one not in self._seen:
                break
            counted.append(self._seen[one])
        last = self._looked.get(category.name, 0)
        found = self._at(category, counted[:last])
        while not found.decided and last < len(counted):
            last += 1
            found = self._at(category, counted[:last], look=True)
        self._looked[category.name] = last
        return self._at(category, counted[:last])

    def _at(self, category: Category, counted: Sequence[Outcome], *, look: bool = False) -> Standing:
        """How a category stands after these; a mere look spares the interval."""
        s = counted.count("success")
        f = len(counted) - s
        left = len(category.scenarios) - len(counted)
        if category.whole:
            interval, status = _listed(category, s, f, left)
        else:
            ends = rate.interval(s, f, self.alpha) if counted and not look else Interval(0.0, 1.0)
            interval, status = ends, _drawn(category, s, f, left, self.alpha)
        causes: dict[Outcome, int] = {name: counted.count(name) for name in OUTCOMES if name in counted}
        return Standing(category.name, category.rate, s, f, interval, status, left, causes)

    def standings(self) -> tuple[Standing, ...]:
        """How all categories stand."""
        return tuple(self.standing(category) for category in self.categories)

    def wanting(self, each: int) -> tuple[str, ...]:
        """The next scenarios to run, at most so many of each category that is not decided; none at the end."""
        found: list[str] = []
        for category in self.categories:
            if not self.standing(category).decided:
                missing = [one for one in category.scenarios if one not in self._seen]
                found.extend(missing[:each])
        return tuple(found)

    def findings(self) -> tuple[Finding, ...]:
        """What follows from the episodes so far."""
        rates = tuple(_finding(standing) for standing in self.standings())
        return (*rates, *self._gaps())

    def _gaps(self) -> Iterable[Finding]:
        """Episodes that ran and cannot count, because one before them never did."""
        for category in self.categories:
            seen = [one in self._seen for one in category.scenarios]
            if True in seen:
                last = len(seen) - seen[::-1].index(True)
                missing = [one for one, here in zip(category.scenarios[:last], seen, strict=False) if not here]
                if missing:
                    named = ", ".join(one[:16] for one in missing[:MOST_NAMED])
                    yield Finding(
                        check="coverage",
                        category=category.name,
                        value=(last - len(missing)) / last,
                        bound=1.0,
                        count=last,
                        status="not enough evidence",
                        fault="GAT-005",
                        note=f"{len(missing)} never ran: {named}",
                        voids=True,
                    )


def canary(name: str, successes: int, failures: int, *, good: bool, alpha: float, level: float = 0.5) -> Finding:
    """Whether a policy that is known for good, or for bad, comes out as such; if not, the gate is broken.

    A good one has to succeed more often than `level`, a bad one less often, by the same evidence as any other.
    """
    strong = rate.above if good else rate.below
    enough = rate.proof(strong(successes, failures, level), alpha)
    n = successes + failures
    kind = "good" if good else "bad"
    against = rate.below if good else rate.above
    wrong = rate.proof(against(successes, failures, level), alpha)
    note = f"{name} is known to be {kind}, and {'came out so' if enough else 'did not come out so'}"
    return Finding(
        check="canary",
        category=f"known {kind}",
        value=successes / n if n else None,
        bound=level,
        interval=rate.interval(successes, failures, alpha) if n else None,
        count=n,
        status="pass" if enough else "fail" if wrong else "not enough evidence",
        fault="" if enough else "GAT-010",
        note=note,
        voids=not enough,
    )


def settled(finding: Finding) -> bool:
    """Whether more episodes of a canary are of no use."""
    return finding.status != "not enough evidence"


def _drawn(category: Category, s: int, f: int, left: int, alpha: float) -> Status:
    if s + f and rate.proof(rate.above(s, f, category.rate), alpha):
        return "pass"
    if s + f and rate.proof(rate.below(s, f, category.rate), alpha):
        return "fail"
    return "not enough evidence" if left or not s + f else "marginal"


def _listed(category: Category, s: int, f: int, left: int) -> tuple[Interval, Status]:
    """Of a list that is run whole the share is known in the end, and bounded before."""
    n = s + f + left
    if n == 0:
        return Interval(0.0, 1.0), "not enough evidence"
    ends = Interval(s / n, (s + left) / n)
    if ends.high < category.rate:
        return ends, "fail"
    return ends, "not enough evidence" if left else "pass"


def _finding(standing: Standing) -> Finding:
    n = standing.counted
    causes = ", ".join(f"{count} {name}" for name, count in standing.causes.items() if name != "success")
    said = {
        "marginal": "every scenario was run, and the rate lies too near to say",
        "not enough evidence": f"{standing.left} scenarios were not run" if standing.left else "there is no scenario",
    }.get(standing.status, "")
    return Finding(
        check="success rate",
        category=standing.category,
        value=standing.successes / n if n else None,
        bound=standing.asked,
        interval=standing.interval,
        count=n,
        status=standing.status,
        fault={"marginal": "GAT-012", "not enough evidence": "GAT-001"}.get(standing.status, ""),
        note="; ".join(part for part in (causes, said) if part),
    )
