"""Allan deviation: how far averages over neighbouring spans of a still signal differ, by length of the span.

White noise of density N shows as N / sqrt(T), a random walk of density K as K sqrt(T / 3), a bias that wanders as a
plateau, and quantisation as a slope of -1. Sensors are made to it, and recordings are read with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array

PLATEAU = float(np.sqrt(2 * np.log(2) / np.pi))
"""Height of the plateau that flicker noise makes, as a share of its bias instability; 0.664."""


class Allan(NamedTuple):
    """Allan deviation of a signal, and how sure it is."""

    span_s: Array
    """(m,) lengths of the spans that were averaged."""
    deviation: Array
    """(m, ...) in the signal's unit."""
    freedom: Array
    """(m,) degrees of freedom that each rests on, as for white noise; its relative error is 1 / sqrt(2 freedom)."""


def allan(signal: Array, dt_s: float, *, per_octave: int = 4, fewest: int = 8) -> Allan:
    """Overlapping Allan deviation of evenly sampled readings, (samples, ...), spans on a logarithmic grid.

    Spans go up to where `fewest` of them, side by side, still fit.
    """
    rows = np.asarray(signal, np.float64)
    longest = len(rows) // fewest
    if longest < 1 or dt_s <= 0:
        what = f"{len(rows)} readings {dt_s} s apart have no Allan deviation"
        raise DataError(what, attempt=f"at least {fewest} readings")
    if not np.all(np.isfinite(rows)):
        raise DataError("an Allan deviation of what is not a number", attempt="readings without gaps")
    octaves = np.arange(0.0, np.log2(longest) + 1e-9, 1.0 / per_octave)
    lengths = np.unique(np.round(2.0**octaves).astype(int))
    angle = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows - rows.mean(axis=0), axis=0)]) * dt_s
    deviations: list[Array] = []
    for m in lengths.tolist():
        second = angle[2 * m :] - 2 * angle[m:-m] + angle[: -2 * m]
        deviations.append(np.sqrt(0.5 * np.mean(second**2, axis=0)) / (m * dt_s))
    return Allan(lengths * dt_s, np.stack(deviations), _freedom(len(rows), lengths))


def expected(
    span_s: Array,
    *,
    white: Array | float = 0.0,
    instability: Array | float = 0.0,
    walk: Array | float = 0.0,
    quantisation: Array | float = 0.0,
) -> Array:
    """Allan deviation that these coefficients make: densities per root hertz, instability and step in the unit.

    `quantisation` is that of a rate whose integral is rounded to multiples of it.
    """
    variance = np.asarray(white) ** 2 / span_s + np.asarray(walk) ** 2 * span_s / 3
    variance = variance + (PLATEAU * np.asarray(instability)) ** 2
    return np.sqrt(variance + 3 * np.asarray(quantisation) ** 2 / 12 / span_s**2)


def _freedom(samples: int, lengths: Array) -> Array:
    """Degrees of freedom of the overlapping estimate for white noise."""
    n, m = float(samples + 1), lengths.astype(float)
    first = 3 * (n - 1) / (2 * m) - 2 * (n - 2) / n
    return np.maximum(first * 4 * m**2 / (4 * m**2 + 5), 1.0)
