"""The steps that a turn of the crank is made of: each says what it depends on, and does one thing in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core import belief as beliefs
from simops.core import chance, marginal
from simops.core.belief import Belief, Gaussian
from simops.core.perform import run as perform
from simops.core.policy import Random
from simops.core.protocols import Policy
from simops.core.robot import Reality
from simops.core.rollout import Recipe
from simops.core.scenario import Category as Kind
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.core.simulator import Simulator
from simops.core.training import Course, reweighted
from simops.core.trajectory import OUTCOMES
from simops.core.trial import attempt
from simops.core.verdict import Verdict
from simops.data.files import digest, make_folder, publish
from simops.deploy.bundle import load as load_bundle
from simops.gate.judge import Category, Judge
from simops.learn.inject import World, beset
from simops.learn.ppo import Ppo
from simops.ops import failures, learn, logbook, train
from simops.ops.export import export_checkpoint
from simops.ops.steps import Done, Step
from simops.spec.crank import Crank
from simops.spec.load import Loaded
from simops.spec.randomize import randomize

LOG, BUNDLE, SIMULATOR, VERDICT = "log", "bundle", "simulator", "verdict.json"
REALM = "crank gate"
TRAINS = ("scene", "engine", "trainer", "reward", "sensors", "randomization", "scenarios", "injected", "seed")
"""What of a spec a training depends on, beside what is believed."""


@final
@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the stages of a crank share."""

    text: str
    """Of the spec, as it is by now."""
    loaded: Loaded[Crank]
    reality: Reality | None
    identity: str
    """Of the robot."""
    watch: Callable[[train.Run], None]

    @property
    def spec(self) -> Crank:
        """What is asked for."""
        return self.loaded.value

    def said(self, *keys: str) -> str:
        """Digest of some parts of the spec."""
        body = json.dumps({key: self.loaded.plain.get(key) for key in keys}, sort_keys=True)
        return hashlib.sha256(body.encode()).hexdigest()


def untouched(spec: Crank) -> Simulator:
    """The simulator before anything was learned."""
    return Simulator.untouched(spec.task, spec.engine, sensors=spec.sensors)


def drawn_from(spec: Crank, simulator: Simulator) -> Belief:
    """What worlds are drawn from: what is believed, a little wider than the log says, and as the spec randomises."""
    whole = marginal.beside(spec.task.belief, _wider(spec, simulator.belief))
    return randomize(whole, spec.randomization.groups).belief


def asked_of(spec: Crank, simulator: Simulator) -> Belief:
    """What worlds a policy is judged in: what is believed; where episodes begin is the task's own."""
    return marginal.beside(spec.task.belief, _wider(spec, simulator.belief))


def explore(bench: Bench, turn: int) -> Step:
    """Slow random commands on the robot: what to learn from when no policy is fit to be tried yet."""
    spec = bench.spec
    numbers = [2_000_000 + i for i in range(spec.trials.explore)]

    def work(folder: Path) -> Mapping[str, Any]:
        return _attempted(bench, Random(hold_steps=spec.trials.hold_steps), numbers, folder)

    inputs = {"robot": bench.identity, "trials": bench.said("trials", "guard", "scene"), "numbers": str(numbers)}
    return Step(stage="explore", turn=turn, inputs=inputs, work=work, about=f"{len(numbers)} trials of slow commands")


def trials(bench: Bench, turn: int, exported: Done, *, who: str, after: int = 0) -> Step:
    """A policy on the robot, and `after` some trials as many again; the numbers are the same for whoever is tried."""
    spec = bench.spec
    count = min(max(after, spec.trials.episodes), max(spec.trials.most, spec.trials.episodes) - after)
    numbers = [10_000 * turn + after + i for i in range(count)]

    def work(folder: Path) -> Mapping[str, Any]:
        return _attempted(bench, load_bundle(exported.folder / BUNDLE), numbers, folder)

    inputs = {
        "robot": bench.identity,
        "policy": str(exported.said["bundle"]),
        "trials": bench.said("trials", "guard", "scene"),
        "numbers": f"{numbers[0]} to {numbers[-1]}",
    }
    about = f"{len(numbers)} {'more ' if after else ''}trials of the {who}"
    return Step(stage="trials", turn=turn, inputs=inputs, work=work, about=about)


def learned(bench: Bench, turn: int, simulator: Simulator, logs: Sequence[Done], *, alpha: float) -> Step:
    """Learn from every log, and compare with what was believed on what nobody has learned from.

    `alpha` is the probability, at most, of calling a simulator better that is not.
    """
    spec = bench.spec

    def work(folder: Path) -> Mapping[str, Any]:
        halves = [logbook.apart(logbook.read(log.folder / LOG), spec.trials.held_out) for log in logs]
        log = [one for half in halves for one in half.learned]
        how = learn.Asked(params=spec.learning.params, window_s=spec.learning.window_s, most=spec.learning.most)
        found = learn.learn(log, untouched(spec), asked=how)
        make_folder(folder / SIMULATOR)
        publish(folder / SIMULATOR / "belief.json", beliefs.text(found.simulator.belief).encode())
        newest = max(log.step.turn for log in logs)
        unseen = [
            one for log, half in zip(logs, halves, strict=True) if log.step.turn == newest for one in half.held_out
        ]
        errors = [
            learn.per_session(one, unseen, window_s=spec.learning.window_s) for one in (simulator, found.simulator)
        ]
        verdict = learn.judged(
            errors[0], errors[1], about=learn.digest(found.simulator), suite=learn.digest_of(unseen),
            alpha=alpha,
        )  # fmt: skip
        publish(folder / SIMULATOR / VERDICT, verdict.text().encode())
        return {
            "belief": beliefs.text(found.simulator.belief),
            "told": [[t.name, t.nominal, t.mean, t.spread, t.before, t.trusted] for t in found.told],
            "noise": dict(found.simulator.noise),
            "notes": list(found.notes),
            "before": float(errors[0].mean()),
            "after": float(errors[1].mean()),
            "held_out": len(unseen),
            "learned_from": len(log),
            "verdict": verdict.text(),
        }

    inputs = {
        "simulator": learn.digest(simulator),
        "log": " ".join(log.digest[:16] for log in logs),
        "learning": bench.said("learning", "scene", "engine", "unknowns", "trials"),
        "alpha": f"{alpha:.6g}",
    }
    return Step(stage="learn", turn=turn, inputs=inputs, work=work, about=f"the simulator, from {len(logs)} logs")


def taught(simulator: Simulator, done: Done) -> Simulator:
    """The simulator that a step has learned."""
    return replace(simulator, belief=beliefs.parse(str(done.said["belief"])), noise=dict(done.said["noise"]))


def trained(bench: Bench, turn: int, simulator: Simulator, before: Done | None) -> Step:
    """A policy in what is believed: from where the last training ended, or from nothing where that does not fit."""
    spec = bench.spec
    course = course_of(spec, simulator)
    goes_on = may_go_on(bench, before)

    def work(folder: Path) -> Mapping[str, Any]:
        begun = (before.folder / train.CHECKPOINT).read_bytes() if before is not None and goes_on else b""
        order = train.Order(replace(course, begun=begun), spec.trainer, folder)
        seen = train.run(order, bench.watch, resume=(folder / train.CHECKPOINT).is_file())
        if seen.stopped:
            raise KeyboardInterrupt
        last = seen.history[-1].figures
        steps = float(last.get("steps", 0.0))
        return {"checkpoint": seen.checkpoint, "steps": steps, "laps": seen.laps, "shape": shape(bench)}

    inputs = {
        "belief": digest(beliefs.text(drawn_from(spec, simulator)).encode()),
        "spec": bench.said(*TRAINS, "unknowns", "goes_on"),
    }
    if before is not None and goes_on:
        inputs["begun"] = str(before.said["checkpoint"])
    return Step(stage="train", turn=turn, inputs=inputs, work=work, about="a policy in what is believed")


def may_go_on(bench: Bench, before: Done | None) -> bool:
    """Whether a training may begin with the networks of the one before."""
    spec = bench.spec
    fits = before is not None and shape(bench) == before.said["shape"]
    return fits and spec.goes_on and isinstance(spec.trainer, Ppo)


def shape(bench: Bench) -> str:
    """Of a trainer's networks: others cannot be gone on with."""
    said = bench.loaded.plain["trainer"]
    return (
        json.dumps({k: v for k, v in said.items() if k in {"use", "actor", "critic"}}) if isinstance(said, dict) else ""
    )


def course_of(spec: Crank, simulator: Simulator) -> Course:
    """What a policy learns from."""
    believed = drawn_from(spec, simulator)
    task = replace(reweighted(spec.task, spec.reward), belief=believed)
    course = Course(task=task, engine=spec.engine, sensors=spec.sensors, belief=believed, seed=spec.seed)
    worlds = tuple(World(each.weight, each.params, each.initial) for each in spec.scenarios)
    return beset(course, worlds, spec.injected)


def exported(bench: Bench, turn: int, policy: Done) -> Step:
    """The trained network as a bundle that is provably the same."""
    spec = bench.spec

    def work(folder: Path) -> Mapping[str, Any]:
        found = export_checkpoint(policy.folder / train.CHECKPOINT, folder / BUNDLE, engine=spec.engine, task=spec.task)
        return {"bundle": found.bundle.digest, "parity": found.parity.action}

    inputs = {"checkpoint": str(policy.said["checkpoint"]), "scene": bench.said("scene", "engine", "unknowns")}
    return Step(stage="export", turn=turn, inputs=inputs, work=work, about="the network as a bundle")


def validated(bench: Bench, turn: int, simulator: Simulator, bundle: Done) -> Step:
    """The bundle in another simulation than it was trained in, over what is believed, and at its edges."""
    spec = bench.spec
    suite = scenarios(spec, simulator, turn)

    def work(folder: Path) -> Mapping[str, Any]:
        policy = load_bundle(bundle.folder / BUNDLE)
        verdict, outcomes = judged(spec, simulator, policy, suite)
        publish(folder / VERDICT, verdict.text().encode())
        publish(folder / "failures.json", json.dumps([
            scenario.body() for scenario, outcome in outcomes if outcome != "success"
        ]).encode())  # fmt: skip
        publish(folder / failures.OUTCOMES, failures.text(outcomes).encode())
        share = float(np.mean([outcome == "success" for _, outcome in outcomes]))
        return {"verdict": verdict.text(), "status": verdict.status, "success": share, "episodes": len(outcomes)}

    inputs = {
        "policy": str(bundle.said["bundle"]),
        "validation": bench.said("validation", "scene", "unknowns"),
        "suite": hashlib.sha256(" ".join(one.hash for one in suite).encode()).hexdigest(),
    }
    return Step(stage="validate", turn=turn, inputs=inputs, work=work, about="the bundle in another simulation")


def scenarios(spec: Crank, simulator: Simulator, turn: int) -> list[Scenario]:
    """What a policy is asked: worlds as they are believed, and worlds where that ends."""
    believed = asked_of(spec, simulator)
    n = spec.validation.episodes
    kinds: tuple[Kind, ...] = ("nominal", "edge")
    found: list[Scenario] = []
    for k, kind in enumerate(kinds):
        seeds = chance.seeds(spec.seed, np.arange(n) + 100_000 * turn + 50_000 * k, realm=REALM)
        points = believed.sample(seeds)
        if kind == "edge":
            points = replace(points, values=_outwards(points.values))
        for i in range(n):
            name = f"{kind} {i}"
            found.append(
                Scenario(name=name, category=kind, task=spec.task.name, params=points.at(i), seed=int(seeds[i]))
            )
    return found


def judged(
    spec: Crank, simulator: Simulator, policy: Policy, suite: Sequence[Scenario]
) -> tuple[Verdict, list[tuple[Scenario, str]]]:
    """A verdict by the sequential judge, and how each scenario that was run ended."""
    by_hash = {one.hash: one for one in suite}
    categories = [
        Category(name=kind, scenarios=tuple(o.hash for o in suite if o.category == kind), rate=spec.validation.rate)
        for kind in dict.fromkeys(o.category for o in suite)
    ]
    task = replace(spec.task, belief=asked_of(spec, simulator))
    recipe = Recipe(policy=policy, task=task, engine=spec.validation.engine, sensors=spec.sensors, realm=REALM)
    judge = Judge(policy=policy.digest, categories=categories, alpha=spec.validation.alpha)
    ended: list[tuple[Scenario, str]] = []
    while wanted := judge.wanting(32):
        some = [by_hash[one] for one in wanted]
        for block in perform(recipe, some, batch=64):
            judge.take(block)
            outcomes: list[int] = block.outcomes.tolist()
            ended += [(by_hash[h], OUTCOMES[o]) for h, o in zip(block.scenarios, outcomes, strict=True)]
    suite_digest = hashlib.sha256(" ".join(by_hash).encode()).hexdigest()
    verdict = Verdict(
        policy=policy.digest, suite=suite_digest, realm=REALM, alpha=spec.validation.alpha, findings=judge.findings()
    )
    return verdict, ended


def _outwards(values: Array) -> Array:
    """Points of a belief, moved to where it ends: as far from its middle, in spreads, as the farthest third."""
    middle, spread = values.mean(axis=0), values.std(axis=0)
    low, high = values.min(axis=0), values.max(axis=0)
    off = np.where(spread > 0, (values - middle) / np.maximum(spread, 1e-12), 0.0)
    return np.clip(middle + np.sign(off) * np.maximum(np.abs(off), 1.5) * spread, low, high)


def _attempted(bench: Bench, policy: Policy, numbers: Sequence[int], folder: Path) -> Mapping[str, Any]:
    if bench.reality is None:
        raise ValueError("no robot to try it on")
    spec = bench.spec
    with bench.reality.open(spec.task, min(spec.trials.places, len(numbers))) as robot:
        block = attempt(policy, spec.task, robot, numbers, seed=spec.seed, guard=spec.guard.guard)
    counts = {name: int(np.sum(block.outcomes == code)) for code, name in enumerate(OUTCOMES)}
    codes: list[int] = block.outcomes.tolist()
    outcomes = [OUTCOMES[code] for code in codes]
    log = logbook.keep(block, spec.task, folder / LOG)
    steps = int(block.lengths.sum())
    return {"log": log, "counts": counts, "outcomes": outcomes, "numbers": list(numbers), "steps": steps}


def _wider(spec: Crank, belief: Belief) -> Belief:
    """What was learned, no narrower than the spec lets it be; what was not stays as it is."""
    if isinstance(belief, beliefs.Joint):
        return beliefs.Joint(tuple(_wider(spec, part) for part in belief.parts))
    if not isinstance(belief, Gaussian):
        return belief
    how = spec.learning
    covariance = np.array(belief.covariance) * how.widen**2 + np.diag((how.floor * np.array(belief.mean)) ** 2)
    return replace(belief, covariance=tuple(tuple(row) for row in covariance.tolist()))
