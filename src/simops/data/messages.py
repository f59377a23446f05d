# pyright: basic
# messages are whatever their sender defined: their types are met here, and leave as named columns.
"""Messages of any type to streams: numbers to columns, words to texts, each row at the time it was measured.

A message's own stamp is its time, and when it was written down is kept beside it. `x y z w` becomes a quaternion
`w x y z`. Names that come along, as in a joint state, become labels, whatever order each message has them in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, final

import numpy as np

from simops.core.errors import DataError, SignalError
from simops.core.recording import Stream
from simops.core.signal import Array, Schema, Signal
from simops.data.recordings import KEYS

MOST_CELLS = 250_000_000
"""Numbers of one log that are held in memory."""
MOST_ELEMENTS = 4096
"""A longer array in one message is a picture or a cloud, no signal."""
APART_S = 3600.0
"""Stamps this far from when they were written down are of another clock."""
_UNITS = {
    "sensor_msgs/msg/Imu": {"angular_velocity": "rad/s", "linear_acceleration": "m/s^2"},
    "geometry_msgs/msg/Twist": {"linear": "m/s", "angular": "rad/s"},
    "geometry_msgs/msg/TwistStamped": {"twist_linear": "m/s", "twist_angular": "rad/s"},
    "geometry_msgs/msg/WrenchStamped": {"wrench_force": "N", "wrench_torque": "N m"},
    "sensor_msgs/msg/LaserScan": {"ranges": "m"},
    "sensor_msgs/msg/Range": {"range": "m"},
    "sensor_msgs/msg/BatteryState": {"voltage": "V", "current": "A"},
    "sensor_msgs/msg/JointState": {},
}


@final
@dataclass
class Topic:
    """The messages of one topic, as they come."""

    name: str
    kind: str
    """The type, as `sensor_msgs/msg/Imu`."""
    rows: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    """When each was written down and its own stamp, in ns (-1 without one), and its flat fields."""
    left: dict[str, str] = field(default_factory=dict)
    """Fields that are no signal, and why."""
    cells: int = 0

    def add(self, message: object, received_ns: int) -> None:
        """Take one message."""
        flat: dict[str, Any] = {}
        stamp = _flatten(message, "", flat, self.left)
        self.cells += sum(len(v) if isinstance(v, np.ndarray) else 1 for v in flat.values())
        if self.cells > MOST_CELLS:
            raise DataError(
                f"{self.name} holds too much to read at once", attempt="topics: without it", fault="SEC-010"
            )
        self.rows.append((received_ns, stamp, flat))

    def streams(self, start_ns: int) -> tuple[list[Stream], list[str]]:
        """What it holds, and what to note; one stream for each set of names that its messages have."""
        sets: dict[frozenset[str], list[tuple[int, int, dict[str, Any]]]] = {}
        for row in self.rows:
            names: Any = row[2].get("name")
            sets.setdefault(frozenset(names) if _labels(names) else frozenset(), []).append(row)
        notes = [f"{self.name}: {name} left out: {why}" for name, why in self.left.items()]
        found: list[Stream] = []
        for i, rows in enumerate(sets.values()):
            name = identifier(self.name) + (f"_{i + 1}" if len(sets) > 1 else "")
            made, said = _stream(name, self.kind, rows, start_ns)
            notes += [f"{self.name}: {note}" for note in said]
            if made is not None:
                found.append(made)
        return found, notes


def identifier(text: str) -> str:
    """A name of letters, digits and underscores for a topic, field or column."""
    plain = re.sub(r"\W+", "_", text).strip("_") or "unnamed"
    plain = plain if plain.isidentifier() else f"n_{plain}"
    return f"{plain}_" if plain in KEYS else plain


def _labels(names: object) -> bool:
    return isinstance(names, list) and bool(names) and len(set(names)) == len(names)


def _items(message: object) -> Mapping[str, Any] | None:
    if is_dataclass(message):
        return {one.name: getattr(message, one.name) for one in fields(message) if one.name != "__msgtype__"}
    return message if isinstance(message, Mapping) else None


def _flatten(message: object, path: str, flat: dict[str, Any], left: dict[str, str]) -> int:
    """Put the fields of a message side by side; give its header's stamp in ns, or -1."""
    stamp = -1
    for name, value in (_items(message) or {}).items():
        where = f"{path}_{name}" if path else name
        inner = _items(value)
        if inner is None:
            _leaf(value, where, flat, left)
        elif name == "header" and not path and "stamp" in inner:
            stamp = _stamp(inner["stamp"])
            if inner.get("frame_id"):
                flat["__frame__"] = str(inner["frame_id"])
        elif set(inner) in ({"sec", "nanosec"}, {"sec", "nsec"}):
            flat[where] = _stamp(value) / 1e9
        elif set(inner) == {"x", "y", "z", "w"}:
            flat[where] = np.array([inner[k] for k in "wxyz"], np.float64)
        elif set(inner) == {"x", "y", "z"} and not any(_items(inner[k]) for k in "xyz"):
            flat[where] = np.array([inner[k] for k in "xyz"], np.float64)
        else:
            _flatten(value, where, flat, left)
    return stamp


def _leaf(value: Any, where: str, flat: dict[str, Any], left: dict[str, str]) -> None:
    if isinstance(value, str):
        flat[where] = value
    elif isinstance(value, bool | int | float | np.number):
        flat[where] = float(value)
    elif isinstance(value, np.ndarray | list | tuple):
        _array(value, where, flat, left)
    elif value is not None:
        left[where] = type(value).__name__


def _array(value: Any, where: str, flat: dict[str, Any], left: dict[str, str]) -> None:
    if "covariance" in where:
        left[where] = "a covariance"
    elif len(value) > MOST_ELEMENTS or (isinstance(value, np.ndarray) and value.dtype == np.uint8 and len(value) > 64):
        left[where] = "a picture, a cloud or other bulk"
    elif isinstance(value, np.ndarray) or all(isinstance(one, bool | int | float) for one in value):
        flat[where] = np.asarray(value, np.float64).reshape(-1)
    elif all(isinstance(one, str) for one in value):
        flat[where] = list(value)
    elif len(value) <= 32:
        for i, one in enumerate(value):
            if _items(one) is not None:
                _flatten(one, f"{where}_{i}", flat, left)
    else:
        left[where] = "many parts"


def _stamp(stamp: Any) -> int:
    told = _items(stamp) or {}
    value = int(told.get("sec", 0)) * 10**9 + int(told.get("nanosec", told.get("nsec", 0)))
    return value or -1


def _stream(
    name: str, kind: str, rows: list[tuple[int, int, dict[str, Any]]], start_ns: int
) -> tuple[Stream | None, list[str]]:
    notes: list[str] = []
    order: tuple[str, ...] = tuple(rows[0][2]["name"]) if _labels(rows[0][2].get("name")) else ()
    columns: dict[str, Array] = {}
    texts: dict[str, tuple[str, ...]] = {}
    signals: list[Signal] = []
    frames = {flat.get("__frame__", "") for _, _, flat in rows}
    for key in dict.fromkeys(key for _, _, flat in rows for key in flat if key not in ("__frame__", "name")):
        cells = [flat.get(key) for _, _, flat in rows]
        if any(isinstance(cell, str) for cell in cells):
            texts[identifier(key)] = tuple("" if cell is None else str(cell) for cell in cells)
            continue
        if any(isinstance(cell, list) for cell in cells):
            texts[identifier(key)] = tuple(", ".join(cell) if isinstance(cell, list) else "" for cell in cells)
            continue
        values = _numbers(cells, order, rows)
        if isinstance(values, str):
            notes.append(f"{key} left out: {values}")
            continue
        unit = _UNITS.get(kind.replace("/msg/", "/").replace("/", "/msg/"), {}).get(key, "")
        labels = _elements(key, values, order)
        frame = str(next(iter(frames))) if len(frames) == 1 else ""
        signals.append(Signal(identifier(key), values.shape[1:], unit, frame, "float64", labels))
        columns[identifier(key)] = values
    if not columns and not texts:
        return None, notes
    time_s, received_s, said = _times(rows, start_ns)
    return Stream(name, time_s, _schema(signals), columns, received_s, texts), notes + said


def _numbers(cells: list[Any], order: tuple[str, ...], rows: list[tuple[int, int, dict[str, Any]]]) -> Array | str:
    """One array of a field's cells, by name where messages name their elements; or why that cannot be."""
    if not any(isinstance(cell, np.ndarray) for cell in cells):
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    sizes = {len(cell) for cell in cells if isinstance(cell, np.ndarray) and len(cell)}
    if not sizes:
        return "always empty"
    if len(sizes) > 1:
        return f"it has {min(sizes)} to {max(sizes)} elements"
    size = sizes.pop()
    found = np.full((len(cells), size), np.nan)
    for i, cell in enumerate(cells):
        if isinstance(cell, np.ndarray) and len(cell):
            found[i] = cell
            names = rows[i][2].get("name", ())
            if size == len(order) and tuple(names) != order:
                found[i] = cell[[names.index(name) for name in order]]
    return found


def _elements(key: str, values: Array, order: tuple[str, ...]) -> tuple[str, ...]:
    if values.ndim == 2 and len(order) == values.shape[1]:
        return order
    if values.ndim == 2 and values.shape[1] == 4 and ("orientation" in key or "rotation" in key or key == "quaternion"):
        return ("w", "x", "y", "z")
    return ()


def _schema(signals: list[Signal]) -> Schema:
    try:
        return Schema(tuple(signals))
    except SignalError:  # elements of one are called as another is: number them
        return Schema(tuple(Signal(s.name, s.shape, s.unit, s.frame, s.dtype) for s in signals))


def _times(rows: list[tuple[int, int, dict[str, Any]]], start_ns: int) -> tuple[Array, Array | None, list[str]]:
    """Seconds from the start; when rows were written down beside them where messages carry stamps."""
    received = np.array([row[0] for row in rows], np.int64)
    stamps = np.array([row[1] for row in rows], np.int64)
    written = (received - start_ns) / 1e9
    if np.any(stamps < 0):
        some = "" if np.all(stamps < 0) else "some messages have no stamp: all are at the time they were written down"
        return written, None, [some] if some else []
    apart = float(np.median(stamps - received)) / 1e9
    if abs(apart) <= APART_S:
        return (stamps - start_ns) / 1e9, written, []
    first = int(np.argmin(stamps))
    note = f"its stamps are of another clock, {abs(apart):.3g} s away: its earliest stamp was put where it was written"
    return (stamps - stamps[first]) / 1e9 + written[first], written, [note]
