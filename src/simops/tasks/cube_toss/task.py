"""A cube thrown onto a table: nothing to control, everything about contact to learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.chance import between, normal
from simops.core.params import Change, Param
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Reading, Scene, Task

SIDE_M = 0.1048
RATE_HZ = 148
"""Of the motion capture that recorded the real tosses."""


def cube_toss() -> Task:
    """Throw the cube, and watch until it lies still on a face."""
    axes = ("x", "y", "z")
    state = (
        Reading(Signal("position", (3,), "m", "world", labels=axes), Body("cube")),
        Reading(Signal("quaternion", (4,), "", "world", labels=("w", *axes)), Body("cube", "quaternion")),
        Reading(Signal("velocity", (3,), "m/s", "world", labels=axes), Body("cube", "velocity")),
        Reading(Signal("angular_velocity", (3,), "rad/s", "cube", labels=axes), Body("cube", "angular_velocity")),
    )
    return Task(
        name="cube_toss",
        scene=Scene(str(Path(__file__).with_name("scene.xml"))),
        state=state,
        action=Signal("nothing", (0,)),
        observation=Schema(tuple(reading.signal for reading in state)),
        control_dt_s=1 / RATE_HZ,
        horizon_s=2.0,
        belief=_belief(),
        initial=tossed,
        failure=lost,
        success=at_rest,
        success_hold_s=0.1,
        expert="zero",
    )


def tossed(draw: Draw) -> Columns:
    """Any orientation, lowest corner over the table, thrown to the side and spinning."""
    seeds = draw.seeds
    turn = normal(seeds, "cube_toss/orientation", (4,))
    turn /= np.sqrt((turn**2).sum(axis=1))[:, None]
    position = between(seeds, "cube_toss/position", np.array([-0.4, -0.4, 0.11]), np.array([0.4, 0.4, 0.2]))
    inward = np.where(position[:, :2] > 0, -1.0, 1.0)
    sideways = inward * between(seeds, "cube_toss/sideways", np.zeros(2), 1.2)
    upward = between(seeds, "cube_toss/upward", -0.4, 0.4)
    spin = 2.5 * normal(seeds, "cube_toss/spin", (3,)).clip(-3, 3)
    velocity = np.column_stack([sideways, upward])
    return {"position": position, "quaternion": turn, "velocity": velocity, "angular_velocity": spin}


def at_rest(c: Columns) -> Array:
    """Whether the cube neither moves nor turns, and lies on a face."""
    still = _norm(c["velocity"]) < 0.02
    fixed = _norm(c["angular_velocity"]) < 0.2
    lying = c["position"][:, 2] < 0.55 * SIDE_M
    return np.asarray(still & fixed & lying)


def lost(c: Columns) -> Array:
    """Whether the cube went through the table or flew away."""
    return np.asarray((c["position"][:, 2] < 0.0) | (_norm(c["position"]) > 5.0))


def _belief() -> Box:
    both = ("cube", "table")
    ranges: tuple[tuple[Param, float, float], ...] = (
        (Param("friction_coefficient", 0.18, "", 0.01, 2.0, (Change("friction", both),)), 0.1, 0.4),
        (
            Param("contact_stiffness", 10_000.0, "N/m", 100.0, 1e6, (Change("contact_stiffness", both),)),
            2_000.0,
            20_000.0,
        ),
        (Param("contact_damping", 100.0, "N s/m", 1.0, 1e4, (Change("contact_damping", both),)), 30.0, 200.0),
        (Param("cube_mass_kg", 0.37, "kg", 0.05, 2.0, (Change("mass", ("cube",)),)), 0.35, 0.39),
        (Param("gravity", 9.81, "m/s^2", 9.0, 10.0, (Change("gravity"),)), 9.81, 9.81),
    )
    return Box(tuple(r[0] for r in ranges), tuple(r[1] for r in ranges), tuple(r[2] for r in ranges))


def _norm(rows: Array) -> Array:
    return np.sqrt((rows * rows).sum(axis=1))
