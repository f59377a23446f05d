"""What counts in pick and place: pure functions of named columns, for a batch of copies or a robot's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from simops.core.signal import Array, Columns

PLACED_WITHIN_M = 0.02
"""How far from the goal the cube's centre may rest."""
STILL_BELOW_M_S = 0.05
"""How slow a cube that has been placed must be."""
RELEASED_ABOVE_M = 0.05
"""An opening at which the pads no longer touch the cube, whose edge is 4 cm."""
TABLE_M = ((-0.24, 0.92), (-0.62, 0.62))
"""The table top along x and y; its height is 0."""
CUBE_HALF_M = 0.02
JOINTS = 7


def opening(c: Columns) -> Array:
    """Distance between the pads [m]."""
    return c["finger_position"].sum(axis=1)


def reach_m(c: Columns) -> Array:
    """Distance from between the pads to the cube."""
    return np.linalg.norm(c["tool_position"] - c["cube_position"], axis=1)


def miss_m(c: Columns) -> Array:
    """Distance from the cube to its goal."""
    return np.linalg.norm(c["cube_position"] - c["goal_position"], axis=1)


def reach(c: Columns) -> Array:
    """Cost of a hand away from the cube: 0 around it, 1 far away."""
    return np.tanh(5.0 * reach_m(c))


def lift(c: Columns) -> Array:
    """Cost of a cube that lies on the table away from its goal: 1 there, 0 from 4 cm up."""
    away = np.linalg.norm(c["cube_position"][:, :2] - c["goal_position"][:, :2], axis=1) > PLACED_WITHIN_M
    return (1.0 - np.clip((c["cube_position"][:, 2] - CUBE_HALF_M) / 0.04, 0.0, 1.0)) * away


def place(c: Columns) -> Array:
    """Cost of a cube away from its goal: 0 there, 1 far away."""
    return np.tanh(5.0 * miss_m(c))


def placed(c: Columns) -> Array:
    """Whether the cube lies at its goal, at rest and let go."""
    still = np.linalg.norm(c["cube_velocity"], axis=1) < STILL_BELOW_M_S
    return (miss_m(c) < PLACED_WITHIN_M) & still & (opening(c) > RELEASED_ABOVE_M)


def smooth(c: Columns) -> Array:
    """Cost of hasty joint targets: mean square change over one control step [rad^2]."""
    change = (c["action"] - c["previous_action"])[:, :JOINTS]
    return np.mean(change * change, axis=1)


def done(c: Columns) -> Array:
    """1 where the task is done."""
    return placed(c).astype(np.float32)


def dropped(c: Columns) -> Array:
    """1 where the cube has left the table."""
    return lost(c).astype(np.float32)


def placed_margin(c: Columns) -> Array:
    """How far inside of what `placed` asks: of 20 cm, of 0.5 m/s, of the opening, whichever is least."""
    still = (STILL_BELOW_M_S - np.linalg.norm(c["cube_velocity"], axis=1)) / 0.5
    miss = (PLACED_WITHIN_M - miss_m(c)) / 0.2
    return np.minimum(np.minimum(still, miss), (opening(c) - RELEASED_ABOVE_M) / RELEASED_ABOVE_M)


def lost_margin(c: Columns) -> Array:
    """How far the cube is from leaving the table: of 20 cm along it, of its half edge above it."""
    x, y, z = c["cube_position"].T
    (x_low, x_high), (y_low, y_high) = TABLE_M
    sides = np.stack([x - x_low, x_high - x, y - y_low, y_high - y]) / 0.2
    return np.minimum(sides.min(axis=0), z / CUBE_HALF_M)


def lost(c: Columns) -> Array:
    """Whether the cube has left the table."""
    x, y, z = c["cube_position"].T
    (x_low, x_high), (y_low, y_high) = TABLE_M
    inside = (x > x_low) & (x < x_high) & (y > y_low) & (y < y_high) & (z > 0.0)
    return ~inside
