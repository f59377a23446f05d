"""Motors: the way from a command to a torque, inside the physics step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.protocols import Memory, Torque
from simops.core.signal import Array


@final
@dataclass(frozen=True)
class Pd:
    """An ideal servo: stiffness towards the command, damping against the velocity, an effort limit."""

    kp_nm_rad: float = 30.0
    kd_nms_rad: float = 1.0
    limit_nm: float = float("inf")

    def start(self, n: int, joints: int) -> Memory:
        """Nothing to remember."""
        del joints
        return {"rows": np.zeros(n, bool)}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """Proportional to the error, less damping, within the limit."""
        del dt_s
        wanted = self.kp_nm_rad * (command - position) - self.kd_nms_rad * velocity
        return Torque(np.clip(wanted, -self.limit_nm, self.limit_nm), memory)


@final
@dataclass(frozen=True)
class Dc:
    """A geared DC motor under a servo: torque falls with speed, friction opposes motion, commands arrive late."""

    kp_nm_rad: float = 30.0
    kd_nms_rad: float = 1.0
    stall_nm: float = 24.0
    """Torque at standstill."""
    no_load_rad_s: float = 30.0
    """Speed at which no torque is left."""
    coulomb_nm: float = 0.0
    viscous_nms_rad: float = 0.0
    stribeck_nm: float = 0.0
    """Extra friction that must be overcome to start moving."""
    stribeck_rad_s: float = 0.1
    delay_steps: int = 0
    """Physics steps before a command arrives."""

    def start(self, n: int, joints: int) -> Memory:
        """The commands under way; none yet."""
        return {"pending": np.full((n, self.delay_steps, joints), np.nan)}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """Servo torque within the torque-speed limit, less friction."""
        del dt_s
        pending = memory["pending"]
        if self.delay_steps:
            queue = np.concatenate([pending, command[:, None]], axis=1)
            arrived, pending = queue[:, 0], queue[:, 1:]
            command = np.where(np.isnan(arrived), position, arrived)  # before the first arrival it holds still
        wanted = self.kp_nm_rad * (command - position) - self.kd_nms_rad * velocity
        share = velocity / self.no_load_rad_s
        drive = np.clip(wanted, -self.stall_nm * np.clip(1 + share, 0, 1), self.stall_nm * np.clip(1 - share, 0, 1))
        slip = velocity / self.stribeck_rad_s
        friction = (self.coulomb_nm + self.stribeck_nm * np.exp(-(slip**2))) * np.tanh(10.0 * slip)
        return Torque(drive - friction - self.viscous_nms_rad * velocity, {"pending": pending})
