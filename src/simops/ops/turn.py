"""One turn of the crank, as steps: learn the simulator, train in it, export, validate, try on the robot, decide.

Nothing is done here: steps are handed out, and what came of them decides on the next. So the same lines run a crank,
go on with one that was killed, and say what would run.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from simops.core.patch import Patch
from simops.core.simulator import Simulator
from simops.core.trajectory import Outcome
from simops.core.verdict import Finding, Verdict
from simops.gate import compare, rate
from simops.ops import compiler, stages
from simops.ops.stages import Bench
from simops.ops.steps import Done, Step, Steps

Ending: TypeAlias = Literal["promoted", "kept", "refused", "candidate", "unchanged"]


@final
@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is live, and what is known of it."""

    simulator: Simulator
    text: str
    """Of the spec for the next turn."""
    champion: Done | None = None
    """The bundle that is live."""
    logs: tuple[Done, ...] = ()
    """Everything that was seen of the robot."""
    turns: tuple[Turn, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one turn came to."""

    number: int
    steps: tuple[Done, ...]
    ending: Ending
    """What became of its candidate."""
    why: str
    spec: str
    """Its text in this turn."""
    learned: Mapping[str, Any] | None = None
    """What the simulator learned; none in a turn that had nothing to learn from."""
    kept_simulator: bool = False
    validated: Mapping[str, Any] | None = None
    tried: Mapping[str, Any] | None = None
    """How the candidate's trials ended."""
    beside: Mapping[str, Any] | None = None
    """How the champion's ended, on the same."""
    findings: tuple[Finding, ...] = ()
    diagnosed: Mapping[str, Any] | None = None
    """What failed, and why."""
    applied: tuple[Patch, ...] = ()
    """Patches for the next turn."""
    waiting: tuple[Patch, ...] = ()
    """Patches that somebody has to decide on."""

    @property
    def moved(self) -> bool:
        """Whether anything is other than it was before."""
        return self.ending == "promoted" or self.kept_simulator or bool(self.applied)

    @property
    def success(self) -> float | None:
        """Share of the candidate's trials that succeeded; none where it was not let out."""
        return None if self.tried is None else share(self.tried)

    @property
    def live_success(self) -> float | None:
        """Share of the trials that succeeded, of what is live after this turn."""
        found = self.tried if self.ending == "promoted" else self.beside
        return None if found is None else share(found)


def turn(bench: Bench, standing: Standing, number: int, *, root: Path, alpha: float) -> Steps[Standing]:
    """The steps of a turn, and what stands after it."""
    now = _Now(bench, standing, number)
    yield from _simulate(now, alpha)
    if now.same:
        return now.ended(
            "unchanged",
            "neither simulator nor spec changed, and training once more has nothing to add",
        )
    policy = yield from now.did(stages.trained(bench, number, now.simulator, now.trained))
    bundle = yield from now.did(stages.exported(bench, number, policy))
    if bench.reality is not None and number == 0 and bench.spec.trials.explore:
        now.logs.append((yield from now.did(stages.explore(bench, number))))
    live = standing.champion
    gate = yield from now.did(stages.validated(bench, number, now.simulator, bundle))
    now.notes["validated"], tried = gate.said, None
    ending: Ending = "refused"
    if gate.said["status"] != "pass":
        why = "; ".join(str(one) for one in Verdict.parse(gate.said["verdict"]).against()[:2])
    elif bench.reality is None:
        ending, why = "candidate", "validated, and there is no robot to try it on: a candidate"
    else:
        tried = yield from now.did(stages.trials(bench, number, bundle, who="candidate"))
        ending, why = yield from _compared(now, bundle, tried, live, alpha)
    if gate.said["success"] < 1.0 or (tried is not None and share(tried.said) < 1.0):
        step = compiler.diagnosed(bench, number, now.simulator, policy, bundle, gate, tried)
        now.notes["diagnosed"] = (yield from now.did(step)).said
    return now.ended(ending, why, root=root, champion=bundle if ending == "promoted" else live)


def _simulate(now: _Now, alpha: float) -> Steps[None]:
    """Learn from what is new in the log, and keep what is better."""
    if now.bench.reality is None or not any(log.step.turn == now.number - 1 for log in now.logs):
        return
    found = yield from now.did(stages.learned(now.bench, now.number, now.simulator, now.logs, alpha=alpha))
    now.notes["learned"] = found.said
    if Verdict.parse(found.said["verdict"]).status == "pass":
        now.simulator, now.notes["kept_simulator"] = stages.taught(now.simulator, found), True


def _compared(now: _Now, candidate: Done, tried: Done, live: Done | None, alpha: float) -> Steps[tuple[Ending, str]]:
    """Candidate and champion on the same trials, and on more of them while those may still show it better."""
    now.notes["tried"] = tried.said
    now.logs.append(tried)
    if live is None:
        return "promoted", "it passed its gate, and nothing was live before"
    mine, theirs = tried.said, dict[str, Any]()
    while True:
        count = len(theirs.get("numbers", ()))
        if count:
            more = yield from now.did(stages.trials(now.bench, now.number, candidate, who="candidate", after=count))
            now.logs.append(more)
            mine = _together(mine, more.said)
        beside = yield from now.did(stages.trials(now.bench, now.number, live, who="champion", after=count))
        now.logs.append(beside)
        theirs = _together(theirs, beside.said)
        better = improved(mine, theirs, alpha)
        if better.status == "pass" or not promising(mine, theirs, alpha, most=now.bench.spec.trials.most):
            break
    now.notes.update(tried=mine, beside=theirs, findings=(better,))
    return ("promoted" if better.status == "pass" else "kept"), str(better)


@final
class _Now:
    """A turn under way."""

    def __init__(self, bench: Bench, standing: Standing, number: int) -> None:
        self.bench, self.number, self._before = bench, number, standing
        self.simulator, self.logs = standing.simulator, list(standing.logs)
        self.notes, self._done = dict[str, Any](), list[Done]()

    @property
    def same(self) -> bool:
        """Whether neither simulator nor spec is other than in the turn before, and training on has nothing to add."""
        turns = self._before.turns
        if not turns or turns[-1].applied or self.notes.get("kept_simulator"):
            return False
        seen = turns[-1].validated
        short = seen is not None and seen["success"] < self.bench.spec.hardened.success
        return not (short and self.bench.reality is not None and stages.may_go_on(self.bench, self.trained))

    @property
    def trained(self) -> Done | None:
        """The last training, whatever became of it."""
        steps = (done for turn in reversed(self._before.turns) for done in turn.steps if done.step.stage == "train")
        return next(steps, None)

    def did(self, step: Step) -> Generator[Step, Done, Done]:
        """Hand a step out, and note what came of it."""
        found = yield step
        self._done.append(found)
        return found

    def ended(self, ending: Ending, why: str, *, root: Path | None = None, champion: Done | None = None) -> Standing:
        """What stands after the turn."""
        bodies: list[Mapping[str, Any]] = self.notes.get("diagnosed", {}).get("patches", [])
        patches = [Patch.of(body) for body in bodies]
        found = compiler.decide(self.bench, root or Path(), patches)
        turn = Turn(
            number=self.number, steps=tuple(self._done), ending=ending, why=why, spec=self.bench.text,
            applied=found.done, waiting=found.waiting, **self.notes,
        )  # fmt: skip
        return replace(
            self._before, simulator=self.simulator, champion=champion or self._before.champion,
            logs=tuple(self.logs), turns=(*self._before.turns, turn), text=found.text,
        )  # fmt: skip


def improved(candidate: Mapping[str, Any], champion: Mapping[str, Any], alpha: float) -> Finding:
    """Whether the candidate succeeds more often than the champion, on the same trials."""
    mine, theirs = (_by_number(one) for one in (candidate, champion))
    pairs = compare.pairs(mine, theirs)
    shown = rate.proof(compare.above(pairs, 0.0), alpha)
    return Finding(
        check="better than the champion",
        value=pairs.difference,
        bound=0.0,
        interval=compare.interval(pairs, alpha),
        count=pairs.both,
        status="pass" if shown else "marginal",
        fault="" if shown else "GAT-012",
        note=f"{pairs.better} trials only the candidate does, {pairs.worse} only the champion",
    )


def promising(candidate: Mapping[str, Any], champion: Mapping[str, Any], alpha: float, *, most: int) -> bool:
    """Whether `most` trials would show the candidate better, if they went on as they have begun.

    When to stop is free to choose: the evidence holds at any look.
    """
    pairs = compare.pairs(_by_number(candidate), _by_number(champion))
    if not 0 < pairs.both < most:
        return False
    ahead = compare.Pairs(*(round(count * most / pairs.both) for count in pairs))
    return rate.proof(compare.above(ahead, 0.0), alpha)


def share(said: Mapping[str, Any]) -> float:
    """Successes of trials."""
    outcomes: list[str] = said["outcomes"]
    return outcomes.count("success") / len(outcomes)


def _together(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Trials, and those that followed."""
    return {name: [*first.get(name, ()), *second[name]] for name in ("numbers", "outcomes")}


def _by_number(said: Mapping[str, Any]) -> dict[str, Outcome]:
    return {str(number): outcome for number, outcome in zip(said["numbers"], said["outcomes"], strict=True)}
