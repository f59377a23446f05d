"""Parts of a belief: what it says of some params, whatever the others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simops.core import chance
from simops.core.belief import Belief, Box, Gaussian, Joint, Particles
from simops.core.errors import SignalError
from simops.core.params import Param
from simops.core.signal import Array

_DRAWS = 4096


class Moments(NamedTuple):
    """Centre and width of a belief, one number a param."""

    mean: Array
    spread: Array


def moments(belief: Belief) -> Moments:
    """Mean and standard deviation of every param, from draws."""
    points = belief.sample(chance.seeds(0, np.arange(_DRAWS), realm="moments")).values
    return Moments(points.mean(axis=0), points.std(axis=0))


def keep(belief: Belief, names: Sequence[str]) -> Belief | None:
    """What `belief` says of the params `names` alone, in its own order; `None` where it says nothing of them."""
    index = [i for i, param in enumerate(belief.params) if param.name in names]
    if not index:
        return None
    params = tuple(belief.params[i] for i in index)
    if isinstance(belief, Box):
        return Box(params, tuple(belief.low[i] for i in index), tuple(belief.high[i] for i in index))
    if isinstance(belief, Gaussian):
        rows = tuple(tuple(belief.covariance[i][j] for j in index) for i in index)
        return Gaussian(params, tuple(belief.mean[i] for i in index), rows, belief.within)
    if isinstance(belief, Particles):
        points = tuple(tuple(point[i] for i in index) for point in belief.points)
        spread = tuple(belief.spread[i] for i in index) if belief.spread else ()
        return Particles(params, points, belief.weights, spread, belief.within)
    if isinstance(belief, Joint):
        parts = [kept for part in belief.parts if (kept := keep(part, names)) is not None]
        return parts[0] if len(parts) == 1 else Joint(tuple(parts))
    raise SignalError(f"a {type(belief).__name__} cannot be taken apart", attempt="Box, Gaussian, Particles or Joint")


def beside(belief: Belief, learned: Belief) -> Belief:
    """`belief`, with what `learned` says in place of what it said of the same params."""
    mine = {param.name for param in learned.params}
    rest = keep(belief, [param.name for param in belief.params if param.name not in mine])
    return learned if rest is None else Joint((learned, rest))


def widths(belief: Belief, params: Sequence[Param]) -> Moments:
    """Centre and width to begin learning `params` from; one that was thought constant gets its physical width."""
    found = moments(belief)
    at = {param.name: i for i, param in enumerate(belief.params)}
    mean = np.array([found.mean[at[param.name]] for param in params])
    spread = np.array([found.spread[at[param.name]] for param in params])
    for i, param in enumerate(params):
        if spread[i] <= 0.0:
            physical = (param.high - param.low) / 4
            spread[i] = physical if np.isfinite(physical) else max(abs(mean[i]) / 2, 1e-3)
    return Moments(mean, spread)
