"""Does the doctor name what makes a policy fail in another world? Causes are planted, alone and in pairs.

Every world that fails also differs a little, and harmlessly, in all its other parts: body, motor, friction, sensors,
solver, delay and where it begins. Clean pairs have these differences alone. A cause counts as named when it comes
first; of a pair, when the two come first and second. n of n is shown with the bound that 95 % confidence allows.
Run it from the project: `python -m benchmarks.doctor_gap`, `--full` for the Go2 and the Panda too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import final

from simops.core.belief import Belief, Box
from simops.core.protocols import Engine, Sensor
from simops.core.task import Task
from simops.gate.culprit import Diagnosis
from simops.ops.build import expert_of
from simops.ops.gap import Case, World, explain
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.sim.scene import Physics
from simops.sim.sensor import Noise
from simops.spec.gap import Wires
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity

CLEAN = 10


@final
@dataclass(frozen=True, kw_only=True)
class Plant:
    """A difference between two worlds."""

    factor: str
    what: str
    params: Mapping[str, float] = field(default_factory=dict[str, float])
    sensors: tuple[Sensor, ...] | None = None
    engine: Engine | None = None
    delay_steps: int | None = None
    wires: Wires | None = None


@final
@dataclass(frozen=True)
class Bench:
    """A task, the world its expert works in, harmless differences, and causes."""

    task: Task
    world: World
    harmless: tuple[Plant, ...]
    causes: tuple[Plant, ...]
    pairs: tuple[tuple[int, int], ...]
    episodes: int


def fixed(belief: Belief, params: Mapping[str, float]) -> Belief:
    """The belief with some params known."""
    assert isinstance(belief, Box)
    low, high = list(belief.low), list(belief.high)
    for i, param in enumerate(belief.params):
        if param.name in params:
            low[i] = high[i] = params[param.name]
    return replace(belief, low=tuple(low), high=tuple(high))


def with_(world: World, plants: tuple[Plant, ...]) -> World:
    """The world with these differences, the later ones over the earlier."""
    for plant in plants:
        world = replace(
            world,
            belief=fixed(world.belief, plant.params),
            sensors=world.sensors if plant.sensors is None else plant.sensors,
            engine=plant.engine or world.engine,
            delay_steps=world.delay_steps if plant.delay_steps is None else plant.delay_steps,
            wires=plant.wires or world.wires,
        )
    return world


def flipped(size: int, *which: int) -> Wires:
    return Wires(action_gain=tuple(-1.0 if i in which else 1.0 for i in range(size)))


def exchanged(size: int, a: int, b: int) -> Wires:
    order = list(range(size))
    order[a], order[b] = b, a
    return Wires(action_order=tuple(order))


def of_pendulum() -> Bench:
    task = pendulum()
    engine = Pendulum(step_s=0.005)
    world = World(engine=engine, belief=task.belief, initial={}, wires=Wires())
    harmless = (
        Plant(factor="body", what="a little heavier", params={"bob_mass": 1.05}),
        Plant(factor="motor", what="a little stiffer", params={"hinge_damping": 0.08}),
        Plant(factor="sensor", what="a little noise", sensors=(Noise(std={"rate": 0.02}),)),
        Plant(factor="contact", what="a finer step", engine=Pendulum(step_s=0.004)),
        Plant(factor="initial state", what="begins elsewhere", params={"start_spread_rad": 0.5}),
    )
    causes = (
        Plant(factor="body", what="a bob of 5 kg", params={"bob_mass": 5.0}),
        Plant(factor="motor", what="a hinge that brakes", params={"hinge_damping": 2.0}),
        Plant(factor="contract", what="torque the other way", wires=Wires(action_gain=(-1.0,))),
        Plant(factor="contract", what="torque a tenth", wires=Wires(action_gain=(0.1,))),
        Plant(factor="contract", what="sine and cosine exchanged", wires=Wires(observation_order=(1, 0, 2))),
        Plant(factor="contract", what="torque off by 3 N m", wires=Wires(action_offset=(3.0,))),
        Plant(factor="delay", what="200 ms late", delay_steps=10),
        Plant(factor="sensor", what="an angle off by about 1 rad", sensors=(Noise(bias={"angle": 1.0}),)),
        Plant(factor="sensor", what="a rate in noise", sensors=(Noise(std={"rate": 5.0}),)),
        Plant(factor="contact", what="another gravity", engine=Pendulum(step_s=0.005, gravity_m_s2=30.0)),
    )
    return Bench(task, world, harmless, causes, ((0, 2), (1, 6), (3, 7), (0, 8), (4, 6), (6, 8), (5, 1)), 64)


def of_go2() -> Bench:
    task = replace(velocity(), horizon_s=3.0)
    engine = Mujoco(threads=2)
    still = {"payload_mass_kg": 0.0, "friction_coefficient": 0.8, "delay_s": 0.0, "start_speed": 0.2}
    belief = fixed(task.belief, {**{param.name: param.nominal for param in task.belief.params}, **still})
    world = World(engine=engine, belief=belief, initial={"command": (0.7, 0.0, 0.0)}, wires=Wires())
    harmless = (
        Plant(factor="body", what="a little heavier", params={"payload_mass_kg": 0.3}),
        Plant(factor="friction", what="a little smoother", params={"friction_coefficient": 0.75}),
        Plant(factor="motor", what="a little softer", params={"kp_scale": 0.97, "motor_strength_scale": 0.98}),
        Plant(factor="sensor", what="a little noise", sensors=(Noise(std={"gyro": 0.02}),)),
        Plant(factor="contact", what="another solver setting", engine=Mujoco(threads=2, physics=Physics(impratio=8.0))),
        Plant(factor="initial state", what="begins elsewhere", params={"start_speed": 0.25}),
    )
    causes = (
        Plant(factor="contract", what="two joints exchanged", wires=exchanged(12, 1, 2)),
        Plant(factor="contract", what="a joint the other way", wires=flipped(12, 1)),
        Plant(factor="delay", what="160 ms late", delay_steps=8),
        Plant(factor="motor", what="motors at a fifth", params={"motor_strength_scale": 0.2}),
        Plant(factor="motor", what="servos at a third", params={"kp_scale": 0.3}),
        Plant(
            factor="initial state",
            what="begins pushed and crouched",
            params={"start_speed": 1.0, "start_joint_spread_rad": 0.3},
        ),
        Plant(factor="sensor", what="a tilted level", sensors=(Noise(bias={"base_quaternion": 0.5}),)),
        Plant(factor="body", what="10 kg more", params={"payload_mass_kg": 10.0}),
    )
    return Bench(task, world, harmless, causes, ((0, 5), (2, 7), (3, 6), (4, 2)), 24)


def of_panda() -> Bench:
    task = pick_and_place()
    engine = Mujoco(threads=2)
    belief = fixed(task.belief, {"object_mass": 0.2, "friction_coefficient": 0.6})
    world = World(engine=engine, belief=belief, initial={}, wires=Wires())
    harmless = (
        Plant(factor="body", what="a little heavier", params={"object_mass": 0.22}),
        Plant(factor="friction", what="a little smoother", params={"friction_coefficient": 0.55}),
        Plant(factor="sensor", what="a little noise", sensors=(Noise(std={"cube_position": 0.0005}),)),
        Plant(factor="contact", what="another solver setting", engine=Mujoco(threads=2, physics=Physics(impratio=8.0))),
    )
    causes = (
        Plant(factor="contract", what="a joint the other way", wires=flipped(8, 1)),
        Plant(factor="contract", what="two joints exchanged", wires=exchanged(8, 3, 5)),
        Plant(factor="delay", what="1.2 s late", delay_steps=30),
        Plant(factor="friction", what="a cube of ice", params={"friction_coefficient": 0.02}),
        Plant(factor="sensor", what="a cube seen elsewhere", sensors=(Noise(bias={"cube_position": 0.05}),)),
        Plant(factor="body", what="a cube of 4 kg", params={"object_mass": 4.0}),
    )
    return Bench(task, world, harmless, causes, ((0, 3), (4, 2), (3, 4)), 24)


def judged(bench: Bench, plants: tuple[Plant, ...], seed: int) -> Diagnosis:
    """What the doctor says about a world with these differences and all the harmless ones."""
    used = {plant.factor for plant in plants}
    mild = tuple(plant for plant in bench.harmless if plant.factor not in used)
    policy = expert_of(bench.task.expert)
    return explain(Case(policy, bench.task, bench.world, with_(bench.world, (*mild, *plants)), bench.episodes, seed))


def planted(bench: Bench) -> Iterator[tuple[Plant, ...]]:
    yield from ((cause,) for cause in bench.causes)
    yield from ((bench.causes[a], bench.causes[b]) for a, b in bench.pairs)


def named(found: Diagnosis, plants: tuple[Plant, ...]) -> bool:
    first = [share.factors[0] for share in found.culprits if len(share.factors) == 1][: len(plants)]
    return set(first) == {plant.factor for plant in plants}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the Go2 and the Panda too")
    args = parser.parse_args()
    began = time.perf_counter()
    total = right = clean = alarms = 0
    for bench in (of_pendulum(), *((of_go2(), of_panda()) if args.full else ())):
        for number, plants in enumerate(planted(bench)):
            found = judged(bench, plants, number)
            good = named(found, plants)
            total, right = total + 1, right + good
            said = ", ".join(f"{' with '.join(s.factors)} {s.share:.0%}" for s in found.culprits) or "nothing"
            what = " and ".join(f"{plant.what} ({plant.factor})" for plant in plants)
            rates = f"{found.works:.0%} -> {found.fails:.0%}"
            print(f"{'named ' if good else 'MISSED'}  {bench.task.name:<15} {rates:<13} {what}: {said}", flush=True)
        for seed in range(CLEAN):
            found = judged(bench, (), 100 + seed)
            clean, alarms = clean + 1, alarms + bool(found.culprits)
    print(f"named first {right} of {total}, at least {_least(right, total):.0%}")
    print(f"false alarms on clean pairs {alarms} of {clean}, at most {1 - _least(clean - alarms, clean):.0%}")
    print(f"{time.perf_counter() - began:.0f} s")


def _least(right: int, total: int) -> float:
    """A rate that 95 % confidence allows, by the rule of three where nothing is missed."""
    rate, z = right / total, 1.645
    if right == total:
        return 1 - 3 / total
    middle, half = rate + z * z / (2 * total), z * (rate * (1 - rate) / total + z * z / (4 * total**2)) ** 0.5
    return (middle - half) / (1 + z * z / total)


if __name__ == "__main__":
    main()
