"""Errors that an inertial or force sensor has over time, by the coefficients that an Allan deviation shows."""

from __future__ import annotations

from functools import cache

import numpy as np

from simops.core.allan import PLATEAU
from simops.core.chance import normal
from simops.core.signal import Array

POLES = 6
"""First-order processes that make up the plateau of a bias instability."""
_SPREAD = 4.0
_FASTEST_S = 0.5
"""Correlation times are 0.5 s, 2 s, ... 512 s: the plateau is flat from one second to some minutes."""


def correlations_s() -> Array:
    """Correlation time of each process."""
    return _FASTEST_S * _SPREAD ** np.arange(POLES)


@cache
def share() -> float:
    """Standard deviation of each process, for an instability of 1."""
    times, middle = correlations_s(), _FASTEST_S * _SPREAD ** (0.5 * (POLES - 1)) * 1.9
    spans = middle * np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    level = np.sqrt(_markov(spans[:, None], times[None]).sum(axis=1)).mean()
    return float(PLATEAU / level)


def begun(seeds: Array, name: str, size: int) -> Array:
    """The processes at the start of an episode, as if they had always run: (n, size, POLES), for a spread of 1."""
    return normal(seeds, f"{name}/flicker0", (size, POLES))


def wandered(before: Array, seeds: Array, name: str, *, step: Array, dt_s: float) -> Array:
    """The processes one step later."""
    keep = np.exp(-dt_s / correlations_s())
    fresh = normal(seeds, f"{name}/flicker", before.shape[1:], step=step)
    return before * keep + fresh * np.sqrt(1 - keep**2)


def _markov(span_s: Array, time_s: Array) -> Array:
    """Allan variance of a first-order process of variance 1."""
    x = span_s / time_s
    return 2 / x * (1 - (3 - 4 * np.exp(-x) + np.exp(-2 * x)) / (2 * x))
