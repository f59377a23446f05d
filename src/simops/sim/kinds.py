"""A shape once for every kind of contact it takes part in.

Engines mix what each of two surfaces says of itself by a rule of their own. Where only skins of one kind meet, both
say the same, and any rule gives what the scene says of the pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simops.sim.walk import Parts


class Kind(NamedTuple):
    """What a contact is like."""

    friction: float
    restitution: float


class Skin(NamedTuple):
    """A shape as it is to some of those that it meets."""

    geom: int
    kind: Kind


def skins(parts: Parts) -> Mapping[Skin, frozenset[Skin]]:
    """Every skin, and those it meets."""
    meets: dict[Skin, set[Skin]] = {}
    for pair in parts.pairs:
        one, other = (Skin(geom, Kind(pair.friction, pair.restitution)) for geom in pair.geoms)
        meets.setdefault(one, set()).add(other)
        meets.setdefault(other, set()).add(one)
    return {skin: frozenset(met) for skin, met in meets.items()}
