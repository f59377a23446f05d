"""The settings of a sensor as params of a belief.

One rule for all of them: where the belief holds a param called NAME_SETTING, as `imu_gyro_white`, its value takes the
place of what the spec says; NAME is the sensor's own `name`. So randomization and identification reach every setting,
and a sensor need not be told which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, final, get_args, get_origin, get_type_hints

import numpy as np

from simops.core.params import Param
from simops.core.signal import Array
from simops.core.task import Draw
from simops.spec.bounds import Above, AtLeast, AtMost, Below
from simops.spec.units import split_unit


@final
@dataclass(frozen=True)
class Fixed:
    """Marks a number that is the same for every copy of a run, so no belief can hold it."""


FLAT = frozenset({"timing"})
"""Groups of settings whose own name is left out: `imu_delay_s`, not `imu_timing_delay_s`."""


def settings(name: str, recipe: object, **high: float) -> tuple[Param, ...]:
    """Every number of a recipe as a param, nominal as the recipe says; `high` tells bounds that follow from others."""
    return tuple(_params(name, recipe, high))


def dial(draw: Draw, name: str, value: float) -> Array:
    """A setting of each copy, (n,): what the belief says of it, else `value`."""
    return draw.params[name] if name in draw.params else np.full(len(draw.seeds), value)


def still(draw: Draw, name: str, value: float) -> bool:
    """Whether a setting is zero for every copy of the run, so that what it does can be left out."""
    return value == 0 and name not in draw.params


def tall(column: Array, like: Array) -> Array:
    """A number a copy, shaped to multiply rows of any shape."""
    return column.reshape(-1, *([1] * (like.ndim - 1)))


def _params(name: str, recipe: object, high: dict[str, float]) -> Iterator[Param]:
    for key, low, top in _numbers(type(recipe)):
        value = float(getattr(recipe, key))
        yield Param(f"{name}_{key}", value, split_unit(key).si, min(low, value), max(high.get(key, top), value))
    for field in fields(recipe) if is_dataclass(recipe) else ():
        part = getattr(recipe, field.name)
        if is_dataclass(part) and not isinstance(part, type):
            yield from _params(name if field.name in FLAT else f"{name}_{field.name}", part, high)


@cache
def _numbers(kind: type) -> tuple[tuple[str, float, float], ...]:
    """The fields that hold a float, and its bounds."""
    found: list[tuple[str, float, float]] = []
    hints: dict[str, Any] = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if marks[0] is not float or any(isinstance(mark, Fixed) for mark in marks[1:]):
            continue
        low = max((m.value for m in marks[1:] if isinstance(m, AtLeast | Above)), default=-math.inf)
        top = min((m.value for m in marks[1:] if isinstance(m, AtMost | Below)), default=math.inf)
        found.append((field.name, low, top))
    return tuple(found)
