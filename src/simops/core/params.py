"""A number of the world: randomised, identified and recorded through one type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from simops.core.errors import SignalError, nearest
from simops.core.signal import Array

Field: TypeAlias = Literal[
    "mass",  # of bodies; the inertia follows in proportion
    "com_x",  # of bodies [m], in the body's frame
    "com_y",
    "com_z",
    "friction",  # sliding coefficient of geoms
    "contact_stiffness",  # of geoms [N/m]
    "contact_damping",  # of geoms [N s/m]
    "damping",  # of joints [N m s/rad or N s/m]
    "armature",  # of joints [kg m^2 or kg]
    "frictionloss",  # of joints [N m or N]
    "kp",  # of position servos [N m/rad or N/m]
    "kd",  # of position servos [N m s/rad or N s/m]
    "strength",  # effort limit of actuators [N m or N]
    "delay",  # between a command and the actuators [s]
    "gravity",  # magnitude, downwards [m/s^2]
    "texture",  # of materials: which one of the pool
    "light",  # intensity of every light, 1 as modelled
    "camera_pan",  # of cameras [rad]
    "camera_tilt",
    "camera_roll",
]


@final
@dataclass(frozen=True)
class Change:
    """What a param does to the scene."""

    field: Field
    of: tuple[str, ...] = ()
    """Names of the bodies, geoms, joints, actuators, materials or cameras; empty for all of them."""
    how: Literal["set", "scale", "add"] = "set"


@final
@dataclass(frozen=True)
class Param:
    """One number of the world: name, unit, nominal value, physical bounds, and what it changes."""

    name: str
    nominal: float
    unit: str = ""
    low: float = -math.inf
    """No value below this makes physical sense."""
    high: float = math.inf
    changes: tuple[Change, ...] = ()
    """Empty for a number that the task's initial state, its sensors or its goal use."""
    integer: bool = False
    """A choice among whole numbers from `low` up to, not including, `high`."""
    about: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.nominal <= self.high:
            raise SignalError(f"{self.name} is {self.nominal}, outside [{self.low}, {self.high}]", where=self.name)


@final
@dataclass(frozen=True)
class Params:
    """Points in the space of params: names, and a row of values for each point."""

    names: tuple[str, ...]
    values: Array
    """(n, number of names), float64."""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise SignalError(f"{len(self.names)} params and values of shape {self.values.shape}")

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise SignalError(f"no param {name!r}", attempt=nearest(name, self.names))
        return self.values[:, self.names.index(name)]

    def rows(self, ids: Array | slice) -> Params:
        """Some of the points."""
        return Params(self.names, self.values[ids])

    def at(self, row: int) -> dict[str, float]:
        """One point, by name."""
        return dict(zip(self.names, self.values[row].tolist(), strict=True))

    @classmethod
    def of(cls, points: Sequence[Mapping[str, float]]) -> Params:
        """Gather points given by name; all must name the same params."""
        names = tuple(points[0]) if points else ()
        return cls(names, np.array([[p[name] for name in names] for p in points], float).reshape(len(points), -1))

    @classmethod
    def nominal(cls, params: Sequence[Param], n: int) -> Params:
        """Repeat the nominal point `n` times."""
        point = np.array([p.nominal for p in params], float)
        return cls(tuple(p.name for p in params), np.tile(point, (n, 1)))
