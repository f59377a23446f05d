"""What an engine offers that has one world for each copy of a scene; everything else is made around it.

Such an engine is one file: a frozen dataclass with `build`, and the world that `build` makes from
plain parts. Resetting, limits, delay, motors, params, sensors, breakdowns and worker processes are
the same for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from simops.core.protocols import Motor
from simops.core.signal import Array
from simops.sim.walk import Parts


class Load(NamedTuple):
    """A push on a link, held until told otherwise."""

    link: int
    """Among the parts' links."""
    point: Array
    """Where it acts, in the link's frame."""
    wrench: Array
    """(6,) force, then torque, in world axes."""


class Touch(NamedTuple):
    """One contact between two shapes, as the last physics step left it."""

    geoms: tuple[int, int]
    point: Array
    """In the world."""
    force: Array
    """On the second shape, in the world."""
    normal: Array
    """Unit vector out of the first shape towards the second."""


class World(Protocol):
    """One copy of a scene. State is in MuJoCo's coordinates: `qpos` and `qvel` as the parts number them."""

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put everything there, with nothing remembered of what was before, and no load."""
        ...

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these, and no others, from now on."""
        ...

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many physics steps with one number a drive held; any exception breaks this copy alone."""
        ...

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all joints into the two vectors."""
        ...

    def touches(self) -> Sequence[Touch]:
        """The contacts that carry force."""
        ...


class Maker(Protocol):
    """An engine with one world for each copy."""

    @property
    def workers(self) -> int:
        """Worker processes; 0 uses every core, 1 stays in this process."""
        ...

    @property
    def motor(self) -> Motor | None:
        """What takes the place of the scene's actuators."""
        ...

    def build(self, parts: Parts, step_s: float) -> World:
        """Make one world; raises EngineError for what it would lose."""
        ...
