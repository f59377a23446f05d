"""A small spec with every kind of field, and plugins for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, Protocol, final

from simops.core.errors import PluginError, Problem, nearest
from simops.spec.bounds import Above, AtLeast, AtMost, Below, Matches
from simops.spec.plugins import Make, Plugin, Plugins
from simops.spec.ranges import Range


class Tool(Protocol):
    """What the plugins here have in common."""

    def weight_kg(self) -> float: ...


class Colour(Enum):
    RED = "red"
    DEEP_BLUE = 2


@final
@dataclass(frozen=True)
class Hammer:
    """A tool that hits."""

    head_kg: Annotated[float, Above(0.0), AtMost(20.0)] = 0.5
    """Mass of the head [kg]."""
    names: tuple[str, ...] = ()
    grip: Callable[[], None] | None = None
    """Only Python can give this."""
    limit: float = float("inf")
    """Without end unless it is given."""

    def weight_kg(self) -> float:
        return self.head_kg


@final
@dataclass(frozen=True)
class Drill:
    """A tool that turns."""

    speed_hz: Annotated[int, AtLeast(1)]
    bit: Annotated[Tool, Plugin("tool")] | None = None

    def weight_kg(self) -> float:
        return 1.0


def saw(teeth: int = 40, *, sharp: bool = True) -> Hammer:
    """A tool made by a function."""
    return Hammer(head_kg=teeth / 100 + sharp)


@final
@dataclass(frozen=True, kw_only=True)
class Inner:
    """A nested record."""

    ratio: Annotated[float, AtLeast(0.0), Below(1.0)]
    """From nothing to all."""
    pair: tuple[int, str] = (1, "one")


@final
@dataclass(frozen=True, kw_only=True)
class Everything:
    """One field of each kind."""

    flag: bool = False
    count: Annotated[int, AtLeast(0), AtMost(100)] = 3
    """How many."""
    gain: float = 1.0
    name: Annotated[str, Matches(r"[^\n]{0,40}")] = "x"
    file: Path = Path("a/b.xml")
    mode: Literal["fast", "exact", 3] = "fast"
    colour: Colour = Colour.RED
    maybe: int | None = None
    several: tuple[float, ...] = ()
    friction: Annotated[Range, AtLeast(0.0)] = field(default_factory=lambda: Range(0.2, 1.0))
    by_name: Mapping[str, Range | int | float] = field(default_factory=dict[str, Range | int | float])
    inner: Inner = field(default_factory=lambda: Inner(ratio=0.5))
    more: tuple[Inner, ...] = ()
    tool: Annotated[Tool, Plugin("tool", default="hammer")]
    spare: Annotated[Tool, Plugin("tool")] | None = None
    low: int = 0
    high: int = 1
    threads: int = field(default=0, repr=False, compare=False)
    """How fast, not what."""

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        match known.get("low"), known.get("high"):
            case int(low), int(high) if low > high:
                yield Problem("low", f"{low} is above high {high}", fault="CFG-005")
            case _:
                return


TOOLS: dict[str, Make] = {"hammer": Hammer, "drill": Drill, "saw": saw}


def _load(kind: str, name: str) -> Make:
    if name not in TOOLS:
        raise PluginError(f"no {kind} is called {name!r}", attempt=nearest(name, TOOLS))
    return TOOLS[name]


PLUGINS = Plugins(_load, lambda _: tuple(TOOLS))
