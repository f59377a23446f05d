"""Parquet and CSV tables of others as recordings, by a map from their columns to signals.

time: t
group: [motion]
signals:
  command: {columns: "command_{}", labels: [hip, knee], unit: rad}
  position: {columns: [q0, q1], labels: [hip, knee], unit: deg, sign: [1, -1]}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, final

import numpy as np

from simops.core.errors import DataError, SignalError, nearest
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.core.trajectory import Origin
from simops.data import foreign

STREAM = "rows"
TIMES = (
    "t",
    "time",
    "time_s",
    "timestamp",
    "timestamps",
    "stamp",
    "timestamp_ns",
    "timestamp_us",
    "time_us",
    "time_ns",
)
"""Columns taken for time when a map names none, the first that is there."""
SUFFIXES = (".parquet", ".csv", ".tsv", ".txt")
_PER_S: Mapping[str, int] = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
CONVERTED: Mapping[str, tuple[float, str]] = {
    "deg": (math.pi / 180, "rad"),
    "deg/s": (math.pi / 180, "rad/s"),
    "deg/s^2": (math.pi / 180, "rad/s^2"),
    "turn": (2 * math.pi, "rad"),
    "rpm": (math.pi / 30, "rad/s"),
    "mm": (1e-3, "m"),
    "cm": (1e-2, "m"),
    "mm/s": (1e-3, "m/s"),
    "cm/s": (1e-2, "m/s"),
    "g": (9.80665, "m/s^2"),
    "mV": (1e-3, "V"),
    "mA": (1e-3, "A"),
    "degC": (1.0, "degC"),
}
"""Units that become SI on the way in."""


@final
@dataclass(frozen=True)
class Mapped:
    """How some columns become one signal."""

    columns: tuple[str, ...] | str
    """Names in the file, one an element, side by side; or one name in which `{}` stands for each label."""
    labels: tuple[str, ...] = ()
    """One name an element, as the joints in order."""
    unit: str = ""
    """Unit in the file; deg, rpm, cm, g and their like become SI."""
    scale: float | tuple[float, ...] = 1.0
    """Multiplies the numbers of the file, as radians a tick; one number, or one an element."""
    sign: tuple[int, ...] = ()
    """1 or -1 for each element."""
    offset: float | tuple[float, ...] = 0.0
    """Added after the scale, in the signal's unit."""
    frame: str = ""

    def __post_init__(self) -> None:
        if any(one not in (-1, 1) for one in self.sign):
            raise SignalError(f"sign is {list(self.sign)}", attempt="1 or -1 for each element")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, one an element."""
        if not isinstance(self.columns, str):
            return self.columns
        return (
            tuple(self.columns.replace("{}", tag) for tag in self.labels) if "{}" in self.columns else (self.columns,)
        )


@final
@dataclass(frozen=True)
class Table:
    """Tables: one row an instant, one column a number."""

    time: str = ""
    """The column of time; found by its name when left out."""
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    group: tuple[str, ...] = ()
    """Columns that tell episodes apart, as `toss`, or `trajectory` and `kp`."""
    session: tuple[str, ...] = ()
    """Columns that tell what was logged in one go; the file by default."""
    facts: tuple[str, ...] = ()
    """Columns that are the same throughout an episode, as a mass."""
    robot: str = ""
    origin: Origin = "recorded"
    signals: Mapping[str, Mapped] = field(default_factory=dict[str, Mapped])
    """What to make of the other columns; without it each column of numbers is a signal of its own."""

    def read(self, path: Path) -> Iterator[Recording]:
        """Every episode of a table, or of all tables of a folder."""
        for file in files_of(path, SUFFIXES):
            yield from self._read(file)

    def _read(self, path: Path) -> Iterator[Recording]:
        table = foreign.columns(path)
        time = self.time or next((name for name in TIMES if name in table), "")
        if not time:
            raise DataError(
                f"{path.name} has no column of time", where=str(path), attempt="time: in a map", fault="DAT-008"
            )
        for name in (time, *self.group, *self.facts, *self.session):
            _ = _column(table, name, path)
        signals = self.signals or _guessed(table, {time, *self.group, *self.facts, *self.session})
        kept, schema = _signals(signals, table, path)
        left = sorted(
            set(table)
            - {time, *self.group, *self.facts, *self.session}
            - {n for m in signals.values() for n in m.names}
        )
        notes = [*_conversions(signals), *([f"left out: {', '.join(left)}"] if left else [])]
        for label, rows in _groups(table, self.group):
            facts = {name: _one(table[name], rows, name, path) for name in (*self.group, *self.facts)}
            start_ns, time_s = _times(table[time][rows], self.time_unit, time, path)
            yield Recording(
                name=label or path.stem,
                streams=(Stream(STREAM, time_s, schema, {name: cells[rows] for name, cells in kept.items()}),),
                robot=self.robot,
                session=_session(table, self.session, rows, path) or path.stem,
                start_ns=start_ns,
                facts=facts,
                notes=tuple(notes),
                origin=self.origin,
            )


def files_of(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """The file at `path`, or those of the folder that end so, by name; none that lies outside it."""
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path} is not there", where=str(path.parent), fault="DAT-004")
        return [path]
    root = path.resolve()
    found = sorted(file for file in path.rglob("*") if file.suffix in suffixes and file.is_file())
    stray = [file for file in found if not file.resolve().is_relative_to(root)]
    if stray:
        raise DataError(f"{stray[0]} leads outside the folder", where=str(path), fault="SEC-010")
    if not found:
        raise DataError(f"nothing in {path} ends in {' or '.join(suffixes)}", where=str(path), fault="DAT-004")
    return found


def relative(stamps: Array, per_s: int) -> tuple[int, Array]:
    """Whole stamps as nanoseconds of the first since 1970, if that is what they count, and seconds since it."""
    first = int(stamps.min()) if len(stamps) else 0
    start_ns = first * (10**9 // per_s)
    plain = (stamps - first).astype(np.float64) / per_s  # before they are floats, so that nothing is lost
    return (start_ns, plain) if start_ns > 10**17 else (0, plain + first / per_s)


def _times(cells: Any, unit: str, name: str, path: Path) -> tuple[int, Array]:
    if isinstance(cells, list):
        raise DataError(f"{path.name}: {name} holds words, not times", where=str(path), fault="DAT-007")
    stamps: Array = cells
    if stamps.ndim != 1 or not np.all(np.isfinite(stamps)):
        raise DataError(f"{path.name}: {name} is no time in some rows", where=str(path), fault="DAT-007")
    if np.issubdtype(stamps.dtype, np.integer):
        return relative(stamps.astype(np.int64), _PER_S[unit])
    seconds = stamps.astype(np.float64) / _PER_S[unit]
    if len(seconds) and seconds.min() > 1e8:  # seconds since 1970, which floats tell to about 0.2 µs
        return int(seconds.min() * 1e9), seconds - seconds.min()
    return 0, seconds


def _session(table: Mapping[str, Any], names: tuple[str, ...], rows: Array, path: Path) -> str:
    return "-".join(_said(name, _one(table[name], rows, name, path)) for name in names)


def _said(name: str, value: str | float) -> str:
    return value if isinstance(value, str) else f"{name}{value:g}"


def _column(table: Mapping[str, Any], name: str, path: Path) -> Any:
    if name not in table:
        raise DataError(
            f"{path.name} has no column {name!r}",
            where=str(path),
            attempt=nearest(name, table) or ", ".join(list(table)[:12]),
            fault="DAT-008",
        )
    return table[name]


def _signals(signals: Mapping[str, Mapped], table: Mapping[str, Any], path: Path) -> tuple[dict[str, Array], Schema]:
    kept: dict[str, Array] = {}
    made: list[Signal] = []
    for name, how in signals.items():
        parts: list[Array] = []
        for column in how.names:
            cells = _column(table, column, path)
            if isinstance(cells, list):
                raise DataError(f"{path.name}: {column} holds words, not numbers", where=str(path), fault="DAT-007")
            parts.append(cells.reshape(len(cells), -1))
        raw = np.concatenate(parts, 1)
        if how.labels and len(how.labels) != raw.shape[1]:
            raise DataError(
                f"{name} has {raw.shape[1]} columns and {len(how.labels)} labels", where=str(path), fault="DAT-008"
            )
        factor, unit = CONVERTED.get(how.unit, (1.0, how.unit))
        rule = np.asarray(how.scale, float) * np.asarray(how.sign or 1.0, float) * factor
        if rule.size not in (1, raw.shape[1]) or np.size(how.offset) not in (1, raw.shape[1]):
            raise DataError(
                f"{name} has {raw.shape[1]} columns, and another number of scales", where=str(path), fault="DAT-008"
            )
        plain = bool(np.all(rule == 1) and np.all(np.asarray(how.offset) == 0))
        dtype = "float32" if plain and raw.dtype == np.float32 else "float64"
        rows = raw.astype(dtype) if plain else raw.astype(np.float64) * rule + np.asarray(how.offset, float)
        scalar = raw.shape[1] == 1 and not how.labels
        kept[name] = np.ascontiguousarray(rows[:, 0] if scalar else rows)
        made.append(Signal(name, () if scalar else (raw.shape[1],), unit, how.frame, dtype, how.labels))
    return kept, Schema(tuple(made))


def _guessed(table: Mapping[str, Any], taken: set[str]) -> dict[str, Mapped]:
    """Each column of numbers a signal; `q_0`, `q_1`, … side by side as one."""
    found: dict[str, Mapped] = {}
    names = [name for name, cells in table.items() if name not in taken and isinstance(cells, np.ndarray)]
    for name in names:
        stem = re.sub(r"_?\d+$", "", name)
        family = [other for other in names if re.sub(r"_?\d+$", "", other) == stem]
        word = re.sub(r"\W", "_", stem if len(family) > 1 else name)
        word = word if word.isidentifier() else f"c_{word}"
        if word not in found:
            found[word] = Mapped(tuple(family) if len(family) > 1 else (name,))
    return found


def _conversions(signals: Mapping[str, Mapped]) -> list[str]:
    return [
        f"{name} from {how.unit} to {CONVERTED[how.unit][1]}"
        for name, how in signals.items()
        if how.unit in CONVERTED and CONVERTED[how.unit][0] != 1
    ]


def _groups(table: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[tuple[str, Array]]:
    """Rows of each episode in the order they stand, the episodes by their first row."""
    if not names:
        yield "", np.arange(len(next(iter(table.values()))))
        return
    keys = [tuple(cell) for cell in zip(*(np.asarray(table[name]).tolist() for name in names), strict=True)]
    rows: dict[tuple[Any, ...], list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    for key, found in rows.items():
        yield (
            "-".join(f"{v}" if isinstance(v, str) else f"{n}{v:g}" for n, v in zip(names, key, strict=True)),
            np.array(found),
        )


def _one(cells: Any, rows: Array, name: str, path: Path) -> str | float:
    """The one value of a column over an episode."""
    found = {cells[int(i)] for i in rows} if not isinstance(cells, np.ndarray) else set(cells[rows].tolist())
    if len(found) != 1:
        raise DataError(
            f"{path.name}: {name} changes within an episode",
            where=str(path),
            attempt="a signal instead of a fact",
            fault="DAT-007",
        )
    [value] = found
    return value if isinstance(value, str) else float(value)
