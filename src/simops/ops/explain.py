"""Rows as they should be beside rows as they are: which element is where, how it was bent, and what that is called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simops.core.signal import Array, Schema
from simops.ops.mismatch import Kind, Level, Mismatch

DEGREES = 180 / math.pi
SAME = 1e-3
"""How far from 1 a gain, and from 0 an offset in spreads, still is one."""
_WXYZ = ["w", "x", "y", "z"]


class Link(NamedTuple):
    """Where an element comes from: `gain` times element `source` of what should be, plus `offset`."""

    place: int
    source: int
    """-1 where no single element explains it."""
    gain: float = 1.0
    offset: float = 0.0

    @property
    def straight(self) -> bool:
        """Whether nothing is wrong."""
        return self.place == self.source and self.gain == 1.0 and self.offset == 0.0


def links(want: Array, got: Array, *, tolerance: float = SAME) -> list[Link]:
    """Explain each column of `got` by one of `want`, the simplest way first; NaN marks what cannot be told."""
    return [
        _link(want.astype(np.float64), got[:, place].astype(np.float64), place, tolerance)
        for place in range(got.shape[1])
    ]


def _link(want: Array, column: Array, place: int, tolerance: float) -> Link:
    found: list[tuple[tuple[bool, ...], float, Link]] = []
    for source in range(want.shape[1]):
        fit = _fit(want[:, source], column, tolerance)
        if fit is None:
            continue
        link = Link(place, source, *fit)
        simple = (abs(link.gain) != 1.0 or link.offset != 0.0, link.source != place, link.gain < 0)
        rank = (not link.straight, source != place and simple[0], *simple)
        found.append((rank, abs(source - place), link))
    return min(found, key=lambda each: each[:2])[2] if found else Link(place, -1, 0.0, 0.0)


def _fit(want: Array, got: Array, tolerance: float) -> tuple[float, float] | None:
    """Gain and offset that make `want` into `got`, rounded where they mean to be 1 and 0; None where none do."""
    known = np.isfinite(want) & np.isfinite(got)
    if known.sum() < 3:
        return (1.0, 0.0) if not known.any() else None
    a, b = want[known], got[known]
    spread_a, spread_b = float(a.std()), float(b.std())
    slack = tolerance * max(spread_a, 1e-6 * (1.0 + float(np.abs(a).max())))
    if float(np.abs(a - b).max()) <= slack:
        return 1.0, 0.0
    if spread_a <= 1e-9 * (1.0 + float(np.abs(a).max())):
        return (1.0, float(b.mean() - a.mean())) if spread_b <= 1e-9 * (1.0 + float(np.abs(b).max())) else None
    gain = float(((a - a.mean()) * (b - b.mean())).mean()) / spread_a**2
    offset = float(b.mean()) - gain * float(a.mean())
    if abs(gain) < 1e-9 or float(np.abs(gain * a + offset - b).max()) > 5 * tolerance * spread_b:
        return None
    gain = math.copysign(1.0, gain) if abs(abs(gain) - 1.0) <= 2 * tolerance else gain
    offset = float((b - gain * a).mean())
    return gain, 0.0 if abs(offset) <= 4 * tolerance * spread_b else offset


def name(found: Sequence[Link], schema: Schema, level: Level, *, want: Array, got: Array) -> list[Mismatch]:
    """Say in words what is wrong with elements laid out as `schema` says."""
    if _normalised(found):
        bent = sum(not link.straight for link in found)
        what = f"{bent} of {len(found)} observations are shifted and scaled, each its own way: normalised twice"
        return [Mismatch("normaliser_doubled", level, schema.names, what)]
    said: list[Mismatch] = []
    for signal in schema.signals:
        where = schema.slices[signal.name]
        mine = [link for link in found[where] if not link.straight]
        if mine:
            said += _signal(mine, schema, signal.name, level, want[:, where], got[:, where])
    return said


def _normalised(found: Sequence[Link]) -> bool:
    bent = [link.gain for link in found if link.source == link.place and not link.straight and link.gain > 0]
    gains = {round(gain, 3) for gain in bent}
    return len(found) > 3 and len(bent) >= len(found) / 2 and len(gains) > 2


def _signal(mine: list[Link], schema: Schema, signal: str, level: Level, want: Array, got: Array) -> list[Mismatch]:
    here, columns = schema.slices[signal], schema.scalars
    labels: tuple[str, ...] = schema[signal].labels
    turned = sorted(labels) == _WXYZ
    foreign = [link for link in mine if link.source >= 0 and not here.start <= link.source < here.stop]
    if foreign:
        pairs = [f"{columns[link.place]} shows {columns[link.source]}" for link in foreign]
        return [Mismatch("signals", level, tuple(columns[link.place] for link in foreign), "; ".join(pairs))]
    if turned:
        hold = list(labels)
        for link in mine:
            tag = "?" if link.source < 0 else labels[int(link.source - here.start)]
            hold[link.place - here.start] = ("-" if link.gain < 0 else "") + tag
        order = ", ".join(hold)
        what = f"{signal} should hold {', '.join(labels)}, and holds {order}"
        return [Mismatch("quaternion", level, (signal,), what)]
    if len(mine) > 1 and want.shape[1] == 3 and (turn := _rotation(want, got)):
        return [Mismatch("frame", level, (signal,), f"{signal} is in another frame: turned by {turn:.0f} degrees")]
    said: list[Mismatch] = []
    moved = [link for link in mine if link.source not in {link.place, -1}]
    if moved:
        said.append(_moved(moved, schema, signal, level))
    for kind, group in _kinds(mine).items():
        names = tuple(columns[link.place] for link in group)
        said.append(Mismatch(kind, level, names, f"{_BENT[kind]}: {', '.join(_bend(link, columns) for link in group)}"))
    return said


_BENT: dict[Kind, str] = {
    "sign": "with the wrong sign",
    "units": "in degrees where radians are meant, or the other way round",
    "scale": "scaled",
    "offset": "off by a constant",
    "dead": "always the same",
    "answers": "explained by no single element",
}


def _kinds(mine: list[Link]) -> dict[Kind, list[Link]]:
    groups: dict[Kind, list[Link]] = {}
    for link in mine:
        kinds: list[Kind] = []
        if link.source < 0:
            kinds.append("answers")
        elif link.gain == 0.0:
            kinds.append("dead")
        else:
            size = abs(link.gain)
            if link.gain < 0:
                kinds.append("sign")
            if size != 1.0:
                degrees = min(abs(size / DEGREES - 1), abs(size * DEGREES - 1)) < 0.2
                kinds.extend(_factor(degrees=degrees))
            elif link.offset != 0.0:
                kinds.append("offset")
        for kind in kinds:
            groups.setdefault(kind, []).append(link)
    return groups


def _factor(*, degrees: bool) -> tuple[Kind]:
    return ("units",) if degrees else ("scale",)


def _bend(link: Link, columns: Sequence[str]) -> str:
    if link.source < 0:
        return columns[link.place]
    gain = "" if link.gain == 1.0 else f" x {link.gain:.4g}"
    return f"{columns[link.place]}{gain}{f' {link.offset:+.4g}' if link.offset else ''}"


def _moved(moved: list[Link], schema: Schema, signal: str, level: Level) -> Mismatch:
    here, columns, shape = schema.slices[signal], schema.scalars, schema[signal].shape
    names = tuple(dict.fromkeys(columns[i] for link in moved for i in (link.place, link.source)))
    pairs = ", ".join(f"{columns[link.place]} is {columns[link.source]}" for link in moved)
    if len(shape) == 2 and shape[0] > 1:
        back = np.arange(shape[0] * shape[1]).reshape(shape)[::-1].ravel()
        if all(link.source - here.start == back[link.place - here.start] for link in moved):
            return Mismatch("history", level, (signal,), f"{signal} has the newest first")
    if len(shape) == 1 and set(schema[signal].labels) == {"x", "y", "z"}:
        return Mismatch("frame", level, names, f"axes of {signal} change places: {pairs}")
    return Mismatch("permutation", level, names, f"elements of {signal} change places: {pairs}")


def _rotation(want: Array, got: Array) -> float:
    """By how many degrees a vector was turned; 0 if it was not merely turned."""
    known = np.isfinite(want).all(axis=1) & np.isfinite(got).all(axis=1)
    turn: Array = np.linalg.lstsq(want[known], got[known], rcond=None)[0].T
    stiff = np.abs(turn @ turn.T - np.eye(3)).max() < 0.01
    exact = np.abs(want[known] @ turn.T - got[known]).max(initial=0.0) < 0.01 * (1e-9 + np.std(got[known]))
    if not stiff or not exact or np.linalg.det(turn) < 0:
        return 0.0
    return math.degrees(math.acos(float(np.clip((np.trace(turn) - 1) / 2, -1, 1))))
