"""Swing-up and hold of a pendulum whose motor is too weak to lift it in one go."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.chance import between, uniform
from simops.core.params import Change, Param
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Draw, Joint, Reading, Scene, Task, Term

TORQUE_LIMIT_NM = 4.0
"""Gravity alone pulls with 9.81 N m."""


def pendulum() -> Task:
    """Swing up from near hanging, then stand for a second."""
    params = (
        Param("bob_mass", 1.0, "kg", low=1e-3, changes=(Change("mass", ("bob",)),), about="mass at the end of the rod"),
        Param(
            "hinge_damping",
            0.05,
            "N m s/rad",
            low=0.0,
            changes=(Change("damping", ("hinge",)),),
            about="viscous friction of the hinge",
        ),
        Param("start_spread_rad", 0.4, "rad", low=0.0, high=np.pi, about="farthest from hanging that it starts"),
    )
    return Task(
        name="pendulum",
        scene=Scene(str(Path(__file__).parent / "scene.xml"), robot="pendulum"),
        state=(
            Reading(Signal("angle", unit="rad"), Joint(("hinge",))),
            Reading(Signal("rate", unit="rad/s"), Joint(("hinge",), "velocity")),
        ),
        action=Signal("torque", (1,), "N m", labels=("motor",), low=(-TORQUE_LIMIT_NM,), high=(TORQUE_LIMIT_NM,)),
        observation=Schema((Signal("heading", (2,), labels=("sin", "cos")), Signal("rate", unit="rad/s"))),
        observe=observe,
        control_dt_s=0.02,
        horizon_s=8.0,
        belief=Box(params, (0.8, 0.0, 0.4), (1.2, 0.1, 0.4)),
        initial=initial,
        reward=(
            Term("below_top", -1.0, lambda c: 1 - upright(c)),  # never more than 0, so that to succeed is best
            Term("energy", -1.0, missing_energy),
            Term("rate", -0.002, lambda c: c["rate"] ** 2),
            Term("effort", -0.002, lambda c: np.sum(c["action"] ** 2, axis=1)),
        ),
        failure=lambda c: np.abs(c["rate"]) > 40.0,
        success=lambda c: (upright(c) > 0.95) & (np.abs(c["rate"]) < 0.5),
        failure_margin=lambda c: 1 - np.abs(c["rate"]) / 40.0,
        success_margin=lambda c: np.minimum((upright(c) - 0.95) / 1.95, 0.5 - np.abs(c["rate"])),
        success_hold_s=1.0,
        expert="pendulum_expert",
    )


def initial(draw: Draw) -> Columns:
    """Near hanging, slow."""
    spread_rad = draw.params["start_spread_rad"]
    return {
        "angle": -spread_rad + 2 * spread_rad * uniform(draw.seeds, "angle"),
        "rate": between(draw.seeds, "rate", -0.4, 0.4),
    }


def observe(columns: Columns) -> Columns:
    """The angle as a point on the circle."""
    angle = columns["angle"]
    return {"heading": np.stack([np.sin(angle), np.cos(angle)], axis=1)}


def missing_energy(columns: Columns) -> Array:
    """Distance from the energy of standing at the top, 2 hanging still, for a bob a metre from the hinge."""
    return np.abs(columns["rate"] ** 2 / np.float32(2 * 9.81) + upright(columns) - 1)


def upright(columns: Columns) -> Array:
    """Height of the bob, -1 hanging to 1 standing."""
    return -np.cos(columns["angle"])
