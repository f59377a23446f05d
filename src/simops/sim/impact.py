"""An engine of hard convex bodies on planes, with a contact law that can be learned from tosses.

Every number of the law is a field, so a spec may set it, a learner may fit it, and `repr` is the whole recipe.
Whatever the numbers, a contact never pulls, stays within its friction cone, and takes energy or nothing: the law only
scales stiffness, damping and friction, and all stay positive. See `impact_kernel`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, final

import numpy as np

from simops.core.errors import EngineError, ExtraError
from simops.core.params import Param, Params
from simops.core.protocols import Motor
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.sim.per_copy import PerCopySim, opened
from simops.sim.scene import Physics, compile_task, digest
from simops.sim.walk import Parts, walk
from simops.sim.world import World

if TYPE_CHECKING:
    from simops.sim.impact_world import Body

WEIGHTS = 26
"""Of the network: three inputs, four hidden units, two outputs."""
CORNERS = 8


@final
@dataclass(frozen=True)
class Impact:
    """Free boxes and balls over planes; nothing else."""

    step_s: float = 1e-3
    """Physics step [s]."""
    stiffness: float = 1.0
    """Of a point of contact, times what the scene says."""
    damping: float = 1.0
    """The same; damping only ever takes."""
    grip: float = 1.0
    """Friction, times what the scene says."""
    slow: float = 0.0
    """What a contact at rest adds to the friction of one that slides, as a share; negative where it grips less."""
    slow_speed_m_s: float = 0.1
    """How fast it slides when most of that is gone."""
    load: float = 0.0
    """Friction falls as the load, in weights of the body, to this power."""
    creep_m_s: float = 0.0
    """Slip at which friction is seven tenths of its full size; 0 for none at all below the cone."""
    rounding_m: float = 0.0
    """Radius of the edges and corners of boxes."""
    inertia: float = 1.0
    """Moment of inertia, times what the scene says."""
    corners_m: tuple[float, ...] = ()
    """Where the corners of a box truly are: 24 offsets along its axes, x, y and z of the corner (-,-,-) first, then
    (-,-,+) and so on; empty for a perfect box."""
    network: tuple[float, ...] = ()
    """Weights of a small network of load, slip and closing speed that scales friction and damping by up to two."""
    workers: int = field(default=1, repr=False)
    """Worker processes; 0 uses every core. No part of the recipe: the bytes are the same at any number."""

    def __post_init__(self) -> None:
        for name in ("step_s", "stiffness", "slow_speed_m_s", "inertia"):
            if not getattr(self, name) > 0:
                raise EngineError(f"{name} is {getattr(self, name)}", attempt="more than 0")
        for name in ("damping", "grip", "creep_m_s", "rounding_m"):
            if not getattr(self, name) >= 0:
                raise EngineError(f"{name} is {getattr(self, name)}", attempt="0 or more")
        for name, count in (("corners_m", 3 * CORNERS), ("network", WEIGHTS)):
            if len(getattr(self, name)) not in {0, count}:
                raise EngineError(f"{name} has {len(getattr(self, name))} numbers", attempt=f"{count}, or none")

    @property
    def motor(self) -> Motor | None:
        """None: free bodies have no joints to drive."""
        return None

    @property
    def settings(self) -> tuple[Param, ...]:
        """What may be learned of it, nominal as it is set, within what makes sense."""
        numbers = tuple(
            Param(name, getattr(self, name), unit, low, high, about=about) for name, unit, low, high, about in _SETTINGS
        )
        lists = tuple(
            Param(f"{name}_{i}", value, unit, -most, most)
            for name, unit, count, most in (("corners_m", "m", 3 * CORNERS, 0.005), ("network", "", WEIGHTS, 3.0))
            for i, value in enumerate(getattr(self, name) or (0.0,) * count)
        )
        return (*numbers, *lists)

    def at(self, values: Mapping[str, float]) -> Impact:
        """This engine with some of its settings changed, by the names of `settings`."""
        known = {param.name: param.nominal for param in self.settings}
        changes: dict[str, float | tuple[float, ...]] = {
            name: value for name, value in values.items() if name in {one.name for one in fields(self)}
        }
        for name in ("corners_m", "network"):
            held = [key for key in known if key.startswith(f"{name}_")]
            if any(key in values for key in held):
                changes[name] = tuple(values.get(key, known[key]) for key in held)
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[PerCopySim]:
        """Make `n` copies of the task's scene."""
        with opened(self, task, n, self.step_s) as sim:
            yield sim

    def version(self, task: Task) -> str:
        """The compiler's version, which the bytes depend on, and the digest of the scene."""
        try:
            return f"impact 1 numba {version('numba')} scene {digest(task)}"
        except PackageNotFoundError as error:
            raise ExtraError("the engine impact needs numba", attempt="pip install 'simops[fit]'") from error

    def build(self, parts: Parts, step_s: float) -> World:
        """Make one world; raises EngineError for what it would lose."""
        from simops.sim.impact_world import ImpactWorld

        return ImpactWorld(self._bodies(parts), step_s)

    def throw(self, task: Task, begun: Columns, rows: Array, params: Params | None = None) -> dict[str, Array]:
        """Throw the one body of a scene many times at once, with nothing in between: what a fit asks for.

        Args:
            task: Whose scene it is, with position, quaternion, velocity and angular_velocity as its state.
            begun: Those four, one row a throw.
            rows: How many control periods each is watched, the first row included.
            params: One point of the task's belief for all throws; left out, the scene as it is.

        Returns:
            `position` and `quaternion`, (throws, most rows, 3 or 4), the same bytes as the simulation gives; NaN
            beyond a throw's end.
        """
        from simops.sim.change import Changes
        from simops.sim.impact_world import thrown

        periods = max(1, int(np.ceil(task.control_dt_s / self.step_s - 1e-9)))
        model = compile_task(task, Physics(step_s=task.control_dt_s / periods), direct=False)
        if params is not None:
            Changes(model, task.belief.params).write(
                lambda name: getattr(model.opt if name.startswith("opt.") else model, name.removeprefix("opt."))[None],
                np.arange(1),
                params,
            )
        found = self._bodies(walk(model))
        if len(found) != 1:
            raise EngineError(f"{task.name} has {len(found)} free bodies", attempt="a scene with one")
        return thrown(found[0], begun, rows, float(model.opt.timestep), periods)

    def _bodies(self, parts: Parts) -> tuple[Body, ...]:
        from simops.sim.impact_world import Contact, bodies

        numbers = (self.stiffness, self.damping, self.grip, self.slow, self.slow_speed_m_s, self.load, self.creep_m_s)
        return bodies(Contact(numbers, self.network, self.rounding_m, self.corners_m, self.inertia), parts)


_SETTINGS = (
    ("stiffness", "", 0.1, 40.0, "of a contact"),
    ("damping", "", 0.02, 20.0, "of a contact"),
    ("grip", "", 0.2, 4.0, "friction"),
    ("slow", "", -0.9, 1.0, "friction at rest"),
    ("slow_speed_m_s", "m/s", 0.01, 1.0, "speed at which that is gone"),
    ("load", "", -0.2, 0.4, "exponent of friction in the load"),
    ("creep_m_s", "m/s", 0.0, 0.1, "slip at which friction begins"),
    ("rounding_m", "m", 0.0, 0.012, "radius of edges and corners"),
    ("inertia", "", 0.6, 1.8, "moment of inertia"),
)
