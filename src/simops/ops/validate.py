"""The gate: one policy through a suite of scenarios in the validation engine, and a verdict about its very bytes.

    order = load_order(Path("spec.yaml"))            # ops.gate_spec
    gate = validate(order)
    gate.verdict.require(order.policy.digest)        # or raise what stands against it

Episodes are on disk before they count, and a gate that was stopped, even by `kill -9`, goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from simops.core.errors import DataError, EngineError
from simops.core.policy import Zero
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.rollout import Recipe
from simops.core.task import Task
from simops.core.trajectory import Outcome
from simops.core.verdict import Finding, Verdict
from simops.data.files import Lock, make_folder, publish
from simops.gate.audit import NUMBERLESS, Limits
from simops.gate.compare import Contest
from simops.gate.gap import apart, gap
from simops.gate.judge import Category, Judge, Standing, canary, settled
from simops.gate.suite import REALM, Suite, disjoint
from simops.ops import suite_text
from simops.ops.campaign import Share, enter
from simops.ops.episodes import Episodes

SUITE, VERDICT, SPEC = "suite.json", "verdict.json", "spec.lock"
CANDIDATE, GOOD, BAD, CHAMPION, TRAINED = "candidate", "known_good", "known_bad", "champion", "trained_in"
"""Folders of episodes: who ran them; the last in the training engine."""
WHOLE = frozenset({"adversarial", "regression"})
"""Kinds of which every scenario is run, and whose own share counts."""
REPEATED = 0.01
"""Share of the episodes that run a second time, to see that they are the same."""


@final
@dataclass(frozen=True, kw_only=True)
class Rival:
    """A champion that the candidate must not be worse than."""

    policy: Policy
    margin: float = 0.05


@final
@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Where candidates of one search are entered."""

    ledger: Path
    candidates: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Order:
    """One gate."""

    policy: Policy
    """A bundle, or anything else that acts."""
    task: Task
    """With the belief that the suite was drawn from."""
    engine: Engine
    suite: Suite
    rates: Mapping[str, float]
    """What each kind of scenario asks for."""
    out: Path
    good: Policy
    """Known for good; usually the task's expert."""
    bad: Policy = field(default_factory=Zero)
    alpha: float = 0.05
    sensors: tuple[Sensor, ...] = ()
    champion: Rival | None = None
    campaign: Campaign | None = None
    canary_episodes: int = 40
    trained_in: Engine | None = None
    """The engine that trained, for the gap; no gap is measured without."""
    gap_episodes: int = 32
    """At most, of each kind of scenario."""
    remember: Path | None = None
    """A suite that grows by every scenario that failed, for later gates."""
    trained_seeds: tuple[int, ...] = ()
    """Root seeds of the training, where known: the suite may share no episode's seed with them."""
    batch: int = 32
    timeout_s: float = 600.0
    limits: Limits = field(default_factory=Limits)
    lock: str = ""
    """The spec with every default written out."""


@final
@dataclass
class Seen:
    """What has happened so far, for whoever watches."""

    stage: str = "starting"
    standings: tuple[Standing, ...] = ()
    episodes: int = 0
    """Of the candidate, run or found on disk."""
    flagged: int = 0
    lost: int = 0


@final
@dataclass(frozen=True, kw_only=True)
class Gate:
    """What a gate came to."""

    verdict: Verdict
    standings: tuple[Standing, ...]
    outcomes: Mapping[str, Outcome]
    """Of the candidate's episodes, by the scenario's hash; an episode that the audit flagged is a failure."""
    suspicions: Mapping[str, tuple[str, ...]]
    """What the audit found, by hash."""
    share: Share
    out: Path
    gap: tuple[Finding, ...] = ()
    """How far training and validation engine are apart; no part of the verdict."""


Watch = Callable[[Seen], None]


def validate(order: Order, watch: Watch | None = None) -> Gate:
    """Judge a policy; everything is kept under `order.out`, and what is there already is not run again."""
    disjoint(order.suite, order.trained_seeds)
    make_folder(order.out)
    writer = Lock(order.out)
    try:
        suite_text.keep(order.suite, order.out / SUITE)
        if order.lock:
            publish(order.out / SPEC, order.lock.encode())
        share = _share(order)
        with ExitStack() as held:
            return _Run(order, share, held, watch or _nobody).gate()
    finally:
        writer.release()


@final
class _Run:
    """One gate under way."""

    def __init__(self, order: Order, share: Share, held: ExitStack, watch: Watch) -> None:
        self.order, self.share, self._held, self._watch = order, share, held, watch
        self.seen = Seen()
        self.categories = _categories(order)
        self.judge = Judge(order.policy.digest, self.categories, share.alpha)
        self.candidate = self._episodes(CANDIDATE, order.policy)
        self._counted: set[str] = set()

    def gate(self) -> Gate:
        """Canaries, then the candidate, then what proves that its episodes are what they say."""
        canaries = self._canaries()
        contest = self._contest()
        if not any(finding.voids for finding in canaries):
            self._judge(contest)
        again = self._again()
        findings = (*self.judge.findings(), *canaries, *self._no_worse(contest), *again, *self._audited())
        order = self.order
        verdict = Verdict(
            policy=order.policy.digest,
            suite=order.suite.digest,
            realm=REALM,
            alpha=self.share.alpha,
            findings=findings,
        )
        gap = self._gap()
        if order.remember is not None:
            suite_text.remember(order.remember, order.task, order.suite, self.candidate.outcomes)
        publish(order.out / VERDICT, verdict.text().encode())
        self._say("done")
        return Gate(
            verdict=verdict,
            standings=self.judge.standings(),
            outcomes=dict(self.candidate.outcomes),
            suspicions={one: tuple(map(str, found)) for one, found in self.candidate.suspicions.items()},
            share=self.share,
            out=order.out,
            gap=gap,
        )

    def _judge(self, contest: Contest | None) -> None:
        """Run until every category is decided, or used up."""
        while wanted := self._wanted(contest):
            self._say("judging")
            self.candidate.run(wanted, self._tick)
            self._count()
            if contest is not None:
                contest.rival.run(wanted, self._tick)
                contest.take(self.candidate.outcomes, contest.rival.outcomes)
        self._say("judged")

    def _wanted(self, contest: Contest | None) -> list[str]:
        """The next scenarios of everything that is not decided, as many as run side by side."""
        self._count()
        open_ones = [
            category
            for category, standing in zip(self.categories, self.judge.standings(), strict=True)
            if not standing.decided or (contest is not None and not contest.decided(category.name))
        ]
        found: list[str] = []
        for category in open_ones:
            missing = [one for one in category.scenarios if not self._ran(one, contest)]
            found += missing[: max(1, self.order.batch // len(open_ones))]
        return found

    def _ran(self, scenario: str, contest: Contest | None) -> bool:
        here = scenario in self.candidate.outcomes
        return here and (contest is None or scenario in contest.rival.outcomes)

    def _count(self) -> None:
        """Take what is on disk into account."""
        for one, outcome in self.candidate.outcomes.items():
            if one not in self._counted:
                self._counted.add(one)
                self.judge.count(one, outcome)
        self.seen.standings = self.judge.standings()
        self.seen.episodes = len(self.candidate.outcomes)
        self.seen.flagged, self.seen.lost = len(self.candidate.suspicions), len(self.candidate.lost)

    def _canaries(self) -> list[Finding]:
        """Policies whose verdict is known, in the first scenarios of the first category."""
        self._say("canaries")
        order, found = self.order, list[Finding]()
        first = self.categories[0].scenarios[: order.canary_episodes]
        for folder, policy, good in ((GOOD, order.good, True), (BAD, order.bad, False)):
            ran = self._episodes(folder, policy)
            name = type(policy).__name__.lower()
            for last in (*range(8, len(first), 8), len(first)):
                ran.run(first[:last], self._tick)
                successes = sum(ran.outcomes[one] == "success" for one in first[:last])
                finding = canary(name, successes, last - successes, good=good, alpha=order.alpha)
                if settled(finding) or last == len(first):
                    found.append(finding)
                    break
        return found

    def _contest(self) -> Contest | None:
        rival = self.order.champion
        if rival is None:
            return None
        return Contest(self._episodes(CHAMPION, rival.policy), self.categories, rival.margin, self.share.alpha)

    def _again(self) -> list[Finding]:
        """Run one episode in a hundred once more, alone."""
        stored = [one for one in self.candidate.outcomes if one not in self.candidate.lost]
        if not stored:
            return []
        self._say("running episodes again")
        some = sorted(stored)[:: max(1, round(1 / REPEATED))]
        same = [self.candidate.again(one) for one in some]
        broken = [one for one, kept in zip(some, same, strict=True) if not kept]
        return [
            Finding(
                check="the same bytes again",
                value=sum(same) / len(same),
                bound=1.0,
                count=len(same),
                status="fail" if broken else "pass",
                fault="GAT-007" if broken else "",
                note=f"as scenario {broken[0][:16]}" if broken else "",
                voids=bool(broken),
            )
        ]

    def _audited(self) -> list[Finding]:
        """How many episodes the physics audit believes; those it does not are no successes."""
        flagged, n = self.candidate.suspicions, len(self.candidate.outcomes) - len(self.candidate.lost)
        if not n:
            return []
        kinds = sorted({one.kind for found in flagged.values() for one in found})
        return [
            Finding(
                check="physics audit",
                value=len(flagged) / n,
                bound=0.0,
                count=n,
                status="fail" if NUMBERLESS in kinds else "marginal" if flagged else "pass",
                fault="TRN-004" if flagged else "",
                note=", ".join(kinds),
            )
        ]

    def _gap(self) -> tuple[Finding, ...]:
        """The same scenarios in the engine that trained, and how far the two are apart."""
        order = self.order
        if order.trained_in is None or not order.gap_episodes:
            return ()
        self._say("measuring the gap")
        some = [
            one
            for category in self.categories
            for one in [s for s in category.scenarios if self._whole(s)][: order.gap_episodes]
        ]
        try:
            trained = self._episodes(TRAINED, order.policy, order.trained_in)
            trained.run(some, self._tick)
        except EngineError as error:
            return (Finding(check="gap", status="not enough evidence", note=error.what),)
        rows = [
            apart(
                order.task, order.suite.by_hash[one].category, trained.trajectory(one), self.candidate.trajectory(one)
            )
            for one in some
            if one not in trained.lost
        ]
        return gap(rows)

    def _whole(self, scenario: str) -> bool:
        return scenario in self.candidate.outcomes and scenario not in self.candidate.lost

    def _no_worse(self, contest: Contest | None) -> Sequence[Finding]:
        return contest.findings() if contest is not None else ()

    def _episodes(self, folder: str, policy: Policy, engine: Engine | None = None) -> Episodes:
        order = self.order
        engine = engine or order.engine
        recipe = Recipe(policy=policy, task=order.task, engine=engine, sensors=order.sensors, realm=REALM)
        made = Episodes(
            recipe,
            order.suite,
            order.out / folder,
            batch=order.batch,
            timeout_s=order.timeout_s,
            limits=order.limits,
        )
        return self._held.enter_context(made)

    def _say(self, stage: str) -> None:
        self.seen.stage = stage
        self._watch(self.seen)

    def _tick(self) -> None:
        self._watch(self.seen)


def _categories(order: Order) -> tuple[Category, ...]:
    missing = [name for name in order.suite.categories if name not in order.rates]
    if missing:
        raise DataError(f"nothing is asked of the scenarios of kind {missing[0]}", attempt="a rate for each kind")
    return tuple(
        Category(
            name=name,
            scenarios=tuple(each.hash for each in order.suite.of(name)),
            rate=order.rates[name],
            whole=name in WHOLE,
        )
        for name in order.suite.categories
    )


def _share(order: Order) -> Share:
    if order.campaign is None:
        return Share(1, order.alpha)
    campaign = order.campaign
    return enter(
        campaign.ledger,
        order.policy.digest,
        order.suite.digest,
        alpha=order.alpha,
        candidates=campaign.candidates,
    )


def _nobody(_: Seen) -> None:
    pass
