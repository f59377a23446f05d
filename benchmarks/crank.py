"""Does the crank help? Sealed success and prediction error at equal budget: the crank beside what one would do instead.

Every arm may train for the same number of laps in all, and try the robot equally often. A seed is another hidden
reality and another training. Each is then tried on the same fresh trials that nothing has seen. Losses are printed too.

    python benchmarks/crank.py [--seeds 5] [--laps 112] [--turns 1] [--trials 200] [--reality FILE] [--full]

  crank        train, try, learn the simulator, patch, train in it, and so on; what is live at the end
  none         no randomization: the nominal world, all laps
  wide         wide uniform randomization of everything that may be unknown, all laps
  identified   half the laps in the nominal world, its trials identify the params, the rest goes on at exactly those
  longer       just train longer, as the task randomises

An arm of learned parts alone, a network in the simulator in place of identified numbers, is not there: the crank has
no such part to switch on by itself.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from simops.core import marginal
from simops.core.belief import Belief, Box
from simops.core.policy import Random
from simops.core.protocols import Policy
from simops.core.simulator import Simulator
from simops.core.trajectory import Trajectory
from simops.core.trial import attempt
from simops.deploy.bundle import load as load_bundle
from simops.gate import rate
from simops.learn.ppo import Ppo
from simops.ops import learn, logbook
from simops.ops.crank import crank, load_order
from simops.ops.sealed import Sealed
from simops.ops.stages import BUNDLE, untouched
from simops.spec.crank import Crank, load_crank
from simops.spec.randomize import randomize

SPEC = Path(__file__).parents[1] / "examples" / "crank_pendulum" / "crank.yaml"
ARMS = ("crank", "none", "wide", "identified", "longer")
FRESH, LEFT_OUT = 5_000_000, 6_000_000
WIDE = 0.6
"""Of a param's nominal value, to both sides; of its range, where it is nominally zero."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--laps", type=int, default=112)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--reality", type=Path, default=SPEC.parent / "reality.yaml", help="file of a sealed pendulum")
    parser.add_argument("--arms", nargs="*", default=ARMS)
    parser.add_argument("--full", action="store_true", help="ten seeds and three turns")
    args = parser.parse_args()
    seeds, turns = (10, 3) if args.full else (args.seeds, args.turns)
    found: dict[str, list[float]] = {arm: [] for arm in args.arms}
    print(
        f"{'seed':>4} {'arm':<11} {'sealed success':<26} {'held-out error':>14} {'laps':>5} {'minutes':>8}", flush=True
    )
    for seed in range(args.first, args.first + seeds):
        for arm in args.arms:
            began = time.perf_counter()
            spec = load_crank(SPEC, overrides=settings(seed, args.laps, args.reality)).value
            policy, simulator, laps = arms(arm, spec, seed, args.laps, turns)
            minutes = (time.perf_counter() - began) / 60
            good, error = tried(spec, seed, policy, simulator, args.trials)
            found[arm].append(good / args.trials)
            within = rate.interval(good, args.trials - good, 0.05)
            said = f"{good / args.trials:6.1%} [{within.low:.1%}, {within.high:.1%}]"
            print(f"{seed:>4} {arm:<11} {said:<26} {error:>14.3f} {laps:>5} {minutes:>8.1f}", flush=True)
    print("\nmedian over seeds, and on how many seeds the crank was better, equal, worse", flush=True)
    for arm, shares in found.items():
        pairs = list(zip(found.get("crank", []), shares, strict=False))
        counts = [sum(np.sign(a - b) == s for a, b in pairs) for s in (1, 0, -1)]
        print(f"{arm:<11} {np.median(shares):6.1%}   {counts[0]} better, {counts[1]} equal, {counts[2]} worse")


def arms(arm: str, spec: Crank, seed: int, laps: int, turns: int) -> tuple[Policy, Simulator, int]:
    """The policy and the simulator that an arm ends with, and the laps it took."""
    whole = laps * (turns + 1)
    came = untouched(spec)
    if arm == "crank":
        return cranked(spec, seed, laps, turns)
    if arm == "none":
        return trained(spec, nominal(spec), whole)[0], came, whole
    if arm == "wide":
        return trained(spec, wide(spec), whole)[0], came, whole
    if arm == "longer":
        return trained(spec, spec.task.belief, whole)[0], came, whole
    first, begun = trained(spec, nominal(spec), whole // 2)
    with reality(spec, seed).open(spec.task, 32) as robot:
        count = spec.trials.episodes
        log = [
            *attempt(first, spec.task, robot, range(count)),
            *attempt(Random(hold_steps=10), spec.task, robot, range(count, count + 6)),
        ]
    found = learn.learn([logbook.let_out(one) for one in log], came).simulator
    middle = marginal.moments(marginal.beside(spec.task.belief, found.belief)).mean
    params = marginal.beside(spec.task.belief, found.belief).params
    point = tuple(float(np.clip(v, p.low, p.high)) for v, p in zip(middle, params, strict=True))
    return trained(spec, Box(params, point, point), whole - whole // 2, begun)[0], found, whole


def settings(seed: int, laps: int, where: Path) -> list[str]:
    """What of the example is another here."""
    return [f"seed={seed}", f"trainer.laps={laps}", f"reality.path={where.resolve()}", f"reality.seed={seed}"]


def cranked(spec: Crank, seed: int, laps: int, turns: int) -> tuple[Policy, Simulator, int]:
    """What is live after a crank whose trainings are all of the same length: no patch may buy more laps."""
    with tempfile.TemporaryDirectory() as folder:
        changes = [*settings(seed, laps, sealed_at(spec)), "patches.autonomy=propose"]
        order = load_order(SPEC, turns=turns, overrides=changes, out=Path(folder) / "out")
        run = crank(order, lambda _: None)
        standing = run.standing
        if standing is None or standing.champion is None:
            raise SystemExit("nothing passed its gate")
        trainings = {done.step.key for turn in standing.turns for done in turn.steps if done.step.stage == "train"}
        return load_bundle(standing.champion.folder / BUNDLE), standing.simulator, laps * len(trainings)


def trained(spec: Crank, belief: Belief, laps: int, begun: bytes = b"") -> tuple[Policy, bytes]:
    """A policy in such worlds, from nothing or from a checkpoint, and its own; episodes begin as the spec has them."""
    trainer = spec.trainer
    if not isinstance(trainer, Ppo):
        raise SystemExit("this benchmark counts laps of ppo")
    from simops.core.training import Course

    drawn = randomize(belief, spec.randomization.groups).belief
    course = Course(
        task=replace(spec.task, belief=drawn), engine=spec.engine, belief=drawn, seed=spec.seed, begun=begun
    )
    with replace(trainer, laps=laps).open(course) as training:
        while training.done < training.laps:
            training.advance()
        return training.policy, training.checkpoint()


def nominal(spec: Crank) -> Belief:
    """The nominal world alone."""
    params = spec.task.belief.params
    point = tuple(param.nominal for param in params)
    return Box(params, point, point)


def wide(spec: Crank) -> Belief:
    """Everything that changes the physics, wide open."""
    params = spec.task.belief.params
    low, high = list[float](), list[float]()
    for param in params:
        by = WIDE * (abs(param.nominal) or (param.high if np.isfinite(param.high) else 0.0)) if param.changes else 0.0
        low.append(max(param.low, param.nominal - by))
        high.append(min(param.high, param.nominal + by))
    return Box(params, tuple(low), tuple(high))


def reality(spec: Crank, seed: int) -> Sealed:
    """The hidden reality of a seed."""
    return Sealed(sealed_at(spec), seed)


def sealed_at(spec: Crank) -> Path:
    """Its file."""
    if spec.reality is None:
        raise SystemExit("this benchmark wants a reality")
    return SPEC.parent / spec.reality.path


def tried(spec: Crank, seed: int, policy: Policy, simulator: Simulator, trials: int) -> tuple[int, float]:
    """Successes on fresh trials, and the simulator's error on a log that nobody has learned from."""
    with reality(spec, seed).open(spec.task, 64) as robot:
        block = attempt(policy, spec.task, robot, range(FRESH, FRESH + trials))
        unseen = attempt(Random(hold_steps=10), spec.task, robot, range(LEFT_OUT, LEFT_OUT + 16))
    log: Sequence[Trajectory] = [logbook.let_out(one) for one in unseen]
    return int(np.sum(block.outcomes == 0)), float(learn.per_session(simulator, log).mean())


if __name__ == "__main__":
    main()
