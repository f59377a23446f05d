"""Markers that say, next to a field's type, which values a spec may give it.

    threads: Annotated[int, AtLeast(1)] = 1
    friction: Annotated[Range, Above(0.0), AtMost(2.0)] = Range(0.2, 1.1)

On a `Range` a bound holds for both ends, on text `Matches` holds for the whole of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class AtLeast:
    """The smallest value allowed."""

    value: float

    def holds(self, number: float) -> bool:
        """Whether `number` is allowed."""
        return number >= self.value

    def __str__(self) -> str:
        return f"at least {self.value:g}"


@final
@dataclass(frozen=True)
class AtMost:
    """The largest value allowed."""

    value: float

    def holds(self, number: float) -> bool:
        """Whether `number` is allowed."""
        return number <= self.value

    def __str__(self) -> str:
        return f"at most {self.value:g}"


@final
@dataclass(frozen=True)
class Above:
    """Every value allowed is greater than this one."""

    value: float

    def holds(self, number: float) -> bool:
        """Whether `number` is allowed."""
        return number > self.value

    def __str__(self) -> str:
        return f"above {self.value:g}"


@final
@dataclass(frozen=True)
class Below:
    """Every value allowed is smaller than this one."""

    value: float

    def holds(self, number: float) -> bool:
        """Whether `number` is allowed."""
        return number < self.value

    def __str__(self) -> str:
        return f"below {self.value:g}"


@final
@dataclass(frozen=True)
class Matches:
    """The regular expression that the whole of a text must match."""

    pattern: str

    def holds(self, text: str) -> bool:
        """Whether `text` is allowed."""
        return re.fullmatch(self.pattern, text) is not None

    def __str__(self) -> str:
        return f"text like {self.pattern}"


Bound = AtLeast | AtMost | Above | Below
"""What limits a number."""


def broken(number: float, bounds: tuple[Bound, ...]) -> str:
    """Say which bounds `number` breaks, or give an empty string."""
    if all(bound.holds(number) for bound in bounds):
        return ""
    return f"{number!r} is out of range, want " + " and ".join(str(bound) for bound in bounds)
