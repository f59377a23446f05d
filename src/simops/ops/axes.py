"""The parts of a chart in SVG: axes with round ticks, curves with gaps, legends, words; colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple, final

import numpy as np

from simops.core.signal import Array

COLOURS = 8
"""Series take the page's colours in turn."""
WIDTH, HEIGHT = 720.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 14.0, 40.0
LETTER = 6.6
"""Width of a letter, more or less."""


@final
@dataclass(frozen=True)
class Drawing:
    """Markup that is safe to put into a page as it stands."""

    markup: str


@final
@dataclass(frozen=True)
class Axis:
    """What an axis says, and how far it reaches."""

    label: str = ""
    low: float | None = None
    """From the data when left out, as the other end."""
    high: float | None = None
    log: bool = False


class Span(NamedTuple):
    """From numbers to places."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        """Place of a number."""
        share = (scaled(value, log=self.log) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers between the ends."""
        if self.log:
            return [10.0**k for k in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]
        return _ticks(self.low, self.high)


def short(value: float) -> str:
    """A number for people: four digits that matter."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e7 else f"{value:.4g}"


def numbers(values: Sequence[float] | Array) -> Array:
    """One row of floats."""
    return np.asarray(values, float).ravel()


def scaled(value: float, *, log: bool) -> float:
    """The number, or the tenfolds in it."""
    return math.log10(max(value, 1e-300)) if log else value


def span(axis: Axis, data: Sequence[Sequence[float] | Array], start: float, end: float, *, air: float = 0.0) -> Span:
    """Reach over the data, or as far as the axis says."""
    every = np.concatenate([numbers(each) for each in data]) if data else np.zeros(0)
    every = every[np.isfinite(every) & ((every > 0) | (not axis.log))]
    found = np.array([scaled(float(v), log=axis.log) for v in (every.min(), every.max())] if every.size else [0.0, 1.0])
    room = air * float(found[1] - found[0])
    low = float(found[0]) - room if axis.low is None else scaled(axis.low, log=axis.log)
    high = float(found[1]) + room if axis.high is None else scaled(axis.high, log=axis.log)
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
        wide = 0.5 * abs(low) or 0.5
        low, high = low - wide, high + wide
    return Span(low, high, start, end, axis.log)


def _ticks(low: float, high: float, *, about: int = 6) -> list[float]:
    """Round numbers between the ends."""
    raw = (high - low) / about
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * size >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def frame(across: Span, up: Span, x: str, y: str) -> str:
    """Both axes with their ticks."""
    parts = [uprights(across, up.end, up.start, x, up.start + BOTTOM)]
    for tick in up.ticks():
        at = up.at(tick)
        parts.append(f'<path class="grid" d="M{across.start:.1f} {at:.1f}H{across.end:.1f}"/>')
        parts.append(words(across.start - 6, at, short(tick), anchor="end", size=11))
    parts.append(upwards(12.0, (up.start + up.end) / 2, y))
    return "".join(parts)


def uprights(across: Span, top: float, bottom: float, label: str, height: float) -> str:
    """Grid lines from top to bottom, and what stands below them."""
    parts = [
        f'<path class="grid" d="M{across.at(tick):.1f} {top:.1f}V{bottom:.1f}"/>'
        + words(across.at(tick), bottom + 12, short(tick), anchor="middle", size=11)
        for tick in across.ticks()
    ]
    parts.append(f'<path class="axis" d="M{across.start:.1f} {bottom:.1f}H{across.end:.1f}"/>')
    parts.append(words((across.start + across.end) / 2, height - 8, label, anchor="middle"))
    return "".join(parts)


def path(across: Span, up: Span, xs: Array, ys: Array) -> str:
    """A curve, broken where a number is missing."""
    known = np.isfinite(xs) & np.isfinite(ys) & ((ys > 0) | (not up.log)) & ((xs > 0) | (not across.log))
    steps: list[str] = []
    down = False
    for x, y, is_known in zip(xs.tolist(), ys.tolist(), known.tolist(), strict=True):
        if is_known:
            steps.append(f"{'L' if down else 'M'}{across.at(x):.1f} {up.at(y):.1f}")
        down = is_known
    return "".join(steps)


def legend(names: Sequence[str]) -> str:
    """Which colour is which name; names that are empty take a colour and no room."""
    parts: list[str] = []
    x, y = LEFT, 12.0
    for i, name in enumerate(names):
        width = 26.0 + LETTER * len(name)
        if x + width > WIDTH and x > LEFT:
            x, y = LEFT, y + 18.0
        if name:
            parts.append(f'<rect class="fill c{i % COLOURS}" x="{x:.1f}" y="{y - 5:.1f}" width="12" height="10"/>')
            parts.append(words(x + 17, y, name, size=12))
            x += width
    return "".join(parts)


def legend_height(names: Sequence[str]) -> float:
    """Room that `legend` takes."""
    rows, x = 1, LEFT
    for name in names:
        width = 26.0 + LETTER * len(name)
        if x + width > WIDTH and x > LEFT:
            rows, x = rows + 1, LEFT
        x += width
    return 18.0 * rows if any(names) else 0.0


def margin(labels: Sequence[str], *, least: float = 60.0) -> float:
    """Room for the longest label, within reason."""
    longest = max((len(label) for label in labels), default=0)
    return min(max(least, longest * LETTER + 18.0), 260.0)


def words(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    """Text with its middle at this height."""
    if not text:
        return ""
    return (
        f'<text x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def upwards(x: float, y: float, text: str) -> str:
    """Text from below to above."""
    turned = f'transform="rotate(-90 {x:.1f} {y:.1f})"'
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" text-anchor="middle" {turned}>{escape(text)}</text>'


def svg(parts: Sequence[str], height: float) -> Drawing:
    """A drawing of these parts."""
    body = "".join(parts)
    return Drawing(f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">{body}</svg>')
