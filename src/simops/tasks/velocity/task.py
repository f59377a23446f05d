"""A Go2 that is told how fast to go and how fast to turn, on flat ground."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.chance import normal, uniform
from simops.core.params import Change, Param
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Joint, Reading, Scene, Sensor, Task, Term
from simops.tasks.velocity import terms
from simops.tasks.velocity.legs import FOOT_RADIUS_M, JOINTS, LEGS, STANCE_RAD, feet

COMMAND_EVERY_S = 5.0
FASTEST = (1.0, 0.5, 1.0)
"""Forward and sideways [m/s], turning [rad/s]."""

_ANGLES = tuple(name.removesuffix("_joint") for name in JOINTS)
_LOW = (-1.0472, -1.5708, -2.7227) * 2 + (-1.0472, -0.5236, -2.7227) * 2
_HIGH = (1.0472, 3.4907, -0.83776) * 2 + (1.0472, 4.5379, -0.83776) * 2
_AXES = ("x", "y", "z")
COMMAND = Signal("command", (3,), "m/s, m/s, rad/s", "base", labels=("forward", "left", "turn"))
OBSERVATION = Schema(
    (
        Signal("gyro", (3,), "rad/s", "base", labels=_AXES),
        Signal("projected_gravity", (3,), "", "base", labels=_AXES),
        COMMAND,
        Signal("joint_offset", (12,), "rad", labels=_ANGLES),
        Signal("joint_velocity", (12,), "rad/s", labels=_ANGLES),
        Signal("previous_offset", (12,), labels=_ANGLES),
        Signal("gait_clock", (2,), labels=("sin", "cos")),
        Signal("leg_odometry", (3,), "m/s", "base", labels=_AXES),
    )
)
_LEGS = (-4, 5, 6, -1, 2, 3, -10, 11, 12, -7, 8, 9)
"""Left legs for right ones, hips turning the other way."""
MIRROR = {
    "base_position": (1, -2, 3),
    "base_quaternion": (1, -2, 3, -4),
    "base_velocity": (1, -2, 3),
    "gyro": (-1, 2, -3),
    "projected_gravity": (1, -2, 3),
    "command": (1, -2, -3),
    "joint_position": _LEGS,
    "joint_velocity": _LEGS,
    "joint_torque": _LEGS,
    "joint_offset": _LEGS,
    "joint_target": _LEGS,
    "previous_offset": _LEGS,
    "foot_force": (2, 1, 4, 3),
    "gait_clock": (-1, -2),  # half a cycle later, a trot's left and right feet have changed places
    "leg_odometry": (1, -2, 3),
}
_FEET = tuple(f"{leg}_foot" for leg in LEGS)


def velocity() -> Task:
    """Walk as commanded: forward, sideways, turning, or standing still."""
    return Task(
        name="velocity",
        scene=Scene(str(Path(__file__).with_name("scene.xml")), robot="unitree_go2"),
        state=_state(),
        action=Signal("joint_target", (12,), "rad", labels=_ANGLES, low=_LOW, high=_HIGH),
        action_centre=STANCE_RAD,
        action_scale=(terms.ACTION_SCALE_RAD,) * 12,
        observation=OBSERVATION,
        observe=terms.observe,
        control_dt_s=terms.CONTROL_DT_S,
        horizon_s=10.0,
        belief=_belief(),
        initial=_initial,
        goal_signals=Schema((COMMAND,)),
        goal=_command,
        goal_every_s=COMMAND_EVERY_S,
        reward=tuple(Term(f.__name__, weight, f) for f, weight in terms.REWARD),
        failure=terms.fallen,
        success=terms.on_track,
        failure_margin=terms.fallen_margin,
        success_margin=terms.on_track_margin,
        success_hold_s=1 / terms.GAIT_HZ,
        ends_on_success=False,
        expert="velocity_trot",
        mirror=MIRROR,
    )


def _state() -> tuple[Reading, ...]:
    return (
        Reading(Signal("base_position", (3,), "m", "world", labels=_AXES), Body("base")),
        Reading(Signal("base_quaternion", (4,), "", "world", labels=("w", *_AXES)), Body("base", "quaternion")),
        Reading(Signal("base_velocity", (3,), "m/s", "world", labels=_AXES), Body("base", "velocity")),
        Reading(Signal("gyro", (3,), "rad/s", "base", labels=_AXES), Body("base", "angular_velocity")),
        Reading(Signal("joint_position", (12,), "rad", labels=_ANGLES), Joint(JOINTS)),
        Reading(Signal("joint_velocity", (12,), "rad/s", labels=_ANGLES), Joint(JOINTS, "velocity")),
        Reading(Signal("joint_torque", (12,), "N m", labels=_ANGLES), Joint(JOINTS, "torque")),
        Reading(Signal("foot_force", (4,), "N", labels=LEGS), Sensor(tuple(f"{foot}_force" for foot in _FEET))),
        Reading(Signal("trunk_force", (1,), "N"), Sensor(("trunk_force",))),
    )


def _belief() -> Box:
    ranges: tuple[tuple[Param, float, float], ...] = (
        (Param("payload_mass_kg", 0.0, "kg", -3.0, 10.0, (Change("mass", ("base",), "add"),)), -1.0, 2.0),
        (Param("friction_coefficient", 0.8, "", 0.05, 2.0, (Change("friction", ("floor", *_FEET)),)), 0.4, 1.2),
        (Param("base_com_x_m", 0.0, "m", -0.1, 0.1, (Change("com_x", ("base",), "add"),)), -0.03, 0.03),
        (Param("base_com_y_m", 0.0, "m", -0.05, 0.05, (Change("com_y", ("base",), "add"),)), -0.02, 0.02),
        (_scale("kp_scale", Change("kp", how="scale")), 0.85, 1.15),
        (_scale("kd_scale", Change("kd", how="scale")), 0.8, 1.2),
        (_scale("joint_damping_scale", Change("damping", JOINTS, "scale")), 0.5, 2.0),
        (_scale("armature_scale", Change("armature", JOINTS, "scale")), 0.8, 1.3),
        (_scale("motor_strength_scale", Change("strength", how="scale")), 0.85, 1.1),
        (Param("joint_friction_nm", 0.0, "N m", 0.0, 2.0, (Change("frictionloss", JOINTS),)), 0.0, 0.0),
        (Param("delay_s", 0.0, "s", 0.0, 0.04, (Change("delay"),)), 0.0, 0.015),
        (Param("start_joint_spread_rad", 0.1, "rad", 0.0, 0.3), 0.1, 0.1),
        (Param("start_speed", 0.3, "m/s, rad/s", 0.0, 1.0), 0.3, 0.3),
    )
    return Box(tuple(r[0] for r in ranges), tuple(r[1] for r in ranges), tuple(r[2] for r in ranges))


def _scale(name: str, change: Change) -> Param:
    return Param(name, 1.0, "", 0.1, 10.0, (change,))


def _initial(draw: Draw) -> Columns:
    """Standing near the stance, facing anywhere, with a push; the lowest foot on the ground."""
    n = len(draw.seeds)
    spread_rad, speed = draw.params["start_joint_spread_rad"][:, None], draw.params["start_speed"][:, None]
    angles = np.array(STANCE_RAD) + spread_rad * (2 * uniform(draw.seeds, "velocity/joints", (12,)) - 1)
    pushed = speed * normal(draw.seeds, "velocity/push", (6,)).clip(-2, 2)
    half = np.pi * uniform(draw.seeds, "velocity/heading")
    position, quaternion = np.zeros((n, 3)), np.zeros((n, 4))
    position[:, 2] = FOOT_RADIUS_M - feet(angles).z.min(axis=1)
    quaternion[:, 0], quaternion[:, 3] = np.cos(half), np.sin(half)
    return {
        "base_position": position,
        "base_quaternion": quaternion,
        "base_velocity": pushed[:, :3] * np.array([1.0, 1.0, 0.3]),
        "gyro": pushed[:, 3:],
        "joint_position": angles,
        "joint_velocity": np.zeros((n, 12)),
    }


def _command(draw: Draw) -> Columns:
    """A fresh command each period: one in ten stands, small ones do too."""
    period = draw.step // round(COMMAND_EVERY_S / terms.CONTROL_DT_S)
    pick: Array = uniform(draw.seeds, "velocity/command", (4,), step=period)
    asked = (2 * pick[:, :3] - 1) * np.array(FASTEST)
    still = (pick[:, 3] < 0.1) | (np.abs(asked) < 0.1).all(axis=1)
    return {"command": np.where(still[:, None], 0.0, asked).astype(np.float32)}
