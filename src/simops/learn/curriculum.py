"""A curriculum: the world begins nearer to its nominal numbers, and opens as the policy succeeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from simops.core.belief import Belief
from simops.core.params import Param, Params
from simops.core.signal import Array
from simops.spec.bounds import Above, AtLeast, AtMost


@final
@dataclass(frozen=True, kw_only=True)
class Curriculum:
    """When the world opens, and when it closes again; the level goes from 0, all nominal, to 1, all of the belief."""

    start: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 1.0
    """Level to begin at; at 1 there is no curriculum."""
    step: Annotated[float, Above(0.0), AtMost(1.0)] = 0.1
    """How far one move goes."""
    grow_above: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.8
    """Share of successes above which the level grows."""
    shrink_below: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.4
    """Share of successes below which it shrinks, never below where it began."""
    episodes: Annotated[int, AtLeast(1)] = 500
    """Episodes between two moves."""


@final
@dataclass
class Progress:
    """How far a curriculum has come."""

    level: float
    tried: int = 0
    """Episodes since the last move."""
    succeeded: int = 0

    def move(self, course: Curriculum, tried: int, succeeded: int) -> bool:
        """Count more episodes; whether the level changed."""
        self.tried += tried
        self.succeeded += succeeded
        if self.tried < course.episodes:
            return False
        share, before = self.succeeded / self.tried, self.level
        self.tried = self.succeeded = 0
        if share > course.grow_above:
            self.level = min(1.0, self.level + course.step)
        elif share < course.shrink_below:
            self.level = max(course.start, self.level - course.step)
        return self.level != before


@final
@dataclass(frozen=True)
class Shrunk:
    """A belief drawn in towards the nominal point; choices among whole numbers stay as wide as they are."""

    whole: Belief
    level: float
    """1 leaves the belief as it is, 0 leaves the nominal point alone."""

    @property
    def params(self) -> tuple[Param, ...]:
        """Those of the whole belief."""
        return self.whole.params

    def sample(self, seeds: Array) -> Params:
        """Draw from the whole belief, and go only part of the way there."""
        drawn = self.whole.sample(seeds)
        if self.level == 1.0:
            return drawn
        nominal, share = self._towards()
        return Params(drawn.names, nominal + share * (drawn.values - nominal))

    def log_density(self, points: Params) -> Array:
        """Density of the drawn-in belief; at level 0 there is none, but at the nominal point."""
        _, share = self._towards()
        moved = int((share < 1.0).sum())
        if self.level == 0.0:
            return np.where(self.inside(points), 0.0, -np.inf)
        return self.whole.log_density(self._out(points)) - moved * np.log(self.level)

    def inside(self, points: Params) -> Array:
        """Whether a point comes from inside the whole belief."""
        if self.level == 0.0:
            nominal, share = self._towards()
            values = np.stack([points[param.name] for param in self.params], axis=1)
            return np.all((values == nominal) | (share == 1.0), axis=1)
        return self.whole.inside(self._out(points))

    def _out(self, points: Params) -> Params:
        nominal, share = self._towards()
        values = np.stack([points[param.name] for param in self.params], axis=1)
        return Params(tuple(param.name for param in self.params), nominal + (values - nominal) / share)

    def _towards(self) -> tuple[Array, Array]:
        """The nominal point, and how much of the way to a draw is gone, a param each."""
        nominal = np.array([param.nominal for param in self.params])
        return nominal, np.array([1.0 if param.integer else self.level for param in self.params])
