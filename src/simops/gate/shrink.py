"""Makes failing scenarios small: what can be left out is left out, what can go back to the middle goes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from simops.core.scenario import Scenario

Fails: TypeAlias = Callable[[Sequence[Scenario]], Sequence[bool]]
"""Which of these scenarios fail; asked with many at once."""
HALVINGS = 3


def shrink(fails: Fails, scenarios: Sequence[Scenario], centre: Mapping[str, float]) -> list[Scenario]:
    """The smallest scenario that still fails, for each of these, which fail as they are.

    All go in step, so that each question is asked of all of them at once. A disturbance is left out where it still
    fails without, a param goes to its `centre`; what has to stay away from there comes as near as it still fails.
    """
    small = [replace(one, params={**centre, **one.params}) for one in scenarios]
    small = _tried(fails, small, [replace(one, disturbances=(), params={**centre}) for one in small])
    for at in range(max((len(one.disturbances) for one in small), default=0) - 1, -1, -1):
        small = _tried(fails, small, [_without(one, at) for one in small])
    names = [name for name in centre if any(one.params[name] != centre[name] for one in small)]
    for name in names:
        small = _tried(fails, small, [_moved(one, name, centre[name]) for one in small])
    for name in names:
        for _ in range(HALVINGS):
            nearer = [_moved(one, name, (one.params[name] + centre[name]) / 2) for one in small]
            small = _tried(fails, small, nearer)
    return small


def _tried(fails: Fails, small: list[Scenario], smaller: list[Scenario]) -> list[Scenario]:
    """The smaller ones, where they are others and still fail."""
    asked = [i for i, (one, other) in enumerate(zip(small, smaller, strict=True)) if one.hash != other.hash]
    if not asked:
        return small
    still = dict(zip(asked, fails([smaller[i] for i in asked]), strict=True))
    return [smaller[i] if still.get(i) else one for i, one in enumerate(small)]


def _without(one: Scenario, at: int) -> Scenario:
    if at >= len(one.disturbances):
        return one
    return replace(one, disturbances=(*one.disturbances[:at], *one.disturbances[at + 1 :]))


def _moved(one: Scenario, name: str, value: float) -> Scenario:
    return replace(one, params={**one.params, name: value})
