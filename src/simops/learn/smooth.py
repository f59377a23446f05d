"""Slopes of what was recorded: low-pass filtered without delay, all orders by the same filter."""

from __future__ import annotations

import numpy as np

from simops.core.signal import Array

ORDER = 4
"""Of the Butterworth filter, which is run forwards and backwards."""


def smooth(values: Array, dt_s: float, cut_hz: float, *, slope: int = 0) -> Array:
    """Columns of evenly sampled `values`, low-pass filtered at `cut_hz`, or their derivative of order `slope`.

    The ends are continued by turning the signal about its last value, so its first derivative has no step there.
    """
    n = len(values)
    if n < 4:
        return np.zeros_like(values) if slope else values.astype(float)
    pad = min(n - 1, max(8, round(4.0 / cut_hz / dt_s)))
    wide = np.concatenate([2 * values[:1] - values[pad:0:-1], values, 2 * values[-1:] - values[-2 : -pad - 2 : -1]])
    line = np.linspace(0.0, 1.0, len(wide))[:, None]
    trend = wide[:1] + (wide[-1:] - wide[:1]) * line  # what is left is zero at both ends, so it may be repeated
    frequency = np.fft.rfftfreq(len(wide), dt_s)
    gain = (2j * np.pi * frequency) ** slope / (1.0 + (frequency / cut_hz) ** (2 * ORDER))
    found = np.fft.irfft(np.fft.rfft(wide - trend, axis=0) * gain[:, None], n=len(wide), axis=0)
    if slope == 0:
        found = found + trend
    if slope == 1:
        found = found + (wide[-1:] - wide[:1]) / ((len(wide) - 1) * dt_s)
    return found[pad : pad + n]
