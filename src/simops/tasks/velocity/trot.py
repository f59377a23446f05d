"""A trot in closed form: feet on ellipses in time with the clock, legs levelled by what the gyro and gravity say.

It reads nothing but the policy's own observation and keeps its feet under any payload, friction and
delay of the task's belief, but falls short of fast commands: a demonstration, and a start to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import SignalError
from simops.core.protocols import Act, Memory
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.tasks.velocity.legs import STANCE_RAD, Feet, feet, feet_velocity, joints
from simops.tasks.velocity.task import OBSERVATION
from simops.tasks.velocity.terms import CONTROL_DT_S, GAIT_HZ, LATER, STANCE_SHARE, moving

_HOME = feet(np.array([STANCE_RAD], np.float32))
_WEIGHT_N = 15.2 * 9.81
_SETTLE = np.float32(CONTROL_DT_S / 0.4)
_SLEW = np.array([1.0, 1.0, 2.0], np.float32) * np.float32(CONTROL_DT_S)
_LOADED_S = 0.01
_RATE_S = np.float32(0.05)


@final
@dataclass(frozen=True)
class Trot:
    """Trots as commanded, and stands when asked to."""

    lift_m: float = 0.06
    """How high a foot swings."""
    lead_s: float = 0.04
    """How far ahead of the clock the targets are, for servos that follow late."""
    levelling: float = 1.0
    """Leg length per tilt, in multiples of what geometry asks for."""
    carried: float = 0.85
    """Share of the weight that the legs push against by pointing below the ground."""
    kp: float = 40.0
    """Stiffness of the servos [N m/rad]."""

    @property
    def digest(self) -> str:
        """Its recipe."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Begin standing; raises if the task shows something else than this one reads."""
        if task.observation.digest != OBSERVATION.digest:
            raise SignalError(f"the trot does not read what {task.name} shows", attempt="the velocity task")
        n = len(seeds)
        return {"asked": np.zeros((n, 3), np.float32), "height": np.zeros((n, 1), np.float32)}

    def act(self, observation: Array, memory: Memory) -> Act:
        """Joint angles that move the feet as the clock and the command want."""
        seen = OBSERVATION.unpack(observation)
        turn = np.arctan2(seen["gait_clock"][:, 0], seen["gait_clock"][:, 1])
        clock = turn[:, None] / np.float32(2 * np.pi) + LATER
        asked = memory["asked"] + np.clip(seen["command"] - memory["asked"], -_SLEW, _SLEW)
        stepping = moving(seen)[:, None] | (memory["height"] > 0.5)
        height = np.clip(memory["height"] + np.where(moving(seen)[:, None], _SETTLE, -_SETTLE), 0, 1)
        phase = np.mod(clock + np.float32(self.lead_s * GAIT_HZ), np.float32(1))
        target = joints(self._feet(seen, phase, height, asked))
        loaded = (np.mod(clock + np.float32(_LOADED_S * GAIT_HZ), np.float32(1)) < STANCE_SHARE) | ~stepping
        weight = loaded * (np.float32(self.carried * _WEIGHT_N) / loaded.sum(axis=1)[:, None].astype(np.float32))
        action = target + _push(target, weight) / np.float32(self.kp)
        return Act(action.astype(np.float32), {"asked": asked, "height": height})

    def _feet(self, seen: Columns, phase: Array, height: Array, asked: Array) -> Feet:
        """Where the feet should be: back along the ground, forward through the air."""
        planted = phase < STANCE_SHARE
        swing = (phase - np.float32(STANCE_SHARE)) / np.float32(1 - STANCE_SHARE)
        turn = np.float32(2 * np.pi) * swing
        back, forth = 0.5 - phase / np.float32(STANCE_SHARE), swing - 0.5 - np.sin(turn) / np.float32(2 * np.pi)
        stride_s = np.where(planted, back, forth) * np.float32(STANCE_SHARE / GAIT_HZ) * height
        lift = np.where(planted, 0, np.float32(self.lift_m / 2) * (1 - np.cos(turn))) * height
        u, v, r = (asked[:, i, None] for i in range(3))
        pitch = seen["projected_gravity"][:, 0, None] + _RATE_S * seen["gyro"][:, 1, None]
        roll = seen["projected_gravity"][:, 1, None] - _RATE_S * seen["gyro"][:, 0, None]
        level = np.float32(self.levelling) * (pitch * _HOME.x + roll * _HOME.y)
        along, across = u - r * _HOME.y, v + r * _HOME.x
        return Feet(_HOME.x + stride_s * along, _HOME.y + stride_s * across, _HOME.z - level + lift)


def _push(angles: Array, weight: Array) -> Array:
    """Joint torques with which the feet carry `weight`, (n, 4) [N]."""
    torque = np.empty_like(angles)
    for part in range(3):
        unit = np.zeros_like(angles)
        unit[:, part::3] = 1
        torque[:, part::3] = -feet_velocity(angles, unit).z * weight
    return torque
