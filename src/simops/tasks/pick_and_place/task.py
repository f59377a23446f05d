"""Pick and place: a Franka Panda takes a cube from one side of the table and puts it down on the other."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from simops.core import chance
from simops.core.belief import Box
from simops.core.params import Change, Param
from simops.core.signal import Columns, Schema, Signal
from simops.core.task import Body, Draw, Joint, Marker, Reading, Scene, Site, Task, Term
from simops.tasks.pick_and_place import scores
from simops.tasks.pick_and_place.scores import CUBE_HALF_M

CONTROL_DT_S = 0.04
HORIZON_S = 5.0
JOINT_NAMES = tuple(f"joint{i}" for i in range(1, 8))
JOINT_LOW_RAD = (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973)
JOINT_HIGH_RAD = (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973)
HOME_RAD = (0.0, 0.06, 0.0, -2.46, 0.0, 2.52, math.pi / 4)
"""The hand level above the middle of the table."""
OPEN_M = 0.08

JOINT_POSITION = Signal("joint_position", (7,), "rad", labels=JOINT_NAMES)
JOINT_VELOCITY = Signal("joint_velocity", (7,), "rad/s", labels=JOINT_NAMES)
FINGER_POSITION = Signal("finger_position", (2,), "m", labels=("left", "right"))
TOOL_POSITION = Signal("tool_position", (3,), "m", "world", labels=("x", "y", "z"))
CUBE_POSITION = Signal("cube_position", (3,), "m", "world", labels=("x", "y", "z"))
CUBE_QUATERNION = Signal("cube_quaternion", (4,), "", "world", labels=("w", "x", "y", "z"))
CUBE_VELOCITY = Signal("cube_velocity", (3,), "m/s", "world", labels=("x", "y", "z"))
GOAL_POSITION = Signal("goal_position", (3,), "m", "world", labels=("x", "y", "z"))

STATE = (
    Reading(JOINT_POSITION, Joint(JOINT_NAMES)),
    Reading(JOINT_VELOCITY, Joint(JOINT_NAMES, "velocity")),
    Reading(FINGER_POSITION, Joint(("left_finger", "right_finger"))),
    Reading(TOOL_POSITION, Site("tool")),
    Reading(CUBE_POSITION, Body("cube")),
    Reading(CUBE_QUATERNION, Body("cube", "quaternion")),
    Reading(CUBE_VELOCITY, Body("cube", "velocity")),
    Reading(GOAL_POSITION, Marker("goal")),
)
OBSERVATION = Schema(tuple(reading.signal for reading in STATE))
ACTION = Signal(
    "target",
    (8,),
    unit="rad, gripper m",
    labels=(*JOINT_NAMES, "gripper"),
    low=(*JOINT_LOW_RAD, 0.0),
    high=(*JOINT_HIGH_RAD, OPEN_M),
)
"""Where the joint servos shall go, and how far apart the pads shall be."""


def pick_and_place() -> Task:
    """A cube at a random pose, to be put down at a random place on the other side of the table."""
    return Task(
        name="pick_and_place",
        scene=Scene(str(Path(__file__).parent / "scene.xml"), robot="franka_panda"),
        state=STATE,
        action=ACTION,
        action_centre=(*HOME_RAD, OPEN_M / 2),
        action_scale=(*(0.6 for _ in HOME_RAD), OPEN_M / 2),
        observation=OBSERVATION,
        control_dt_s=CONTROL_DT_S,
        horizon_s=HORIZON_S,
        belief=belief(),
        initial=initial,
        reward=(  # costs until the cube is placed: nobody gains by waiting, nor by throwing it away
            Term("reach", -0.2, scores.reach),
            Term("lift", -0.3, scores.lift),
            Term("place", -0.5, scores.place),
            Term("smooth", -1.0, scores.smooth),
            Term("done", 10.0, scores.done),
            Term("dropped", -150.0, scores.dropped),
        ),
        failure=scores.lost,
        success=scores.placed,
        failure_margin=scores.lost_margin,
        success_margin=scores.placed_margin,
        success_hold_s=2 * CONTROL_DT_S,
        expert="pick_and_place_expert",
    )


def belief() -> Box:
    """What is randomised unless a spec says otherwise: the cube, where it lies, and how the scene looks."""
    deg = math.pi / 180
    ranges = (
        (Param("object_mass", 0.2, "kg", 0.001, 5.0, (Change("mass", ("cube",)),)), 0.05, 0.4),
        (Param("friction_coefficient", 0.6, "", 0.0, 3.0, (Change("friction", ("cube",)),)), 0.2, 1.1),
        (Param("object_position_noise_x", 0.0, "m", -0.1, 0.1, about="Added to where the cube starts."), -0.02, 0.02),
        (Param("object_position_noise_y", 0.0, "m", -0.1, 0.1, about="Added to where the cube starts."), -0.02, 0.02),
        (Param("texture", 0, "", 0, 4096, (Change("texture", ("table",)),), integer=True), 0, 200),
        (Param("lighting_intensity", 1.0, "", 0.0, 10.0, (Change("light", how="scale"),)), 0.3, 1.8),
        (Param("camera_jitter_pan", 0.0, "rad", -1.0, 1.0, (Change("camera_pan", how="add"),)), -5 * deg, 5 * deg),
        (Param("camera_jitter_tilt", 0.0, "rad", -1.0, 1.0, (Change("camera_tilt", how="add"),)), -5 * deg, 5 * deg),
    )
    params, low, high = zip(*ranges, strict=True)
    return Box(params, low, high)


def initial(draw: Draw) -> Columns:
    """The cube on one side of the table at any heading, its goal on the other, the arm near home."""
    seeds, n = draw.seeds, len(draw.seeds)
    side = np.where(chance.uniform(seeds, "side") < 0.5, -1.0, 1.0)
    cube, goal = np.full((n, 3), CUBE_HALF_M), np.full((n, 3), CUBE_HALF_M)
    cube[:, 0] = chance.between(seeds, "cube/x", 0.40, 0.56) + draw.params["object_position_noise_x"]
    cube[:, 1] = chance.between(seeds, "cube/y", 0.08, 0.22) * side + draw.params["object_position_noise_y"]
    goal[:, 0] = chance.between(seeds, "goal/x", 0.40, 0.56)
    goal[:, 1] = chance.between(seeds, "goal/y", 0.08, 0.22) * -side
    heading = chance.between(seeds, "cube/heading", -math.pi, math.pi)
    spread = chance.between(seeds, "arm", np.full(7, -0.04), np.full(7, 0.04))
    zero = np.zeros(n)
    return {
        "joint_position": np.array(HOME_RAD) + spread,
        "finger_position": np.full((n, 2), 0.03),
        "cube_position": cube,
        "cube_quaternion": np.stack([np.cos(heading / 2), zero, zero, np.sin(heading / 2)], axis=1),
        "goal_position": goal,
    }
