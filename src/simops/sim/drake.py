"""The validation engine: Drake, another solver, another contact model and another code than the one that trains.

What is manipulated (objects, fingers, feet) touches with pressure fields, the rest at points. Servos,
their limits and couplings are part of the implicit step. Never Drake's SAP approximation, under which
a cube that must fall glides, and never TAMSI, which ignores the servos' gains.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, final

from simops.core.errors import EngineError, ExtraError
from simops.core.protocols import Motor
from simops.core.task import Task
from simops.sim.per_copy import PerCopySim, opened
from simops.sim.scene import digest
from simops.sim.walk import Parts
from simops.sim.world import World

CAN = frozenset(
    {
        "armature",
        "joint friction",
        "joint spring",
        "coupling",
        "several joints on a body",
        "mesh",
        "ellipsoid",
    }
)
"""What scenes may use; see `Parts.needs`."""


@final
@dataclass(frozen=True)
class Drake:
    """Drake with hydroelastic contact."""

    step_s: float = 1e-3
    """Physics step [s]; with `cenic`, the longest time for which a motor holds its torque."""
    scheme: Literal["similar", "cenic"] = "similar"
    """`similar` takes steps of `step_s`; `cenic` takes as many as `accuracy` needs, and no more."""
    accuracy: float = 1e-3
    """Of `cenic`: what may be wrong after a step, about in metres and radians."""
    contact: Literal["hydroelastic", "point"] = "hydroelastic"
    """How what is manipulated touches: over an area, or at a point as all the rest."""
    stiction_m_s: float = 5e-6
    """Speed below which what sticks may creep [m/s]."""
    modulus_pa: float = 5e6
    """Elastic modulus of what is manipulated [Pa]."""
    sink_m: float = 1e-4
    """How deep a thing's own weight presses a point contact [m]."""
    without: tuple[str, ...] = ()
    """What a scene uses and Drake lacks, lost knowingly."""
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""
    workers: int = field(default=0, repr=False)
    """Worker processes; 0 uses every core. No part of the recipe: the bytes are the same at any number."""

    def __post_init__(self) -> None:
        for name in ("step_s", "accuracy", "stiction_m_s", "modulus_pa", "sink_m"):
            if not getattr(self, name) > 0:
                raise EngineError(f"{name} is {getattr(self, name)}", attempt="more than 0")

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[PerCopySim]:
        """Make `n` copies of the task's scene."""
        with opened(self, task, n, self.step_s) as sim:
            yield sim

    def version(self, task: Task) -> str:
        """Drake's version and the digest of the scene."""
        try:
            return f"drake {version('drake')} scene {digest(task)}"
        except PackageNotFoundError as error:
            attempt = "pip install 'simops[drake]'"
            raise ExtraError("the engine needs Drake, which is not installed", attempt=attempt) from error

    def build(self, parts: Parts, step_s: float) -> World:
        """Make one world; raises EngineError for what it would lose."""
        from simops.sim.drake_contact import Feel
        from simops.sim.drake_world import DrakeWorld, Settings

        parts.require("drake", CAN, self.without)
        settings = Settings(
            step_s=step_s,
            accuracy=self.accuracy if self.scheme == "cenic" else None,
            stiction_m_s=self.stiction_m_s,
            feel=Feel(self.modulus_pa, self.sink_m, fields=self.contact == "hydroelastic"),
        )
        return DrakeWorld(parts, settings)
