"""Units as suffixes of names: `object_mass_kg`, `camera_jitter_deg`, `delay_ms`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple


class Unit(NamedTuple):
    """What a suffix means."""

    factor: float
    """Multiplies a number in this unit to give SI."""
    si: str
    """The SI unit of the same quantity."""


class Quantity(NamedTuple):
    """A key taken apart."""

    name: str
    factor: float
    si: str
    """Empty when the key ends in no unit."""


UNITS: Mapping[str, Unit] = {
    "kg": Unit(1.0, "kg"),
    "g": Unit(1e-3, "kg"),
    "m": Unit(1.0, "m"),
    "cm": Unit(1e-2, "m"),
    "mm": Unit(1e-3, "m"),
    "um": Unit(1e-6, "m"),
    "s": Unit(1.0, "s"),
    "ms": Unit(1e-3, "s"),
    "us": Unit(1e-6, "s"),
    "hz": Unit(1.0, "Hz"),
    "khz": Unit(1e3, "Hz"),
    "rad": Unit(1.0, "rad"),
    "deg": Unit(math.pi / 180, "rad"),
    "mrad": Unit(1e-3, "rad"),
    "n": Unit(1.0, "N"),
    "kn": Unit(1e3, "N"),
    "nm": Unit(1.0, "N m"),
    "m_s": Unit(1.0, "m/s"),
    "cm_s": Unit(1e-2, "m/s"),
    "mm_s": Unit(1e-3, "m/s"),
    "m_s2": Unit(1.0, "m/s^2"),
    "rad_s": Unit(1.0, "rad/s"),
    "deg_s": Unit(math.pi / 180, "rad/s"),
    "rpm": Unit(math.pi / 30, "rad/s"),
    "rad_s2": Unit(1.0, "rad/s^2"),
    "n_m": Unit(1.0, "N/m"),
    "ns_m": Unit(1.0, "N s/m"),
    "nm_rad": Unit(1.0, "N m/rad"),
    "nms_rad": Unit(1.0, "N m s/rad"),
    "kgm2": Unit(1.0, "kg m^2"),
    "percent": Unit(1e-2, ""),
}
"""The first suffix of a unit with factor one is the one to suggest."""

_MOST_PARTS = 2


def split_unit(key: str) -> Quantity:
    """Take the unit off a key; the longest suffix that is a unit wins."""
    words = key.split("_")
    for count in range(min(_MOST_PARTS, len(words) - 1), 0, -1):
        unit = UNITS.get("_".join(words[-count:]))
        if unit is not None:
            return Quantity("_".join(words[:-count]), unit.factor, unit.si)
    return Quantity(key, 1.0, "")


def same_unit(a: str, b: str) -> bool:
    """Whether two ways to write a unit, as `N m` and `N*m`, mean the same one."""
    return _normal(a) == _normal(b)


def suffix_of(si: str) -> str:
    """The suffix that says `si`, with its underscore; empty where there is none."""
    for suffix, unit in UNITS.items():
        if unit.factor == 1.0 and unit.si and same_unit(unit.si, si):
            return f"_{suffix}"
    return ""


def suffixes_of(si: str) -> list[str]:
    """Every suffix of the quantity that `si` measures."""
    return [suffix for suffix, unit in UNITS.items() if unit.si and same_unit(unit.si, si)]


def _normal(unit: str) -> str:
    plain = unit.replace("²", "2").replace("·", "").replace("^", "").replace("*", "")
    return re.sub(r"\s", "", "" if plain == "1" else plain)
