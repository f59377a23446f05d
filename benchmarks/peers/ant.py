"""Gymnasium's Ant as one of our tasks: the same file, observation, reward, end and beginning."""

from __future__ import annotations

import numpy as np

from simops.core.belief import Box
from simops.core.chance import normal, uniform
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Joint, Reading, Scene, Task, Term
from simops.sim.mujoco import Mujoco
from simops.sim.scene import Physics

JOINTS = tuple(f"{joint}_{leg}" for leg in range(1, 5) for joint in ("hip", "ankle"))
STANDING = (0.0, 0.0, 0.75, 1.0, *(0.0,) * 11)
"""Where the scene begins."""
NOISE = 0.1


def ant(path: str) -> Task:
    """Random Ant as `Ant-v4` has it, from the file at `path`: five steps of 10 ms, at most 1000 times."""
    turn, place = Signal("orientation", (4,)), Signal("place", (3,), unit="m")
    joints, rates = Signal("joints", (8,), unit="rad"), Signal("joint_rates", (8,), unit="rad/s")
    speed, spin = Signal("speed", (3,), unit="m/s"), Signal("spin", (3,), unit="rad/s")
    return Task(
        name="ant",
        scene=Scene(path),
        state=(
            Reading(place, Body("torso")),
            Reading(turn, Body("torso", "quaternion")),
            Reading(joints, Joint(JOINTS)),
            Reading(speed, Body("torso", "velocity")),
            Reading(spin, Body("torso", "angular_velocity")),
            Reading(rates, Joint(JOINTS, "velocity")),
        ),
        action=Signal("torque", (8,), low=(-1.0,) * 8, high=(1.0,) * 8),
        observation=Schema((Signal("height", unit="m"), turn, joints, speed, spin, rates)),
        observe=lambda c: {"height": c["place"][:, 2]},
        control_dt_s=0.05,
        horizon_s=50.0,
        belief=Box((), (), ()),
        initial=_initial,
        reward=(
            Term("forward", 1.0, lambda c: c["speed"][:, 0]),
            Term("healthy", 1.0, lambda c: np.ones(len(c["place"]), np.float32)),
            Term("effort", -0.5, lambda c: np.square(c["action"]).sum(axis=1)),
        ),
        failure=_fallen,
        success=lambda c: np.zeros(len(c["place"]), bool),
    )


def engine(threads: int) -> Mujoco:
    """MuJoCo with the solver as the file has it."""
    return Mujoco(threads=threads, physics=Physics(cone="pyramidal", impratio=1.0))


def columns(qpos: Array, qvel: Array) -> Columns:
    """Rows of MuJoCo's own state under the task's names."""
    return {
        "place": qpos[:, :3],
        "orientation": qpos[:, 3:7],
        "joints": qpos[:, 7:],
        "speed": qvel[:, :3],
        "spin": qvel[:, 3:6],
        "joint_rates": qvel[:, 6:],
    }


def _initial(draw: Draw) -> Columns:
    qpos = np.array(STANDING) + NOISE * (2.0 * uniform(draw.seeds, "ant/qpos", (15,)) - 1.0)
    return columns(qpos, NOISE * normal(draw.seeds, "ant/qvel", (14,)))


def _fallen(c: Columns) -> Array:
    height = c["place"][:, 2]
    return (height < 0.2) | (height > 1.0)
