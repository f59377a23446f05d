# pyright: basic
# The only file that meets cma, which has no types.
"""CMA-ES, a whole generation asked at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simops.core.errors import ExtraError
from simops.core.signal import Array


def evolve(
    costs: Callable[[Array], Array], start: Array, low: Array, high: Array, *, generations: int, seed: int
) -> Array:
    """The best point found from `start` within the bounds, in units of a spread."""
    try:
        from cma import CMAEvolutionStrategy
    except ModuleNotFoundError as error:
        raise ExtraError("evolution needs cma", attempt="pip install 'simops[fit]'") from error

    options = {
        "bounds": [np.maximum(low, -1e6).tolist(), np.minimum(high, 1e6).tolist()],
        "seed": seed + 1,
        "maxiter": generations,
        "verbose": -9,
        "verb_log": 0,
    }
    inside = np.clip(start, low + 1e-9, high - 1e-9)
    strategy = CMAEvolutionStrategy(inside.tolist(), 0.5, options)
    best, least = start, float(costs(start[None])[0])
    while not strategy.stop():
        asked = strategy.ask()
        found = costs(np.array(asked))
        strategy.tell(asked, found.tolist())
        if found.min() < least:
            best, least = np.array(asked)[int(found.argmin())], float(found.min())
    return best
