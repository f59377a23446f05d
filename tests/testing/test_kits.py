"""Every built-in passes its kit."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from simops.core.plugin import Registry
from simops.core.protocols import Engine, Motor, Policy, Sensor
from simops.core.task import Task
from simops.sim.axes import Axes
from simops.sim.inertial import ForceTorque, Imu
from simops.sim.motor import Dc, Pd
from simops.sim.mujoco import Mujoco, Physics
from simops.sim.pendulum import Pendulum
from simops.sim.sensor import Encoder, Late, Noise
from simops.sim.servo import Servo
from simops.sim.timing import Timing
from simops.tasks.pendulum.task import pendulum
from simops.testing.engine import check_engine
from simops.testing.motor import check_motor
from simops.testing.policy import check_policy
from simops.testing.sensor import check_sensor
from simops.testing.task import check_task

TASKS = Registry[Task]("task")
POLICIES = Registry[Policy]("policy")
PLAYED = Servo(
    kp=(20.0, 30.0, 10.0), kd=1.0, stall=15.0, no_load=40.0, coulomb=0.2, viscous=0.05, stribeck=0.1, load=0.05
)
WORN = Dc(coulomb_nm=0.2, viscous_nms_rad=0.05, stribeck_nm=0.1, delay_steps=3)
UNEVEN = Timing(rate_hz=37.0, free_running=True, delay_s=0.03, jitter_s=0.02, dropout=0.2)
ROUGH = Axes(signal="gyro", white=0.1, instability=0.1, walk=0.1, bias_std=0.1, scale_std=0.1, cross_std=0.1, limit=2.0)
CONFIGURED: dict[str, tuple[Motor | Sensor, ...]] = {
    "pd": (Pd(), Pd(limit_nm=5.0)),
    "dc": (Dc(), WORN),
    "servo": (PLAYED, replace(PLAYED, kff=1.0, delay_s=(0.0, 0.003, 0.011), backlash=0.02)),
    "noise": (Noise(), Noise(std={"angle": 0.1, "rate": 0.1}, bias={"rate": 0.1}, scale_param="bob_mass")),
    "encoder": (
        Encoder("angle"),
        Encoder("rate", step=0.1, offset_std=0.1, delay_steps=3),
        Encoder("rate", noise_std=0.1, backlash=0.2, limit=0.5, offset=0.1, timing=UNEVEN),
    ),
    "late": (Late(), Late(signals=("rate", "angle"), timing=UNEVEN)),
    "imu": (
        Imu(),
        Imu(gyro=ROUGH, accelerometer=replace(ROUGH, signal="base_velocity", step=0.1), timing=UNEVEN),
        Imu(attitude=Axes(signal="base_quaternion", white=0.1, bias_std=0.1, walk=0.1)),
    ),
    "lidar": (),  # goes through the kit where there is something to meet its beams: tests/sim/test_lidar.py
    "force_torque": (
        ForceTorque(force=Axes(signal="foot_force")),
        ForceTorque(
            force=replace(ROUGH, signal="foot_force"),
            torque=Axes(signal="joint_torque", walk=0.1),
            lever_m=0.1,
            cutoff_hz=5.0,
            timing=UNEVEN,
        ),
    ),
}
"""What a motor or sensor is checked with besides what it comes as."""
FREE_ONLY = {"impact"}
"""Engines of free bodies, which have no joint that a pendulum could hang from."""
AT = {"imu": "velocity", "force_torque": "velocity"}
"""The task that a sensor is checked at, where the pendulum has nothing for it to sense."""
BENDS = frozenset({"soft_cube", "cable_in_the_way", "cloth"})
"""Tasks whose physics takes seconds: whole kits in the proof, a run of each in tests/tasks."""
EVERY = [pytest.param(name, marks=pytest.mark.slow if name in BENDS else ()) for name in TASKS.names()]


@pytest.mark.parametrize("name", Registry[Engine]("engine").names())
def test_engine(name: str) -> None:
    task = TASKS.load("cube_toss")() if name in FREE_ONLY else pendulum()
    check_engine(Registry[Engine]("engine").load(name)(), task)


@pytest.mark.parametrize("name", EVERY)
def test_engine_at_every_task_and_number_of_threads(name: str) -> None:
    check_engine(Mujoco(threads=1), TASKS.load(name)(), also=(Mujoco(threads=2),))


@pytest.mark.parametrize("motor", [Pd(), WORN], ids=repr)
def test_engine_with_a_motor(motor: Motor) -> None:
    check_engine(Mujoco(threads=1, motor=motor), pendulum(), also=(Mujoco(threads=2, motor=motor),))


def test_engine_with_other_physics() -> None:
    check_engine(Mujoco(physics=Physics(step_s=0.004, cone="pyramidal", noslip_iterations=3)), pendulum())


@pytest.mark.parametrize("name", EVERY)
def test_task(name: str) -> None:
    check_task(TASKS.load(name)(), Mujoco())


def test_task_in_another_engine() -> None:
    check_task(replace(pendulum(), horizon_s=6.0), Pendulum(step_s=0.005))


@pytest.mark.parametrize("name", [n for n in Registry[Motor]("motor").names() if n != "network"])  # wants weights
def test_motor(name: str) -> None:
    kind = Registry[Motor]("motor").load(name)
    check_motor(kind())
    for motor in CONFIGURED[name]:
        assert isinstance(motor, Pd | Dc | Servo)
        check_motor(motor)


@pytest.mark.parametrize("name", Registry[Sensor]("sensor").names())
def test_sensor(name: str) -> None:
    for sensor in CONFIGURED[name]:
        check_sensor(cast("Sensor", sensor), TASKS.load(AT.get(name, "pendulum"))())


def pairs() -> list[tuple[str, str]]:
    """Every policy with every task, but an expert with its own alone."""
    experts = {task: TASKS.load(task)().expert for task in TASKS.names()}
    names = POLICIES.names()
    return [(p, t) for p in names for t in experts if p not in experts.values() or p == experts[t]]


@pytest.mark.parametrize(("policy", "task"), pairs())
def test_policy(policy: str, task: str) -> None:
    check_policy(POLICIES.load(policy)(), TASKS.load(task)())
