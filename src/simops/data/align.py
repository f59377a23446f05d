"""Clocks and delays of recordings: which rows belong to one instant, however they were stamped.

Nothing is resampled in place: a delay or a clock is estimated, said with its spread, and undone by shifting times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simops.core.errors import DataError
from simops.core.recording import Recording, Series
from simops.core.signal import Array

PARTS = 4
"""Stretches that a delay is estimated in by itself, to see how far the estimates lie apart."""
FEWEST = 32
"""Rows below which nothing is said of time."""


class Delay(NamedTuple):
    """How far one signal is behind another."""

    seconds: float
    spread_s: float
    """Standard error, from stretches by themselves; infinite where there are too few."""
    likeness: float
    """Correlation of the two signals' changes once the delay is undone, -1 to 1."""


class Clock(NamedTuple):
    """How a log's own stamps go beside the time at which rows were written down."""

    offset_s: float
    """Least time between a stamp and its writing, at the start."""
    drift: float
    """Seconds that the stamps gain on the writer's clock in a second; 1e-6 is one part in a million."""
    late_s: float
    """95th percentile of what came on top: the way's own unrest."""


def delay(ahead: Series, behind: Series, *, most_s: float = 0.3) -> Delay:
    """How far `behind` follows `ahead`, element by element together; both may be uneven, and at different rates."""
    start, end = _common(ahead, behind)
    dt_s = _step(ahead, behind, end - start)
    times_s = np.arange(start, end, dt_s)
    one, other = changes(ahead, times_s), changes(behind, times_s)
    width = min(one.shape[1], other.shape[1])
    one, other = one[:, :width], other[:, :width]
    reach = min(int(np.ceil(most_s / dt_s)), len(times_s) // 4)
    whole, likeness = _peak(one, other, reach)
    parts = [
        _peak(one[part], other[part], reach)[0]
        for part in np.array_split(np.arange(len(one)), PARTS)
        if len(part) > 2 * reach + FEWEST and np.any(one[part]) and np.any(other[part])
    ]
    spread = float(np.std(parts, ddof=1) / np.sqrt(len(parts))) if len(parts) > 1 else np.inf
    return Delay(whole * dt_s, spread * dt_s, likeness)


def clock(measured_s: Array, received_s: Array) -> Clock:
    """The line under the time that rows took from stamp to writing: what is on it came without waiting."""
    sound = np.isfinite(measured_s) & np.isfinite(received_s)
    measured: Array = measured_s[sound]
    took: Array = received_s[sound] - measured
    if len(took) < FEWEST or np.ptp(measured) <= 0:
        raise DataError(f"{len(took)} rows tell nothing of a clock", attempt=f"{FEWEST} rows or more", fault="LRN-004")
    parts = min(32, len(took) // 8)
    edges = np.linspace(float(measured.min()), float(measured.max()), parts + 1)
    which = np.clip(np.searchsorted(edges, measured, side="right") - 1, 0, len(edges) - 2)
    best = [int(np.flatnonzero(which == i)[np.argmin(took[which == i])]) for i in np.unique(which)]
    at, least = measured[best], took[best]
    first, second = np.triu_indices(len(at), 1)
    slope = float(np.median((least[second] - least[first]) / (at[second] - at[first])))  # Theil and Sen
    offset = float(np.median(least - slope * (at - measured.min())))
    above = took - offset - slope * (measured - measured.min())
    return Clock(offset, -slope, float(np.percentile(above, 95)))


def shifted(recording: Recording, stream: str, by_s: float) -> Recording:
    """The recording with a stream's rows put earlier by `by_s`, as when that is its delay."""
    chosen = recording[stream]
    moved = replace(chosen, time_s=chosen.time_s - by_s)
    streams = tuple(moved if one.name == stream else one for one in recording.streams)
    note = f"{stream} was put {by_s * 1e3:.3g} ms earlier"
    return replace(recording, streams=streams, notes=(*recording.notes, note))


def changes(series: Series, times_s: Array) -> Array:
    """How a signal changes between the times, (times - 1, elements), each element to unit size; zeros beside gaps."""
    rows = np.diff(series.ordered().at(times_s), axis=0)
    rows = np.where(np.isfinite(rows), rows, 0.0)
    size = np.sqrt(np.mean(rows**2, axis=0))
    return rows / np.where(size > 0, size, np.inf)


def _peak(one: Array, other: Array, reach: int) -> tuple[float, float]:
    """Lag in steps, to a part of one, at which the changes are most alike, and how alike they are."""
    weights = np.sqrt(np.mean(one**2, axis=0) * np.mean(other**2, axis=0)).sum()
    lags = np.arange(-reach, reach + 1)
    found = np.array([_product(one, other, int(lag)) for lag in lags]) / max(weights, 1e-12)
    best = int(found.argmax())
    part = 0.0
    if 0 < best < len(lags) - 1:
        left, middle, right = found[best - 1 : best + 2]
        bend = left - 2 * middle + right
        part = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(lags[best] + part), float(min(1.0, found[best]))


def _product(one: Array, other: Array, lag: int) -> float:
    count = len(one) - abs(lag)
    ahead = one[:count] if lag >= 0 else one[-lag:]
    behind = other[lag:] if lag >= 0 else other[:count]
    return float((ahead * behind).sum() / len(one))


def _common(one: Series, other: Series) -> tuple[float, float]:
    if min(len(one), len(other)) < FEWEST:
        what = f"{one.signal.name} and {other.signal.name} have {min(len(one), len(other))} rows"
        raise DataError(what, attempt=f"{FEWEST} rows or more", fault="LRN-004")
    start = max(float(one.time_s.min()), float(other.time_s.min()))
    end = min(float(one.time_s.max()), float(other.time_s.max()))
    if end <= start:
        raise DataError(f"{one.signal.name} and {other.signal.name} were never logged at one time", fault="LRN-004")
    return start, end


def _step(one: Series, other: Series, long_s: float) -> float:
    """The finer of two rates, but no more than a hundred thousand steps."""
    steps = [float(np.median(np.diff(series.ordered().time_s))) for series in (one, other)]
    return max(min(steps), long_s / 1e5, 1e-4)
