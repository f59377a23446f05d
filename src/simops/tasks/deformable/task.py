"""Soft things for validation: the Panda picks foam, or has a cable in its way; a cloth falls over a ball.

The robot, what is seen, what is asked and how it is scored are those of pick and place, so a policy that was trained
on a hard cube is judged here as it is. Only MuJoCo moves deformables.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.params import Change, Param
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Reading, Scene, Task
from simops.tasks.pick_and_place.task import STATE, pick_and_place

FOLDER = Path(__file__).parent
CABLE_POSITION = Signal("cable_position", (3,), "m", "world", labels=("x", "y", "z"))
FOLD_POSITION = Signal("fold_position", (3,), "m", "world", labels=("x", "y", "z"))
CORNERS = ("0", "8", "72", "80")
BALL_TOP_M = 0.2


def soft_cube() -> Task:
    """Foam of a cube's size, that the fingers squeeze to a third: to be put down on the other side of the table."""
    hard = pick_and_place()
    return replace(
        hard, name="soft_cube", scene=Scene(str(FOLDER / "soft_cube.xml"), robot="franka_panda"), belief=_where()
    )


def cable_in_the_way() -> Task:
    """The cube has to get past a cable that hangs between two posts across the table."""
    hard = pick_and_place()
    return replace(
        hard,
        name="cable_in_the_way",
        scene=Scene(str(FOLDER / "cable.xml"), robot="franka_panda"),
        state=(*STATE, Reading(CABLE_POSITION, Body("cable_6"))),
        belief=_where(Param("object_mass", 0.2, "kg", 0.001, 5.0, (Change("mass", ("cube",)),))),
    )


def cloth() -> Task:
    """A cloth that falls over a ball, to see that what bends comes to rest: nothing to control."""
    state = (
        Reading(FOLD_POSITION, Body("cloth_40")),
        Reading(Signal("fold_velocity", (3,), "m/s", "world", labels=("x", "y", "z")), Body("cloth_40", "velocity")),
        *(
            Reading(Signal(f"corner_{name}", (3,), "m", "world", labels=("x", "y", "z")), Body(f"cloth_{name}"))
            for name in CORNERS
        ),
    )
    return Task(
        name="cloth",
        scene=Scene(str(FOLDER / "cloth.xml")),
        state=state,
        action=Signal("nothing", (0,)),
        observation=Schema(tuple(reading.signal for reading in state)),
        control_dt_s=0.02,
        horizon_s=2.0,
        belief=Box((Param("gravity", 9.81, "m/s^2", 1.0, 20.0, (Change("gravity"),)),), (9.7,), (9.9,)),
        initial=_dropped,
        failure=_slipped,
        success=_draped,
        success_hold_s=0.1,
        expert="zero",
    )


def _where(*more: Param) -> Box:
    """Where the object starts, as in pick and place, and what else is given."""
    hard = pick_and_place().belief
    kept = tuple(p for p in hard.params if p.name.startswith("object_position"))
    ranges = [(p, -0.02, 0.02) for p in kept] + [(p, 0.25 * p.nominal, 2.0 * p.nominal) for p in more]
    params, low, high = zip(*ranges, strict=True)
    return Box(params, low, high)


def _dropped(draw: Draw) -> Columns:
    """As the scene has it: only gravity differs."""
    del draw
    return {}


def _draped(c: Columns) -> Array:
    """Whether the cloth lies over the ball, its corners hanging, and has come to rest."""
    hanging = np.stack([c[f"corner_{name}"][:, 2] for name in CORNERS], axis=1).max(axis=1) < BALL_TOP_M / 2
    still = np.linalg.norm(c["fold_velocity"], axis=1) < 0.02
    return (np.abs(c["fold_position"][:, 2] - BALL_TOP_M) < 0.02) & hanging & still


def _slipped(c: Columns) -> Array:
    """Whether the cloth has fallen off."""
    return c["fold_position"][:, 2] < BALL_TOP_M / 2
