"""What kind a failure is of, and which failures are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from simops.core.failure import Class, Failure
from simops.core.params import Change, Param
from simops.core.scenario import Dropout, Scenario
from simops.core.task import Joint, Task
from simops.core.trajectory import Trajectory

CONTACT = frozenset({"friction", "contact_stiffness", "contact_damping"})
VISUAL = frozenset({"texture", "light", "camera_pan", "camera_tilt", "camera_roll"})
NEAR = 0.01
"""Of the width of its limits: as near as this, a joint is at one."""


def left(scenario: Scenario, centre: Mapping[str, float]) -> dict[str, float]:
    """The params that could not go back to the middle, and how far off they are."""
    off = {name: scenario.params.get(name, value) - value for name, value in centre.items()}
    return {name: value for name, value in off.items() if abs(value) > 1e-9 * (1.0 + abs(centre[name]))}


def kind(
    scenario: Scenario, off: Mapping[str, float], task: Task, *, outside: bool, sensed: bool, ended: Trajectory | None
) -> Class:
    """What kind a small failure is of, by what it takes.

    Args:
        scenario: Made small.
        off: What could not go back to the middle.
        task: With every param.
        outside: Whether it lies where the training never was.
        sensed: Whether it succeeds once every sensor tells the truth.
        ended: How it went, where somebody looked.
    """
    params = {param.name: param for param in task.belief.params}
    fields = {change.field for name in off for change in _param(params, name)}
    if sensed or fields & VISUAL or any(isinstance(one, Dropout) for one in scenario.disturbances):
        return "perception"
    if outside:
        return "generalization"
    if fields & CONTACT:
        return "contact"
    if fields or scenario.disturbances:
        return "dynamic"
    if ended is not None and cornered(ended, task):
        return "kinematic"
    return "planning"


def cornered(one: Trajectory, task: Task) -> bool:
    """Whether a joint ends at one of its limits."""
    for reading in task.state:
        signal, source = reading.signal, reading.source
        if not isinstance(source, Joint) or source.what != "position" or not signal.low or not signal.high:
            continue
        last = one.columns[signal.name][-1].reshape(-1)
        for value, low, high in zip(last.tolist(), signal.low, signal.high, strict=True):
            if min(value - low, high - value) < NEAR * (high - low):
                return True
    return False


def clusters(found: Sequence[Failure]) -> list[Failure]:
    """One failure for all that are alike: of one kind, off in the same params to the same side, equally disturbed."""
    groups: dict[tuple[object, ...], list[Failure]] = {}
    for one in found:
        signs = tuple(sorted((name, value > 0) for name, value in one.left.items()))
        shaken = tuple(sorted(type(each).__name__ for each in one.scenario.disturbances))
        groups.setdefault((one.source, one.kind, signs, shaken), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: -sum(len(one.alike) for one in group))
    return [_one(group) for group in ordered]


def _one(group: Sequence[Failure]) -> Failure:
    """The plainest of them, for all."""
    first = min(group, key=lambda one: (len(one.left), sum(abs(v) for v in one.left.values())))
    return replace(first, alike=tuple(name for one in group for name in one.alike))


def _param(params: Mapping[str, Param], name: str) -> tuple[Change, ...]:
    return params[name].changes if name in params else ()
