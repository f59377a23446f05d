"""Worlds that failed, trained in again and again: some episodes begin at one of them instead of anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief
from simops.core.params import Param, Params
from simops.core.signal import Array, Columns
from simops.core.task import Draw
from simops.core.training import Course

PURPOSE = "injected"


@final
@dataclass(frozen=True)
class World:
    """A point, and where it begins."""

    weight: float = 1.0
    params: Mapping[str, float] = field(default_factory=dict[str, float])
    initial: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])


@final
@dataclass(frozen=True)
class Beset:
    """A belief of which a share of the draws is at one of some worlds; what those leave out is drawn as ever."""

    whole: Belief
    worlds: tuple[World, ...]
    share: float

    @property
    def params(self) -> tuple[Param, ...]:
        """Those of the whole belief."""
        return self.whole.params

    def sample(self, seeds: Array) -> Params:
        """Draw; the same seeds as ever are the same points, but for those that are injected."""
        drawn = self.whole.sample(seeds)
        values, chosen = drawn.values.copy(), picked(self.worlds, self.share, seeds)
        for i, world in enumerate(self.worlds):
            for name, value in world.params.items():
                if name in drawn:
                    values[chosen == i, drawn.names.index(name)] = value
        return Params(drawn.names, values)

    def log_density(self, points: Params) -> Array:
        """Of what is drawn as ever; the injected points carry no density of their own."""
        return self.whole.log_density(points) + np.log1p(-self.share)

    def inside(self, points: Params) -> Array:
        """Whether the whole belief vouches for a point, or it is an injected one."""
        found = self.whole.inside(points)
        for world in self.worlds:
            named = {name: value for name, value in world.params.items() if name in points}
            if len(named) == len(points.names):
                found = found | np.all([points[name] == value for name, value in named.items()], axis=0)
        return found


def picked(worlds: tuple[World, ...], share: float, seeds: Array) -> Array:
    """(n,) which world each seed begins in; -1 for none of them."""
    weights = np.cumsum([world.weight for world in worlds])
    drawn = chance.uniform(seeds, PURPOSE, (2,))
    which = np.searchsorted(weights / weights[-1], drawn[:, 1], side="right")
    return np.where(drawn[:, 0] < share, np.minimum(which, len(worlds) - 1), -1)


def beset(course: Course, worlds: tuple[World, ...], share: float) -> Course:
    """The same course, of whose episodes a share begins in one of these worlds."""
    if not worlds or share <= 0:
        return course
    task = course.task
    mixed = Beset(course.belief or task.belief, worlds, share)
    return replace(course, task=replace(task, belief=mixed, initial=_begin(task.initial, worlds, share)), belief=mixed)


def _begin(before: Callable[[Draw], Columns], worlds: tuple[World, ...], share: float) -> Callable[[Draw], Columns]:
    def initial(draw: Draw) -> Columns:
        columns = {name: np.array(rows, float) for name, rows in before(draw).items()}
        chosen = picked(worlds, share, draw.seeds)
        for i, world in enumerate(worlds):
            for name, values in world.initial.items():
                if name in columns and (chosen == i).any():
                    columns[name][chosen == i] = np.array(values).reshape(columns[name].shape[1:])
        return columns

    return initial
