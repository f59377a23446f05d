"""Where the feet of a Go2 are and how fast they move, from joint angles; and back.

Positions are in the base's frame, legs in the order front left, front right, rear left, rear right,
joints of a leg in the order hip, thigh, calf. Only element-wise operations: a row's result does not
depend on the rows beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simops.core.signal import Array

LEGS = ("FL", "FR", "RL", "RR")
JOINTS = tuple(f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "thigh", "calf"))
STANCE_RAD = (0.0, 0.9, -1.6) * len(LEGS)
FOOT_RADIUS_M = 0.022

_LINK_M = 0.213
_SET_BACK_M = 0.002  # of the foot's centre behind the shank's axis
_ABDUCTION_M = 0.0955
_HIP_X_M = np.array([0.1934, 0.1934, -0.1934, -0.1934], np.float32)
_HIP_Y_M = np.array([0.0465, -0.0465, 0.0465, -0.0465], np.float32)
_SIDE = np.array([1.0, -1.0, 1.0, -1.0], np.float32)


class Feet(NamedTuple):
    """Centres of the feet in the base's frame [m], each (n, 4)."""

    x: Array
    y: Array
    z: Array


def feet(joint_position: Array) -> Feet:
    """Where the feet are; `joint_position` is (n, 12)."""
    hip, thigh, calf = (joint_position[:, part::3] for part in range(3))
    forward, down, _, _ = _plane(thigh, calf)
    sin_hip, cos_hip = np.sin(hip), np.cos(hip)
    out = _SIDE * np.float32(_ABDUCTION_M)
    return Feet(_HIP_X_M + forward, _HIP_Y_M + out * cos_hip - down * sin_hip, out * sin_hip + down * cos_hip)


def feet_velocity(joint_position: Array, joint_velocity: Array) -> Feet:
    """How fast the feet move relative to the base [m/s]; both arguments are (n, 12)."""
    hip, thigh, calf = (joint_position[:, part::3] for part in range(3))
    hip_rate, thigh_rate, calf_rate = (joint_velocity[:, part::3] for part in range(3))
    forward, down, shank_forward, shank_down = _plane(thigh, calf)
    sin_hip, cos_hip = np.sin(hip), np.cos(hip)
    out = _SIDE * np.float32(_ABDUCTION_M)
    forward_rate = down * thigh_rate + shank_down * calf_rate
    down_rate = -forward * thigh_rate - shank_forward * calf_rate
    y_rate = -(out * sin_hip + down * cos_hip) * hip_rate - down_rate * sin_hip
    z_rate = (out * cos_hip - down * sin_hip) * hip_rate + down_rate * cos_hip
    return Feet(forward_rate, y_rate, z_rate)


def joints(target: Feet) -> Array:
    """Joint angles (n, 12) that put the feet at `target`, or as near as the legs reach; knees point back."""
    side, lateral, height = _SIDE * np.float32(_ABDUCTION_M), target.y - _HIP_Y_M, target.z
    reach = np.sqrt(np.maximum(lateral**2 + height**2 - side**2, 1e-6))
    hip = np.arctan2(height, lateral) - np.arctan2(-reach, side)
    hip = np.mod(hip + np.pi, 2 * np.pi) - np.pi
    forward, shank = target.x - _HIP_X_M, float(np.hypot(_LINK_M, _SET_BACK_M))
    square = np.clip(forward**2 + reach**2, 0.05**2, (0.999 * (_LINK_M + shank)) ** 2)
    bend = np.arccos(np.clip((square - _LINK_M**2 - shank**2) / (2 * _LINK_M * shank), -1.0, 1.0))
    lean = np.arctan2(-forward, reach) + np.arcsin(np.clip(shank * np.sin(bend) / np.sqrt(square), -1.0, 1.0))
    angles = np.empty((len(hip), 12), np.float32)
    angles[:, 0::3], angles[:, 1::3] = hip, lean
    angles[:, 2::3] = -bend - np.arctan2(_SET_BACK_M, _LINK_M)
    return angles


def _plane(thigh: Array, calf: Array) -> tuple[Array, Array, Array, Array]:
    """Forward and downward (negative) reach of the whole leg, and of the shank alone, in the leg's plane."""
    shank = thigh + calf
    sin_shank, cos_shank = np.sin(shank), np.cos(shank)
    link, back = np.float32(_LINK_M), np.float32(_SET_BACK_M)
    shank_forward, shank_down = -link * sin_shank - back * cos_shank, -link * cos_shank + back * sin_shank
    return shank_forward - link * np.sin(thigh), shank_down - link * np.cos(thigh), shank_forward, shank_down
