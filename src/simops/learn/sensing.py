"""What a sensor gets wrong, from recordings of it: resolution, noise, lost readings, bias, and drift at rest.

Noise is told from motion by how fast it changes: third differences of a motion that a robot makes are small beside
those of noise. At rest the Allan deviation tells white noise, bias instability and random walk apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.allan import PLATEAU, allan
from simops.core.errors import DataError
from simops.core.recording import Series
from simops.core.signal import Array

FEWEST = 200
"""Readings below which nothing is said."""
THIRD = float(np.sqrt(20.0))
"""Spread of third differences of white noise, in its own spread."""
REST = 3.0
"""A stretch is at rest where it spreads by less than this many times its noise."""
LONG_S = 20.0
"""Rest that lasts less says nothing of drift."""


@final
@dataclass(frozen=True, kw_only=True)
class Sensing:
    """What one element of a signal gets wrong; each number is the middle over sessions."""

    signal: str
    element: str
    sessions: int
    step: float
    """Smallest difference it tells; 0 where no step shows."""
    noise: float
    """Spread of fresh noise, that of rounding taken off."""
    noise_spread: float
    """Standard error of the noise, from how sessions differ; NaN for a single one."""
    lost: float
    """Share of readings that repeat the one before while the sensor moves."""
    bias: float
    """Spread over sessions of what it shows at rest, for quantities that are 0 then; NaN where no session rests."""
    white: float
    """Density of white noise at rest [unit/√Hz]; NaN where rest was too short."""
    instability: float
    walk: float


def sensing(sessions: Sequence[Series], element: int, *, zero_at_rest: bool) -> Sensing:
    """What one element gets wrong, from recordings session by session; raises where they are too short."""
    long = [one.ordered() for one in sessions if len(one) >= FEWEST]
    long = [one for one in long if np.isfinite(one.values[:, element]).all()]
    if not long:
        what = f"{sessions[0].signal.name if sessions else 'nothing'} has no session of {FEWEST} readings in a row"
        raise DataError(what, attempt="a longer recording", fault="LRN-004")
    rows = [one.values[:, element] for one in long]
    step = resolution(np.concatenate(rows))
    noises = np.array([noise_of(each, step) for each in rows])
    rests = [rest for one in long for rest in at_rest(one, element, max(float(np.median(noises)), 0.5 * step))]
    means = np.array([values.mean() for _, values in rests])
    drift = [found for dt_s, values in rests if (found := _drift(dt_s, values)) is not None]
    white, instability, walk = np.median(np.array(drift), axis=0).tolist() if drift else (np.nan,) * 3
    return Sensing(
        signal=long[0].signal.name,
        element=long[0].labels[element],
        sessions=len(long),
        step=step,
        noise=float(np.median(noises)),
        noise_spread=float(noises.std(ddof=1) / np.sqrt(len(noises))) if len(noises) > 1 else float("nan"),
        lost=float(np.median([repeated(each, step, noise) for each, noise in zip(rows, noises, strict=True)])),
        bias=float(np.sqrt(np.mean(means**2))) if zero_at_rest and len(means) else float("nan"),
        white=white,
        instability=instability,
        walk=walk,
    )


def resolution(values: Array) -> float:
    """The step that all readings are whole numbers of; 0 where there is none."""
    found = np.unique(values)
    if len(found) < 3:
        return float(np.diff(found)[0]) if len(found) == 2 else 0.0
    gaps = np.diff(found)
    fine = gaps > 1e-6 * float(np.ptp(found))  # what is nearer is one reading, written twice
    if not fine.any():
        return 0.0
    guess = float(np.percentile(gaps[fine], 5))
    for _ in range(3):
        counts = np.rint(gaps[fine] / guess)
        whole = counts >= 1
        if not whole.any():
            return 0.0
        guess = float(np.sum(gaps[fine][whole]) / np.sum(counts[whole]))
    off = np.abs(gaps[fine] / guess - np.rint(gaps[fine] / guess))
    return guess if float(np.median(off)) < 0.05 and len(values) > 4 * len(found) ** 0.5 else 0.0


def noise_of(values: Array, step: float) -> float:
    """Spread of fresh noise, by third differences where the signal moves least, rounding taken off."""
    third = np.diff(values, n=3)
    parts = np.array_split(third, max(1, len(third) // 50))
    size = np.array([np.median(np.abs(part)) * 1.4826 / THIRD for part in parts])
    quiet = np.sort(size[size > 0])
    if not len(quiet):
        return 0.0
    spread = float(np.median(quiet[: max(1, len(quiet) // 2)]))
    return float(np.sqrt(max(spread**2 - step**2 / 12, 0.0)))


def repeated(values: Array, step: float, noise: float) -> float:
    """Share of readings that repeat the one before while their neighbours say that the sensor moves."""
    jumps = np.abs(np.diff(values))
    floor = max(2.0 * step, 4.0 * noise, 1e-12)
    moving = np.convolve(np.abs(values[4:] - values[:-4]) > 4 * floor, np.ones(1), "same").astype(bool)
    inner = jumps[2 : 2 + len(moving)]
    return float((inner[moving[: len(inner)]] == 0).mean()) if moving.any() else 0.0


def at_rest(series: Series, element: int, noise: float) -> list[tuple[float, Array]]:
    """Stretches in which nothing moves, each with the time between its readings."""
    values = series.values[:, element]
    size = max(FEWEST // 2, 20)
    found: list[tuple[float, Array]] = []
    start = 0
    while start + size <= len(values):
        end = start + size
        while end <= len(values) and np.std(values[start:end]) <= REST * max(noise, 1e-12):
            end += size // 2
        end = min(end - size // 2, len(values))
        if end - start >= size:
            dt_s = float(np.median(np.diff(series.time_s[start:end])))
            found.append((dt_s, values[start:end]))
            start = end
        else:
            start += size // 2
    return found


def _drift(dt_s: float, values: Array) -> tuple[float, float, float] | None:
    """White noise, bias instability and random walk that explain the Allan deviation of a rest, all at least 0."""
    if len(values) * dt_s < LONG_S or np.ptp(values) == 0:
        return None
    found = allan(values, dt_s)
    design = np.stack([1 / found.span_s, np.full(len(found.span_s), PLATEAU**2), found.span_s / 3], axis=1)
    variance: Array = found.deviation**2
    weights = np.sqrt(found.freedom) / variance
    squares = _not_negative(design * weights[:, None], variance * weights)
    white, instability, walk = np.sqrt(squares).tolist()
    return white, instability, walk


def _not_negative(design: Array, wanted: Array) -> Array:
    """Least squares with nothing below 0: the best of all choices of what is 0."""
    count = design.shape[1]
    best, least = np.zeros(count), float((wanted**2).sum())
    for mask in range(1, 2**count):
        chosen = [i for i in range(count) if mask >> i & 1]
        part, *_ = np.linalg.lstsq(design[:, chosen], wanted, rcond=None)
        off = float(((design[:, chosen] @ part - wanted) ** 2).sum())
        if (part >= 0).all() and off < least * (1 - 1e-9):
            best, least = np.zeros(count), off
            best[chosen] = part
    return best
