"""Charts as SVG, drawn here: they need nothing, scale, and take their colours from the page they stand in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import final

import numpy as np

from simops.core.signal import Array
from simops.ops.axes import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Drawing,
    Span,
    frame,
    legend,
    legend_height,
    margin,
    numbers,
    path,
    short,
    span,
    svg,
    uprights,
    upwards,
    words,
)

__all__ = [
    "Axis",
    "Cloud",
    "Drawing",
    "Line",
    "Mark",
    "bars",
    "forest",
    "heat",
    "histogram",
    "lines",
    "scatter",
    "short",
]

ROW = 24.0


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A curve, with a band around it where its ends are known; what is not finite is a gap."""

    name: str = ""
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    low: Sequence[float] | Array | None = None
    high: Sequence[float] | Array | None = None
    dots: bool = False
    """Mark every point."""
    dashed: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Mark:
    """A value between the ends of its interval, and what it is to be compared with."""

    label: str
    value: float | None = None
    low: float
    high: float
    bound: float | None = None
    kind: str = ""
    """As `pass`, `fail`, `marginal`: gives the colour."""
    note: str = ""
    """Said at the right."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Cloud:
    """Points of one kind."""

    name: str = ""
    x: Sequence[float] | Array
    y: Sequence[float] | Array
    notes: Sequence[str] = ()
    """What each says when pointed at."""


def lines(curves: Sequence[Line], *, x: Axis | None = None, y: Axis | None = None, height: float = HEIGHT) -> Drawing:
    """Curves over one another, with bands."""
    x, y = x or Axis(), y or Axis()
    named = [curve.name for curve in curves]
    top = TOP + legend_height(named)
    across = span(x, [curve.x for curve in curves], LEFT, WIDTH - RIGHT)
    ends = [end for c in curves for end in (c.y, c.low, c.high) if end is not None]
    up = span(y, ends, height - BOTTOM, top, air=0.05)
    parts = [frame(across, up, x.label, y.label), legend(named)]
    for i, curve in enumerate(curves):
        xs, ys = numbers(curve.x), numbers(curve.y)
        colour = i % COLOURS
        if curve.low is not None and curve.high is not None:
            parts.append(_band(across, up, xs, numbers(curve.low), numbers(curve.high), colour))
        dash = ' stroke-dasharray="5 4"' if curve.dashed else ""
        parts.append(f'<path class="line c{colour}"{dash} d="{path(across, up, xs, ys)}"/>')
        if curve.dots:
            parts.append(_dots(across, up, Cloud(name=curve.name, x=xs, y=ys), colour))
    return svg(parts, height)


def scatter(
    clouds: Sequence[Cloud], *, x: Axis | None = None, y: Axis | None = None, height: float = HEIGHT
) -> Drawing:
    """Points of several kinds."""
    x, y = x or Axis(), y or Axis()
    named = [cloud.name for cloud in clouds]
    across = span(x, [cloud.x for cloud in clouds], LEFT, WIDTH - RIGHT, air=0.04)
    up = span(y, [cloud.y for cloud in clouds], height - BOTTOM, TOP + legend_height(named), air=0.06)
    drawn = [_dots(across, up, cloud, i % COLOURS) for i, cloud in enumerate(clouds)]
    return svg([frame(across, up, x.label, y.label), legend(named), *drawn], height)


def bars(labels: Sequence[str], series: Mapping[str, Sequence[float] | Array], *, x: Axis | None = None) -> Drawing:
    """Lying bars, one a label and a series; what is not finite is left out."""
    x = x or Axis(low=0.0)
    named = [name for name in series if name]
    left = margin(labels)
    thick = max(6.0, 18.0 / max(1, len(series)))
    row = thick * len(series) + 8.0
    top = 6.0 + legend_height(named)
    height = top + row * len(labels) + BOTTOM
    across = span(x, [*series.values(), [0.0]] if not x.log else list(series.values()), left, WIDTH - 56.0)
    parts = [uprights(across, top, height - BOTTOM, x.label, height), legend(named)]
    zero = across.at(0.0) if not x.log else across.start
    for r, label in enumerate(labels):
        y = top + row * r
        parts.append(words(left - 8, y + row / 2, label, anchor="end"))
        for s, values in enumerate(series.values()):
            value = float(values[r])
            if not math.isfinite(value) or (x.log and value <= 0):
                continue
            end = across.at(value)
            at = y + 4.0 + s * thick
            width = max(abs(end - zero), 0.5)
            parts.append(f'<rect class="fill c{s % COLOURS}" x="{min(zero, end):.1f}" y="{at:.1f}" '
                         f'width="{width:.1f}" height="{thick - 1:.1f}"/>')  # fmt: skip
            parts.append(words(max(end, zero) + 4, at + thick / 2, short(value), size=10))
    return svg(parts, height)


def histogram(edges: Sequence[float] | Array, counts: Sequence[float] | Array, *, x: Axis, y: Axis) -> Drawing:
    """Standing bars between edges, each as high as what was counted there."""
    ends, tall = numbers(edges), numbers(counts)
    across = span(x, [ends], LEFT, WIDTH - RIGHT)
    up = span(Axis(y.label, low=0.0 if y.low is None else y.low, high=y.high), [tall], HEIGHT - BOTTOM, TOP)
    parts = [frame(across, up, x.label, y.label)]
    for low, high, count in zip(ends[:-1].tolist(), ends[1:].tolist(), tall.tolist(), strict=True):
        left, right, top = across.at(low), across.at(high), up.at(count)
        said = escape(f"{short(low)} to {short(high)}: {short(count)}")
        parts.append(
            f'<rect class="fill c0" x="{left + 0.5:.1f}" y="{top:.1f}" width="{max(0.5, right - left - 1):.1f}" '
            f'height="{max(0.0, up.start - top):.1f}"><title>{said}</title></rect>'
        )
    return svg(parts, HEIGHT)


def forest(marks: Sequence[Mark], *, x: Axis | None = None) -> Drawing:
    """Intervals above one another, each with its value and what it has to reach."""
    x = x or Axis()
    left, right = margin([mark.label for mark in marks]), margin([mark.note for mark in marks], least=16.0)
    height = 8.0 + ROW * len(marks) + BOTTOM
    numbers = [n for m in marks for n in (m.value, m.low, m.high, m.bound) if n is not None]
    across = span(x, [numbers], left, WIDTH - right, air=0.03)
    parts = [uprights(across, 8.0, height - BOTTOM, x.label, height)]
    for r, mark in enumerate(marks):
        y = 8.0 + ROW * (r + 0.5)
        kind = f"k-{escape(mark.kind.replace(' ', '-'), quote=True)}" if mark.kind else "c0"
        low, high = (min(max(across.at(end), across.start), across.end) for end in _ends(mark, x, across))
        title = f"<title>{escape(mark.label)}: {_said(mark.value)} [{short(mark.low)}, {short(mark.high)}]</title>"
        parts += [
            words(left - 8, y, mark.label, anchor="end"),
            f'<g>{title}<path class="line {kind}" stroke-width="2.5" d="M{low:.1f} {y:.1f}H{high:.1f}'
            f'M{low:.1f} {y - 4:.1f}v8M{high:.1f} {y - 4:.1f}v8"/></g>',
            words(WIDTH - right + 8, y, mark.note, size=11),
        ]
        if mark.value is not None and math.isfinite(mark.value):
            parts.append(f'<circle class="fill {kind}" cx="{across.at(mark.value):.1f}" cy="{y:.1f}" r="4.5"/>')
        if mark.bound is not None:
            at = across.at(mark.bound)
            parts.append(f'<path class="bound" d="M{at:.1f} {y - ROW / 2:.1f}v{ROW:.1f}"/>')
    return svg(parts, height)


def heat(
    values: Sequence[Sequence[float]] | Array,
    *,
    across: Sequence[str],
    down: Sequence[str],
    x: str = "",
    y: str = "",
    low: float | None = None,
    high: float | None = None,
    split: bool = False,
) -> Drawing:
    """A field of squares, darker for more; a square of NaN is one that nothing is known of, and stays open.

    With `split`, what is above 0 is bad and what is below is good, each darker the farther from 0.
    """
    field = np.asarray(values, float)
    known = field[np.isfinite(field)]
    least = float(known.min()) if low is None and known.size else low or 0.0
    most = float(known.max()) if high is None and known.size else 1.0 if high is None else high
    reach = most - least or 1.0
    left = margin(down) + (16.0 if y else 0.0)
    wide = (WIDTH - left - 90.0) / max(1, len(across))
    tall = min(34.0, max(14.0, wide))
    height = 8.0 + tall * len(down) + BOTTOM + 6.0
    parts: list[str] = []
    for r, label in enumerate(down):
        parts.append(words(left - 6, 8.0 + tall * (r + 0.5), label, anchor="end", size=11))
        for c, column in enumerate(across):
            value = float(field[r, c])
            place = f'x="{left + wide * c:.1f}" y="{8.0 + tall * r:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            deep = abs(value) / max(abs(least), abs(most), 1e-12) if split else (value - least) / reach
            shade = f'fill-opacity="{0.06 + 0.94 * min(1.0, max(0.0, deep)):.3f}"'
            said = escape(f"{label}, {column}: {short(value) if math.isfinite(value) else 'nothing tried'}")
            side = (" bad" if value > 0 else " good") if split else ""
            kind = f'class="heat{side}" {shade}' if math.isfinite(value) else 'class="open"'
            parts.append(f"<rect {kind} {place}><title>{said}</title></rect>")
    every = max(1, math.ceil(len(across) * 6 * LETTER / (WIDTH - left - 90.0)))
    below = 8.0 + tall * len(down)
    parts += [
        words(left + wide * (c + 0.5), below + 12, across[c], anchor="middle", size=11)
        for c in range(0, len(across), every)
    ]
    parts.append(words(left + wide * len(across) / 2, height - 8, x, anchor="middle"))
    parts.append(upwards(12.0, 8.0 + tall * len(down) / 2, y))
    scale = _scale(least, most, max(tall * len(down), 60.0), split=split)
    return svg([*parts, scale], max(height, 110.0))


def _said(value: float | None) -> str:
    return "nothing measured" if value is None else short(value)


def _ends(mark: Mark, axis: Axis, across: Span) -> tuple[float, float]:
    """The ends of an interval as far as they can be drawn."""
    open_low, open_high = (axis.low, axis.high)
    edge_low = open_low if open_low is not None else 10**across.low if across.log else across.low
    edge_high = open_high if open_high is not None else 10**across.high if across.log else across.high
    return (mark.low if math.isfinite(mark.low) else edge_low, mark.high if math.isfinite(mark.high) else edge_high)


def _band(across: Span, up: Span, xs: Array, low: Array, high: Array, colour: int) -> str:
    known = np.isfinite(xs) & np.isfinite(low) & np.isfinite(high) & ((low > 0) | (not up.log))
    there = [(across.at(x), up.at(v)) for x, v in zip(xs[known].tolist(), high[known].tolist(), strict=True)]
    back = [(across.at(x), up.at(v)) for x, v in zip(xs[known].tolist(), low[known].tolist(), strict=True)]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*there, *reversed(back)))
    return f'<polygon class="band c{colour}" points="{corners}"/>' if corners else ""


def _dots(across: Span, up: Span, cloud: Cloud, colour: int) -> str:
    parts: list[str] = []
    for i, (x, y) in enumerate(zip(numbers(cloud.x).tolist(), numbers(cloud.y).tolist(), strict=True)):
        if not (math.isfinite(x) and math.isfinite(y)) or (up.log and y <= 0) or (across.log and x <= 0):
            continue
        note = cloud.notes[i] if i < len(cloud.notes) else f"{short(x)}, {short(y)}"
        parts.append(f'<circle class="fill c{colour}" cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="3">'
                     f"<title>{escape(note)}</title></circle>")  # fmt: skip
    return "".join(parts)


def _scale(least: float, most: float, tall: float, *, split: bool = False) -> str:
    """What light and dark mean."""
    x, steps = WIDTH - 70.0, list[str]()
    for i in range(10):
        value = most - (most - least) * i / 9
        side = (" bad" if value > 0 else " good") if split else ""
        deep = abs(value) / max(abs(least), abs(most), 1e-12) if split else 1 - i / 9
        steps.append(
            f'<rect class="heat{side}" fill-opacity="{deep:.2f}" x="{x:.1f}" y="{8 + i * tall / 10:.1f}" '
            f'width="14" height="{tall / 10 + 0.4:.1f}"/>'
        )
    ends = words(x + 20, 14, short(most), size=11) + words(x + 20, tall + 2, short(least), size=11)
    return "".join(steps) + ends
