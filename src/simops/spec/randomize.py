"""Turns the `randomization` of a spec into a belief: keys are matched with a task's params, units are turned into SI.

A key names a param and its unit, `object_mass_kg`, or a group of params that differ in their last word only:
`camera_jitter_deg` stands for `camera_jitter_pan` and `camera_jitter_tilt`. `texture_pool: 200` lets the whole-number
param `texture` be any of the first 200. Params that the spec leaves out keep the belief that the task has of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simops.core.belief import Belief
from simops.core.errors import Problem, nearest
from simops.core.params import Param
from simops.spec.believe import Normal, Varied, believe
from simops.spec.leaf import Wrong
from simops.spec.node import join
from simops.spec.ranges import Range
from simops.spec.units import UNITS, Quantity, same_unit, split_unit, suffix_of, suffixes_of

Spread = Range | Normal | int | float
"""How a number varies: `[low, high]` evenly, `{mean, std}` as a bell, or fixed."""

_VISUAL = {"texture", "light", "camera_pan", "camera_tilt", "camera_roll"}
_POOL = "_pool"


class Randomized(NamedTuple):
    """A belief, and what could not be worked into it."""

    belief: Belief
    problems: tuple[Problem, ...]


def randomize(belief: Belief, groups: Mapping[str, Mapping[str, Spread]]) -> Randomized:
    """Change `belief` as the groups of a spec say; the paths of problems are relative to the groups."""
    problems: list[Problem] = []
    chosen: dict[str, Varied] = {}
    set_by: dict[str, str] = {}
    for group, entries in groups.items():
        for key, spread in entries.items():
            path = join(group, key)
            found = vary(key, spread, belief.params, group=group)
            if isinstance(found, Wrong):
                problems.append(Problem(path, found.what, attempt=found.attempt, fault=found.fault))
                continue
            for varied in found:
                name = varied.param.name
                if name in chosen:
                    problems.append(Problem(path, f"{name} is already set by {set_by[name]}", fault="CFG-003"))
                chosen[name] = varied
                set_by[name] = path
    return Randomized(believe(belief, chosen), tuple(problems))


def vary(key: str, spread: Spread, params: Sequence[Param], *, group: str = "") -> list[Varied] | Wrong:
    """Say how the params that `key` names vary, in SI."""
    if key.endswith(_POOL):
        return _pool(key, spread, params)
    quantity = split_unit(key)
    named = _named(key, quantity, params)
    if not named:
        return Wrong(f"the task has no param {quantity.name!r}", "CFG-001", nearest(key, _keys(params)))
    unit = named[0].unit
    if not same_unit(quantity.si, unit):
        return _wrong_unit(key, quantity, named)
    fields = {change.field for param in named for change in param.changes}
    if fields and (group == "visual") != bool(fields & _VISUAL) and group:
        better = "visual" if fields & _VISUAL else "physics"
        return Wrong(f"{quantity.name} is no {group} param", "CFG-001", f"{better}.{key}")
    wrong = next((wrong for param in named if (wrong := _beyond(quantity, spread, param))), None)
    return wrong or [Varied(param, _in_si(spread, quantity.factor)) for param in named]


def _named(key: str, quantity: Quantity, params: Sequence[Param]) -> list[Param]:
    for name in (key, quantity.name):
        exact = [param for param in params if name in {param.name, split_unit(param.name).name}]
        if exact:
            return exact
    return _family(quantity.name, params)


def _family(name: str, params: Sequence[Param]) -> list[Param]:
    """The params that are `name` and one word more, if there are several and all of one unit."""
    family = [param for param in params if param.name.rpartition("_")[0] == name]
    return family if len(family) > 1 and len({param.unit for param in family}) == 1 else []


def _keys(params: Sequence[Param]) -> list[str]:
    """Every key that would have been right."""
    keys: list[str] = []
    for param in params:
        head, suffix = param.name.rpartition("_")[0], suffix_of(param.unit)
        names = [param.name, head] if _family(head, params) else [param.name]
        keys += [name if name.endswith(suffix) else name + suffix for name in names]
        keys += [param.name + _POOL] if param.integer else []
    return keys


def _wrong_unit(key: str, quantity: Quantity, named: Sequence[Param]) -> Wrong:
    unit = named[0].unit
    name = quantity.name if quantity.si else key
    attempt = " or ".join(repr(f"{name}_{suffix}") for suffix in suffixes_of(unit)[:3]) or repr(name)
    if not quantity.si:
        return Wrong(f"{name} is measured in {unit}, and the key names no unit", "CFG-006", attempt)
    written = key.removeprefix(f"{name}_")
    measured = f"is measured in {unit}" if unit else "has no unit"
    return Wrong(f"{name} {measured}, not in {written}", "CFG-006", attempt)


def _beyond(quantity: Quantity, spread: Spread, param: Param) -> Wrong | None:
    """Say what is impossible about `spread`, in the unit of the key."""
    if param.integer and not isinstance(spread, int | Range):
        return Wrong(f"{param.name} is a choice among whole numbers, want one or [low, high]")
    if _within(spread, param, quantity.factor):
        return None
    better = [unit for unit in suffixes_of(param.unit) if _within(spread, param, UNITS[unit].factor)]
    attempt = repr(f"{quantity.name}_{better[0]}") if better else ""
    low, high = param.low / quantity.factor, param.high / quantity.factor
    limits = [f"at least {low:.6g}"] if low > -math.inf else []
    limits += [f"at most {high:.6g}"] if high < math.inf else []
    return Wrong(f"{spread} is impossible for {param.name}, want {' and '.join(limits)}", "CFG-005", attempt)


def _within(spread: Spread, param: Param, factor: float) -> bool:
    match _in_si(spread, factor):
        case Range(low, high):
            ends = (low, high)
        case Normal(mean):
            ends = (mean,)
    return all(param.low <= end <= param.high for end in ends)


def _in_si(spread: Spread, factor: float) -> Range | Normal:
    match spread:
        case Range():
            return spread.scaled(factor)
        case Normal(mean, std):
            return Normal(mean * factor, std * factor)
        case number:
            return Range(number * factor, number * factor)


def _pool(key: str, spread: Spread, params: Sequence[Param]) -> list[Varied] | Wrong:
    name = key.removesuffix(_POOL)
    pools = {param.name: param for param in params if param.integer}
    if name not in pools:
        return Wrong(f"the task has no pool of {name!r}", "CFG-001", nearest(key, _keys(params)))
    param = pools[name]
    if not isinstance(spread, int) or isinstance(spread, bool):
        return Wrong(f"{spread} is no count, want how many to choose among")
    if not 1 <= spread <= param.high - param.low:
        return Wrong(f"{spread} is out of range, want 1 to {param.high - param.low:g}", "CFG-005")
    return [Varied(param, Range(param.low, param.low + spread))]
