"""MuJoCo at small steps with a solver that lets nothing creep: a second opinion, of the same family as training.

It shares MuJoCo's contact model and code, so it finds what a coarse step or a soft friction cone hides, and nothing
that MuJoCo as such gets wrong.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import final

import numpy as np

from simops.core.errors import EngineError
from simops.core.protocols import Motor
from simops.core.task import Task
from simops.sim.mujoco import Mujoco, MujocoSim
from simops.sim.scene import Physics


@final
@dataclass(frozen=True)
class MujocoFine:
    """MuJoCo with an elliptic cone, a step of a quarter of a millisecond and slip removed after every step."""

    threads: int = field(default=0, repr=False)
    """Worker threads; 0 uses every core. No part of the recipe: the bytes are the same at any number."""
    step_s: float = 0.00025
    """Longest physics step [s]; a little less where the control period asks it."""
    noslip_iterations: int = 3
    """Passes that take the slip out of contacts that hold."""
    impratio: float = 1.0
    """As in `Physics`; with noslip, more than 1 lets a box that slides go two percent too fast."""
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""

    def __post_init__(self) -> None:
        if self.step_s <= 0:
            raise EngineError(f"a step of {self.step_s} s", attempt="step_s: 0.00025")

    def open(self, task: Task, n: int) -> AbstractContextManager[MujocoSim]:
        """Make `n` copies of the task's scene."""
        steps = max(1, int(np.ceil(task.control_dt_s / self.step_s - 1e-9)))
        physics = Physics(
            step_s=task.control_dt_s / steps, impratio=self.impratio, noslip_iterations=self.noslip_iterations
        )
        return Mujoco(self.threads, physics, self.motor).open(task, n)

    def version(self, task: Task) -> str:
        """MuJoCo's version and the digest of the scene."""
        return Mujoco().version(task)
