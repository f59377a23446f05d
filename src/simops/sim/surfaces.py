"""Coefficients of surfaces from coefficients of pairs, for an engine that multiplies those of two surfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim.pairs import Pair
from simops.sim.walk import Parts

CLOSE = 1e-3
"""Share by which a pair's friction may be off."""
NONE = 1e-9
"""Stands for no friction at all where coefficients are multiplied."""
FEATURE = "friction of each pair"


def frictions(parts: Parts, owner: Mapping[int, int], engine: str, without: Sequence[str]) -> dict[int, float]:
    """A coefficient for each surface, so that the product of two is the friction of their pair.

    `owner` says which surface each geom is part of. Where no coefficients do, raises, unless that is among what the
    user can do without; then they are as near as they get.
    """
    wanted = {_between(owner, pair): pair.friction for pair in parts.pairs}
    found = _solved(wanted)
    for pair in parts.pairs:
        one, other = (found[owner[geom]] for geom in pair.geoms)
        if abs(one * other - pair.friction) > CLOSE * max(pair.friction, CLOSE) and FEATURE not in without:
            names = " and ".join(named(parts, pair))
            raise EngineError(
                f"{engine} multiplies frictions: no coefficients give {names} {pair.friction:g}",
                where=names,
                attempt=f"another engine, or without: [{FEATURE}] to have the nearest",
            )
    return found


def restitutions(parts: Parts, owner: Mapping[int, int]) -> dict[int, float]:
    """Coefficients whose products let what moves bounce off what is fixed as its pair says.

    Two things that both move bounce as their coefficients mix: no product gives every pair its own.
    """
    fixed = {owner[shape.geom] for shape in parts.ground}
    found: dict[int, float] = {}
    grounded: set[int] = set()
    for pair in parts.pairs:
        surfaces = set(_between(owner, pair))
        for surface in surfaces - fixed:
            if surfaces & fixed and surface not in grounded:
                found[surface] = pair.restitution
                grounded.add(surface)
            elif surfaces & fixed or surface not in grounded:
                found[surface] = max(pair.restitution, found.get(surface, 0.0))
    return dict.fromkeys(fixed, 1.0) | found


def named(parts: Parts, pair: Pair) -> list[str]:
    """What the scene calls the two shapes, or the links that they are part of."""
    names = {shape.geom: shape.name or "the ground" for shape in parts.ground}
    for link in parts.links:
        names |= {shape.geom: shape.name or link.name for shape in link.shapes}
    return [names[geom] for geom in pair.geoms]


def _between(owner: Mapping[int, int], pair: Pair) -> tuple[int, int]:
    one, other = (owner[geom] for geom in pair.geoms)
    return min(one, other), max(one, other)


def _solved(wanted: Mapping[tuple[int, int], float]) -> dict[int, float]:
    surfaces = sorted({surface for pair in wanted for surface in pair})
    if not wanted:
        return {}
    values = np.array(list(wanted.values()))
    right: Array = np.log(np.maximum(values, NONE))
    left = np.zeros((len(values), len(surfaces)))
    for row, pair in enumerate(wanted):
        for surface in pair:
            left[row, surfaces.index(surface)] += 1.0
    found = np.linalg.lstsq(left, right, rcond=None)[0]  # the least of all that fit: both sides share alike
    return {s: float(np.exp(f)) for s, f in zip(surfaces, found, strict=True)}
