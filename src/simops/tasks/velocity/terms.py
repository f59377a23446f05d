"""What a walking Go2 is shown and how it is scored: pure functions of named columns.

Nothing here knows a simulator. Velocities and gravity come from the state itself, feet from the
joint angles, so a robot's log is scored by the same code. Only element-wise operations and sums
within a row: a row's result does not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simops.core.signal import Array, Columns
from simops.tasks.velocity.legs import FOOT_RADIUS_M, STANCE_RAD, feet, feet_velocity

CONTROL_DT_S = 0.02
ACTION_SCALE_RAD = 0.25
BASE_HEIGHT_M = 0.3
GAIT_HZ = 2.5
STANCE_SHARE = 0.65
"""Of each foot's cycle; above one half the pairs of a trot overlap on the ground."""
CLEARANCE_M = 0.05
CONTACT_N = 2.0

LATER = np.array([0.0, 0.5, 0.5, 0.0], np.float32)
"""Share of the cycle by which each foot is behind: in a trot diagonal feet move together."""

_STANCE = np.array(STANCE_RAD, np.float32)
_MOVING = 0.05  # m/s and rad/s; a smaller command means to stand


def gravity(c: Columns) -> Array:
    """Direction of gravity in the base's frame, (n, 3); 0, 0, -1 when upright."""
    w, x, y, z = (c["base_quaternion"][:, i] for i in range(4))
    down = np.empty((len(w), 3), c["base_quaternion"].dtype)
    down[:, 0] = 2 * (w * y - x * z)
    down[:, 1] = -2 * (y * z + w * x)
    down[:, 2] = 2 * (x * x + y * y) - 1
    return down


def velocity(c: Columns) -> Array:
    """Velocity of the base in its own frame [m/s], (n, 3)."""
    w, x, y, z = (c["base_quaternion"][:, i] for i in range(4))
    u, v, s = (c["base_velocity"][:, i] for i in range(3))
    a, b, d = 2 * (y * s - z * v), 2 * (z * u - x * s), 2 * (x * v - y * u)
    seen = np.empty((len(w), 3), c["base_velocity"].dtype)
    seen[:, 0] = u - w * a + (y * d - z * b)
    seen[:, 1] = v - w * b + (z * a - x * d)
    seen[:, 2] = s - w * d + (x * b - y * a)
    return seen


def planted(c: Columns) -> Array:
    """Feet that the clock wants on the ground, (n, 4): a trot, or all of them when asked to stand."""
    return (_phase(c) < STANCE_SHARE) | ~moving(c)[:, None]


def moving(c: Columns) -> Array:
    """Rows that are asked to move, not to stand."""
    return np.abs(c["command"]).max(axis=1) > _MOVING


def observe(c: Columns) -> Columns:
    """The observation signals that are not simply read."""
    begun = c["time_s"] > CONTROL_DT_S / 2
    turn = c["time_s"] * np.float32(2 * np.pi * GAIT_HZ)
    clock = np.stack([np.sin(turn), np.cos(turn)], axis=1)
    previous = np.where(begun[:, None], (c["previous_action"] - _STANCE) / np.float32(ACTION_SCALE_RAD), np.float32(0))
    return {
        "projected_gravity": gravity(c),
        "joint_offset": c["joint_position"] - _STANCE,
        "previous_offset": previous,
        "gait_clock": clock,
        "leg_odometry": odometry(c),
    }


def odometry(c: Columns) -> Array:
    """Velocity of the base in its own frame [m/s] as legs and gyro tell it, (n, 3).

    It takes the feet that the clock wants on the ground to stand still there, most of all in the middle of their
    time: off where they slip or are late.
    """
    at, moved = feet(c["joint_position"]), feet_velocity(c["joint_position"], c["joint_velocity"])
    p, q, r = (c["gyro"][:, i, None] for i in range(3))
    middle = np.sin(np.clip(_phase(c) / np.float32(STANCE_SHARE), 0, 1) * np.float32(np.pi)) + np.float32(1e-3)
    stands = np.where(moving(c)[:, None], middle, np.float32(1))
    told = (moved.x + (q * at.z - r * at.y), moved.y + (r * at.x - p * at.z), moved.z + (p * at.y - q * at.x))
    whole = stands.sum(axis=1)
    return np.stack([-(stands * speed).sum(axis=1) / whole for speed in told], axis=1).astype(np.float32)


def velocity_error(c: Columns) -> Array:
    """Distance between asked and actual velocity in the plane [m/s]."""
    error = c["command"][:, :2] - velocity(c)[:, :2]
    return np.sqrt(_sum_squares(error))


def yaw_rate_error(c: Columns) -> Array:
    """Distance between asked and actual turning rate [rad/s]."""
    return np.abs(c["command"][:, 2] - c["gyro"][:, 2])


def track_velocity(c: Columns) -> Array:
    """1 when the velocity in the plane is as asked, 0.37 when it is 0.25 m/s off."""
    return np.exp(velocity_error(c) ** 2 * np.float32(-16))


def track_yaw_rate(c: Columns) -> Array:
    """1 when the turning rate is as asked, 0.37 when it is 0.5 rad/s off."""
    return np.exp(yaw_rate_error(c) ** 2 * np.float32(-4))


def vertical_velocity(c: Columns) -> Array:
    """Square of the base's speed along its own vertical [m^2/s^2]."""
    return velocity(c)[:, 2] ** 2


def roll_pitch_rate(c: Columns) -> Array:
    """Square of the rate of rolling and pitching [rad^2/s^2]."""
    return _sum_squares(c["gyro"][:, :2])


def orientation(c: Columns) -> Array:
    """Square of the sine of the tilt."""
    return _sum_squares(gravity(c)[:, :2])


def base_height(c: Columns) -> Array:
    """Square of the distance from the height of a walking robot [m^2]."""
    return (c["base_position"][:, 2] - np.float32(BASE_HEIGHT_M)) ** 2


def torque(c: Columns) -> Array:
    """Sum of the squared joint torques [N^2 m^2]."""
    return _sum_squares(c["joint_torque"])


def power(c: Columns) -> Array:
    """Mechanical power of all joints, braking counted as work [W]."""
    return np.abs(c["joint_torque"] * c["joint_velocity"]).sum(axis=1)


def action_rate(c: Columns) -> Array:
    """Sum of the squared changes of the action, in units of the action's scale; 0 in the first step."""
    begun = c["time_s"] > 1.5 * CONTROL_DT_S
    return np.where(begun, _sum_squares(c["action"] - c["previous_action"]) / np.float32(ACTION_SCALE_RAD**2), 0)


def posture(c: Columns) -> Array:
    """Sum of the squared joint angles away from the stance [rad^2]."""
    return _sum_squares(c["joint_position"] - _STANCE)


def gait(c: Columns) -> Array:
    """Share of the feet that are on the ground, or off it, as the clock wants."""
    agree = (c["foot_force"] > CONTACT_N) == planted(c)
    return agree.sum(axis=1).astype(np.float32) * np.float32(0.25)


def foot_slip(c: Columns) -> Array:
    """Sum of the squared horizontal speeds of the feet that carry weight [m^2/s^2]."""
    return ((c["foot_force"] > CONTACT_N) * _feet_in_world(c)[1]).sum(axis=1)


def foot_clearance(c: Columns) -> Array:
    """Sum over the feet that should swing of the squared distance from the height to lift them to [m^2]."""
    height, _ = _feet_in_world(c)
    phase = _phase(c)
    swing = np.clip((phase - np.float32(STANCE_SHARE)) / np.float32(1 - STANCE_SHARE), 0, 1)
    wanted = np.float32(CLEARANCE_M) * 4 * swing * (1 - swing) * moving(c)[:, None]
    return (np.minimum(height - wanted, 0) ** 2 * (wanted > 0)).sum(axis=1)


def alive(c: Columns) -> Array:
    """1, always: an episode that has failed earns nothing more."""
    return np.ones(len(c["time_s"]), np.float32)


def fallen(c: Columns) -> Array:
    """Whether the trunk touches the ground, leans by more than 60 degrees, or is lower than any gait."""
    height, lean, force = c["base_position"][:, 2], gravity(c)[:, 2], c["trunk_force"][:, 0]
    return ~np.logical_and.reduce([height >= 0.15, lean <= -0.5, force <= 1.0])


def on_track(c: Columns) -> Array:
    """Whether velocity and turning rate are near what is asked; a gait ripples, so the bounds are wide."""
    return np.logical_and(velocity_error(c) < 0.4, yaw_rate_error(c) < 0.75)


def fallen_margin(c: Columns) -> Array:
    """How far from having fallen: of the height, of the lean, of the trunk's freedom from the ground; least counts."""
    height, lean, force = c["base_position"][:, 2], gravity(c)[:, 2], c["trunk_force"][:, 0]
    high, upright = (height - np.float32(0.15)) / np.float32(0.15), (np.float32(-0.5) - lean) / np.float32(0.5)
    return np.minimum(np.minimum(high, upright), np.clip(1 - force, -1, 1))


def on_track_margin(c: Columns) -> Array:
    """How far inside of what `on_track` asks, of each bound; the least."""
    speed, turn = np.float32(0.4), np.float32(0.75)
    return np.minimum((speed - velocity_error(c)) / speed, (turn - yaw_rate_error(c)) / turn)


def _feet_in_world(c: Columns) -> tuple[Array, Array]:
    """Height of the soles over flat ground [m] and squared horizontal speed of the feet [m^2/s^2], (n, 4) each."""
    down, base, spin = gravity(c), velocity(c), c["gyro"]
    at, moving = feet(c["joint_position"]), feet_velocity(c["joint_position"], c["joint_velocity"])
    p, q, r = (spin[:, i, None] for i in range(3))
    u = base[:, 0, None] + moving.x + (q * at.z - r * at.y)
    v = base[:, 1, None] + moving.y + (r * at.x - p * at.z)
    w = base[:, 2, None] + moving.z + (p * at.y - q * at.x)
    gx, gy, gz = (down[:, i, None] for i in range(3))
    height = c["base_position"][:, 2, None] - (at.x * gx + at.y * gy + at.z * gz) - np.float32(FOOT_RADIUS_M)
    sinking = u * gx + v * gy + w * gz
    return height, np.maximum(u * u + v * v + w * w - sinking * sinking, 0)


def _phase(c: Columns) -> Array:
    """How far each foot is in its cycle, from 0, when it lands, to 1; (n, 4)."""
    return np.mod(c["time_s"][:, None] * np.float32(GAIT_HZ) + LATER, np.float32(1))


def _sum_squares(rows: Array) -> Array:
    return (rows * rows).sum(axis=1)


REWARD: tuple[tuple[Callable[[Columns], Array], float], ...] = (
    (track_velocity, 1.5),
    (track_yaw_rate, 0.75),
    (velocity_error, -1.5),
    (yaw_rate_error, -0.4),
    (gait, 2.5),
    (alive, 0.25),
    (vertical_velocity, -1.0),
    (roll_pitch_rate, -0.02),
    (orientation, -2.0),
    (base_height, -10.0),
    (torque, -1e-4),
    (power, -3e-4),
    (action_rate, -0.005),
    (posture, -0.1),
    (foot_slip, -0.1),
    (foot_clearance, -50.0),
)
"""Each term's name is its function's; weights are of a rate: what a second is worth."""
