"""What there may be beside a point of the belief: where episodes begin, and what disturbs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, final

from simops.spec.bounds import AtLeast
from simops.spec.ranges import Range

Extent = Range | int | float
"""`[low, high]`, or one number that stays."""
TURN = Range(-3.141592653589793, 3.141592653589793)


@final
@dataclass(frozen=True, kw_only=True)
class Pushes:
    """A level force on a body, from anywhere around it."""

    body: str
    force_n: Extent
    heading_rad: Extent = TURN
    """Where it pushes to, about the world's vertical; 0 is along x."""
    at_s: Extent | None = None
    """When it begins; any time of the episode when left out."""
    for_s: Extent = 0.1


@final
@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Commands that arrive late for a while."""

    steps: Annotated[Range, AtLeast(0.0)] | Annotated[int, AtLeast(1)]
    """Control steps; at 0 there is none."""
    at_s: Extent | None = None
    for_s: Extent = 0.5


@final
@dataclass(frozen=True, kw_only=True)
class Dropouts:
    """A signal that stops being measured for a while."""

    signal: str
    at_s: Extent | None = None
    for_s: Extent = 0.2
    shows: Literal["last", "zero"] = "last"


@final
@dataclass(frozen=True, kw_only=True)
class Payloads:
    """Mass added to a body."""

    body: str
    mass_kg: Extent


@final
@dataclass(frozen=True, kw_only=True)
class Around:
    """What there may be beside a point of the belief; every number is `[low, high]`, or one that stays."""

    initial: Mapping[str, tuple[Extent, ...]] = field(default_factory=dict[str, tuple[Extent, ...]])
    """Signals of the state to begin with, or of the goal to hold, an extent for each element."""
    pushes: tuple[Pushes, ...] = ()
    latencies: tuple[Latencies, ...] = ()
    dropouts: tuple[Dropouts, ...] = ()
    payloads: tuple[Payloads, ...] = ()
    fixed: tuple[str, ...] = ()
    """Params that stay nominal; those that only cameras see always do."""
