"""Swing-up by pumping energy, then a linear hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import SignalError
from simops.core.protocols import Act, Memory
from simops.core.signal import Array
from simops.core.task import Task
from simops.tasks.pendulum.task import TORQUE_LIMIT_NM


@final
@dataclass(frozen=True)
class Expert:
    """Pumps energy until the bob can reach the top, then holds it there."""

    pump: float = 2.0
    """Torque a joule of missing energy and rad/s [N m s/(J rad)]."""
    stiffness_nm_rad: float = 25.0
    damping_nms_rad: float = 6.0
    catch_rad: float = 0.35
    """Distance from the top at which holding takes over from pumping."""

    @property
    def digest(self) -> str:
        """Its recipe."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Nothing to remember; raises for another task."""
        if task.observation.names != ("heading", "rate"):
            raise SignalError(f"the pendulum's expert cannot do {task.name}", attempt=task.expert)
        return {"rows": np.zeros(len(seeds), bool)}

    def act(self, observation: Array, memory: Memory) -> Act:
        """Torque for each row of sine, cosine and rate."""
        sine, cosine, rate = (observation[:, i].astype(np.float64) for i in range(3))
        energy = 0.5 * rate**2 - 9.81 * (cosine + 1.0)  # a kilogram at a metre; zero standing still at the top
        pump = -self.pump * energy * np.where(rate == 0.0, 1.0, np.sign(rate))
        from_top = np.arctan2(-sine, -cosine)
        hold = -self.stiffness_nm_rad * from_top - self.damping_nms_rad * rate
        torque = np.where(np.abs(from_top) < self.catch_rad, hold, pump)
        return Act(np.clip(torque, -TORQUE_LIMIT_NM, TORQUE_LIMIT_NM)[:, None], memory)
