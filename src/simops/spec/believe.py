"""Puts what a spec says of some params in the place of what was believed of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, final

from simops.core.belief import Belief, Box, Gaussian, Joint, Particles
from simops.core.errors import SignalError
from simops.core.params import Param
from simops.spec.bounds import Above
from simops.spec.ranges import Range


@final
@dataclass(frozen=True)
class Normal:
    """A bell around a mean."""

    mean: float
    std: Annotated[float, Above(0.0)]
    """Standard deviation, in the unit of the key."""


class Varied(NamedTuple):
    """How one param varies, in SI."""

    param: Param
    spread: Range | Normal
    """A fixed value is a range of no width."""


def believe(belief: Belief, chosen: Mapping[str, Varied]) -> Belief:
    """Give `belief` with the chosen params, by name, as chosen; of the others it thinks as before."""
    ranges = {name: varied.spread for name, varied in chosen.items() if isinstance(varied.spread, Range)}
    if isinstance(belief, Box) and len(ranges) == len(chosen):
        ends = zip(belief.params, belief.low, belief.high, strict=True)
        return _box({param: ranges.get(param.name, Range(low, high)) for param, low, high in ends})
    parts: list[Belief] = [part] if (part := without(belief, chosen)) is not None else []
    if ranges:
        parts.append(_box({chosen[name].param: spread for name, spread in ranges.items()}))
    for param, spread in chosen.values():
        if isinstance(spread, Normal):
            parts.append(Gaussian((param,), (spread.mean,), ((spread.std**2,),)))
    return parts[0] if len(parts) == 1 else Joint(tuple(parts))


def without(belief: Belief, names: Collection[str]) -> Belief | None:
    """What `belief` thinks of all params but these, whatever those are; nothing if there are no others."""
    kept = [i for i, param in enumerate(belief.params) if param.name not in names]
    params = tuple(belief.params[i] for i in kept)
    if len(kept) == len(belief.params):
        return belief if kept else None
    if not kept:
        return None
    match belief:
        case Box():
            return Box(params, _of(belief.low, kept), _of(belief.high, kept))
        case Gaussian():
            covariance = tuple(_of(belief.covariance[i], kept) for i in kept)
            return replace(belief, params=params, mean=_of(belief.mean, kept), covariance=covariance)
        case Particles():
            points = tuple(_of(point, kept) for point in belief.points)
            return replace(
                belief, params=params, points=points, spread=_of(belief.spread, kept) if belief.spread else ()
            )
        case Joint(parts):
            rest = [part for each in parts if (part := without(each, names)) is not None]
            return Joint(tuple(rest))
        case _:
            raise SignalError(f"no single param can be taken out of a {type(belief).__name__}")


def _box(rows: Mapping[Param, Range]) -> Box:
    return Box(tuple(rows), tuple(row.low for row in rows.values()), tuple(row.high for row in rows.values()))


def _of(row: tuple[float, ...], kept: list[int]) -> tuple[float, ...]:
    return tuple(row[i] for i in kept)
