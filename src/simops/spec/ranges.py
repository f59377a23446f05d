"""An interval of numbers, written `[low, high]` in a spec."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError(f"want finite ends, got [{self.low!r}, {self.high!r}]")
        if self.low > self.high:
            raise ValueError(f"low {self.low!r} is above high {self.high!r}")

    def scaled(self, factor: float) -> Range:
        """Give the same interval in a unit `factor` times smaller."""
        ends = (self.low * factor, self.high * factor)
        return Range(min(ends), max(ends))

    def inside(self, other: Range) -> bool:
        """Whether every number here is also in `other`."""
        return other.low <= self.low and self.high <= other.high

    def __str__(self) -> str:
        return f"[{self.low:.6g}, {self.high:.6g}]"
