"""How often does the failure compiler name the right cause first? Causes are planted, ten of each, and diagnosed blind.

Policies are not trained here, they are planted too: an expert that was made for the nominal world stands for one that
was trained well in it, a crippled one for a network that is too small, one that does nothing for what a reward against
effort leads to. Worlds are simulated by another engine than the one that is believed.

    python benchmarks/attribution.py [--cases 10] [--full]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from simops.core import chance
from simops.core.belief import Belief, Box
from simops.core.failure import attribute
from simops.core.patch import CAUSES, Cause
from simops.core.perform import run as perform
from simops.core.policy import Zero
from simops.core.protocols import Engine, Policy
from simops.core.rollout import Recipe, rollout
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.core.simulator import Simulator
from simops.core.task import Task
from simops.core.training import reweighted
from simops.core.trajectory import OUTCOMES, Trajectory
from simops.ops.counterfactual import Ground, evidence
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum
from simops.testing.miswired import Miswired, Wiring

BELIEVED: Engine = Pendulum(step_s=0.005)
WORLD: Engine = Mujoco(threads=1)
TASK = pendulum()
TRIALS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--full", action="store_true", help="forty of each")
    args = parser.parse_args()
    found: dict[str, Counter[str]] = {cause: Counter() for cause in CAUSES if cause != "unknown"}
    for planted, what, ground in cases(40 if args.full else args.cases):
        cause, why = attribute(evidence(ground))
        found[planted][cause] += 1
        print(f"{planted:<10} {what:<44} {'right' if cause == planted else f'WRONG: {cause}':<18} {why}", flush=True)
    right = sum(guesses[cause] for cause, guesses in found.items())
    total = sum(guesses.total() for guesses in found.values())
    for cause, guesses in found.items():
        print(f"{cause:<10} {guesses[cause]} of {guesses.total()} right; guessed {dict(guesses)}")
    print(f"{right} of {total} right at the first guess ({right / total:.0%}); bar 85 % over 50")


def cases(n: int) -> Iterator[tuple[Cause, str, Ground]]:
    """Every planted case: what it is, in words, and what is diagnosed."""
    draw = chance.uniform(chance.seeds(7, np.arange(n), realm="attribution"), "case", (5,))
    for i in range(n):
        u = draw[i]
        yield "simulator", *_simulator(u, i)
        yield "contract", *_contract(u, i)
        yield "capacity", *_capacity(u)
        yield "range", *_range(u, i)
        yield "reward", *_reward(u)


def _simulator(u: Array, i: int) -> tuple[str, Ground]:
    mass, damping = 2.0 + 0.8 * u[0], 0.1 + 0.3 * u[1]
    world = replace(TASK, belief=_point(mass, damping))
    ground = _ground(Expert(), trials=_trials(Expert(), world, WORLD, seed=i))
    return f"the bob weighs {mass:.2f} kg, damping {damping:.2f}", ground


def _contract(u: Array, i: int) -> tuple[str, Ground]:
    names = ("torque", "angle", "rate")
    which = names[i % 3]
    flip = Wiring.flip(1, 0)
    wires = Miswired(WORLD, command=flip) if which == "torque" else Miswired(WORLD, readings={which: flip})
    world = replace(TASK, belief=_point(0.95 + 0.1 * u[0], 0.03 + 0.04 * u[1]))
    ground = _ground(Expert(), trials=_trials(Expert(), world, wires, seed=i))
    return f"{which} is turned round", ground


def _capacity(u: Array) -> tuple[str, Ground]:
    weak = Expert(pump=0.02 + 0.1 * u[0], stiffness_nm_rad=2.0 + 8.0 * u[1], damping_nms_rad=3.0 * u[2])
    return f"a policy that pumps {weak.pump:.2f} instead of 2", _judged(weak)


def _range(u: Array, i: int) -> tuple[str, Ground]:
    wide = replace(TASK, belief=_box((1.8 + 0.2 * u[0], 2.2 + 0.6 * u[1]), (0.05, 0.2 + 0.2 * u[2])))
    low, high = wide.belief.low[0], wide.belief.high[0]  # type: ignore[attr-defined]
    return f"trained at 0.95 to 1.05 kg, asked at {low:.2f} to {high:.2f}", _judged(Expert(), wide, seed=i)


def _reward(u: Array) -> tuple[str, Ground]:
    effort = -(3.0 + 20.0 * u[0])
    ground = _judged(Zero())
    return f"effort weighs {effort:.1f}", replace(ground, task=reweighted(TASK, {"effort": effort}))


def _ground(policy: Policy, *, trials: tuple[Trajectory, ...] = (), failed: tuple[Scenario, ...] = ()) -> Ground:
    believed = _box((0.95, 1.05), (0.03, 0.07))
    return Ground(
        policy=policy,
        task=TASK,
        simulator=Simulator(task=TASK, engine=BELIEVED, belief=believed),
        trained_in=believed,
        judge=WORLD,
        failed=failed,
        trials=trials,
    )


def _judged(policy: Policy, asked: Task | None = None, *, seed: int = 0, n: int = 16) -> Ground:
    """With what fails in the engine that judges, in worlds as they are believed or as they are asked."""
    asked = asked or replace(TASK, belief=_box((0.95, 1.05), (0.03, 0.07)))
    seeds = chance.seeds(seed, np.arange(n), realm="asked")
    points = asked.belief.sample(seeds)
    some = [
        Scenario(name=f"{i}", category="nominal", task=TASK.name, params=points.at(i), seed=int(seeds[i]))
        for i in range(n)
    ]
    recipe = Recipe(policy=policy, task=TASK, engine=WORLD, realm="asked")
    ended = [int(o) for block in perform(recipe, some) for o in block.outcomes]
    failed = tuple(one for one, outcome in zip(some, ended, strict=True) if OUTCOMES[outcome] != "success")
    return _ground(policy, failed=failed)


def _trials(policy: Policy, world: Task, engine: Engine, *, seed: int) -> tuple[Trajectory, ...]:
    return tuple(rollout(policy, world, engine, n=TRIALS, seed=seed))


def _point(mass: float, damping: float) -> Belief:
    return _box((mass, mass), (damping, damping))


def _box(mass: tuple[float, float], damping: tuple[float, float]) -> Belief:
    low, high = (mass[0], damping[0], 0.4), (mass[1], damping[1], 0.4)
    return Box(TASK.belief.params, low, high)


if __name__ == "__main__":
    main()
