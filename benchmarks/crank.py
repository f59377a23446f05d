"""Does the crank help? Sealed success and prediction error at equal budget: the crank beside what one would do instead.

Every arm may train for the same number of laps in all, and try the robot equally often. A seed is another hidden
reality and another training. Each is then tried on the same fresh trials that nothing has seen. Losses are printed too.

    python -m benchmarks.crank [--seeds 5] [--first 1] [--laps 112] [--turns 1] [--trials 200] [--reality FILE] [--full]

Every arm trains twice: a first time, and then on from its own networks, with turns times as many laps.

  crank        train, try, learn the simulator, patch, train on in it, and so on; what is live at the end
  none         no randomization: the nominal world, twice
  wide         uniform randomization, wide enough to hold every reality of the far family, twice
  identified   the nominal world; then its trials identify the params, and it goes on at exactly those
  parts        the nominal world; then a network learns from its trials what torque the nominal numbers leave
               unexplained, and it goes on in the nominal world with that network in it
  longer       just train longer, as the task randomises, twice
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.parts import Parts
from simops.core import marginal
from simops.core.belief import Belief, Box
from simops.core.policy import Random
from simops.core.protocols import Engine, Policy
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
from simops.ops.train import CHECKPOINT
from simops.sim.mujoco import Mujoco
from simops.spec.crank import Crank, load_crank
from simops.spec.randomize import randomize

SPEC = Path(__file__).parents[1] / "examples" / "crank_pendulum" / "crank.yaml"
FAR = SPEC.with_name("far.yaml")
ARMS = ("crank", "none", "wide", "identified", "parts", "longer")
FRESH, LEFT_OUT = 5_000_000, 6_000_000
WIDE = {"bob_mass": (0.5, 2.2), "hinge_damping": (0.0, 0.5), "motor_delay": (0.0, 0.1), "hinge_stiction": (0.0, 0.2)}
"""What the wide arm draws from; every reality of the far family lies within."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--laps", type=int, default=112)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--reality", type=Path, default=FAR, help="file of a sealed pendulum")
    parser.add_argument("--arms", nargs="*", default=ARMS)
    parser.add_argument("--full", action="store_true", help="ten seeds and three turns")
    args = parser.parse_args()
    seeds, turns = (10, 3) if args.full else (args.seeds, args.turns)
    found: dict[str, list[float]] = {arm: [] for arm in args.arms}
    print(
        f"{'seed':>4} {'arm':<11} {'sealed success':<26} {'held-out error':>14} {'laps':>5} {'cpu min':>8}", flush=True
    )
    for seed in range(args.first, args.first + seeds):
        for arm in args.arms:
            began = spent_s()
            spec = load_crank(SPEC, overrides=settings(seed, args.laps, args.reality)).value
            policy, simulator, laps = arms(arm, spec, seed, args.laps, turns)
            minutes = (spent_s() - began) / 60
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
    came, on = untouched(spec), laps * turns
    if arm == "crank":
        return cranked(spec, seed, laps, turns)
    first = {"wide": wide(spec), "longer": spec.task.belief}.get(arm, nominal(spec))
    policy, begun = begun_with(spec, first, laps)
    if arm == "parts":
        return (*with_parts(spec, Parts.taught(tries(spec, seed, policy)), on, begun), laps + on)
    belief, found = first, came
    if arm == "identified":
        found = learn.learn(tries(spec, seed, policy), came).simulator
        belief = middle(spec, found)
    return trained(spec, belief, on, begun)[0], found, laps + on


def with_parts(spec: Crank, parts: Parts, laps: int, begun: bytes) -> tuple[Policy, Simulator]:
    """A policy trained on in the nominal world with learned parts in it, and that simulator."""
    task, engine = spec.scene.task, Mujoco(motor=parts)
    plain = replace(spec, unknowns=())
    return trained(plain, nominal(plain), laps, begun, engine)[0], Simulator.untouched(task, engine)


_BEGUN: dict[str, tuple[Policy, bytes]] = {}
"""First trainings: arms that begin in the same world have them in common, and with the crank's."""


def begun_with(spec: Crank, belief: Belief, laps: int) -> tuple[Policy, bytes]:
    """The first training in a world, as often as one likes."""
    key = _key(spec, belief, laps)
    if key not in _BEGUN:
        _BEGUN[key] = trained(spec, belief, laps)
    return _BEGUN[key]


def _key(spec: Crank, belief: Belief, laps: int) -> str:
    return f"{spec.seed} {laps} {belief!r}"


def spent_s() -> float:
    """Processor time of this process and of the robots that it started and ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def tries(spec: Crank, seed: int, policy: Policy) -> list[Trajectory]:
    """What a policy did on the robot, and what a few slow commands did, as many as a turn of the crank has."""
    with reality(spec, seed).open(spec.task, 32) as robot:
        count = spec.trials.episodes
        log = [
            *attempt(policy, spec.task, robot, range(count)),
            *attempt(Random(hold_steps=10), spec.task, robot, range(count, count + spec.trials.explore)),
        ]
    return [logbook.let_out(one) for one in log]


def middle(spec: Crank, found: Simulator) -> Belief:
    """Exactly what was identified."""
    whole = marginal.beside(spec.task.belief, found.belief)
    values = marginal.moments(whole).mean
    point = tuple(float(np.clip(v, p.low, p.high)) for v, p in zip(values, whole.params, strict=True))
    return Box(whole.params, point, point)


def settings(seed: int, laps: int, where: Path) -> list[str]:
    """What of the example is another here: the gate asks little, as a first policy can do little in a far world."""
    return [
        "validation.rate=0.3",
        f"seed={seed}",
        f"trainer.laps={laps}",
        f"reality.path={where.resolve()}",
        f"reality.seed={seed}",
    ]


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
        first = {done.step.stage: done.folder for done in standing.turns[0].steps}
        begun = (first["train"] / CHECKPOINT).read_bytes()
        _BEGUN[_key(spec, spec.task.belief, laps)] = load_bundle(first["export"] / BUNDLE), begun
        return load_bundle(standing.champion.folder / BUNDLE), standing.simulator, laps * len(trainings)


def trained(
    spec: Crank, belief: Belief, laps: int, begun: bytes = b"", engine: Engine | None = None
) -> tuple[Policy, bytes]:
    """A policy in such worlds, from nothing or from a checkpoint, and its own; episodes begin as the spec has them."""
    trainer = spec.trainer
    if not isinstance(trainer, Ppo):
        raise SystemExit("this benchmark counts laps of ppo")
    from simops.core.training import Course

    drawn = randomize(belief, spec.randomization.groups).belief
    task = replace(spec.task, belief=drawn)
    course = Course(task=task, engine=engine or spec.engine, belief=drawn, seed=spec.seed, begun=begun)
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
    """Everything that may be unknown, wide open."""
    params = spec.task.belief.params
    low, high = zip(*(WIDE.get(param.name, (param.nominal, param.nominal)) for param in params), strict=True)
    return Box(params, low, high)


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
