"""Which bodies may touch, for engines that filter contacts by bodies and not by shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simops.core.errors import EngineError
from simops.sim.surfaces import named
from simops.sim.walk import Parts, Shape


def apart(parts: Parts, bodies: Sequence[Sequence[Shape]], engine: str) -> Iterator[tuple[int, int]]:
    """Every two bodies that never touch, each by the geom of its first shape.

    Raises where some shapes of two bodies touch and others of the same two do not.
    """
    meets = {frozenset(pair.geoms): pair for pair in parts.pairs}
    for i, one in enumerate(bodies):
        for other in bodies[i + 1 :]:
            found = [meets.get(frozenset((a.geom, b.geom))) for a in one for b in other]
            met = [pair for pair in found if pair is not None]
            if not met:
                yield one[0].geom, other[0].geom
            elif len(met) < len(found):
                names = " and ".join(named(parts, met[0]))
                raise EngineError(
                    f"in {engine} bodies touch whole or not at all", where=names, attempt="another engine"
                )
