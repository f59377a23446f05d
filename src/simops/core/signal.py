"""The contract: named, shaped, united arrays, described before they exist."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from simops.core.errors import SignalError, nearest

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = Mapping[str, Array]
"""Name to an array with one leading axis of rows: copies at one instant, or instants of one log."""


@final
@dataclass(frozen=True)
class Signal:
    """What one array means: name, shape of a row, unit, frame, dtype, and what its elements are called."""

    name: str
    shape: tuple[int, ...] = ()
    unit: str = ""
    """SI, as `rad/s`; empty for a pure number."""
    frame: str = ""
    """The frame vectors are expressed in, as `world`, `base`, `imu`."""
    dtype: str = "float32"
    labels: tuple[str, ...] = ()
    """One name an element, as the joints in order; what tells a permutation from the truth."""
    low: tuple[float, ...] = ()
    """Lower limits, one an element; empty when there are none."""
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise SignalError(f"{self.name!r} is not a name", attempt="letters, digits and underscores")
        for what, given in (("labels", self.labels), ("low", self.low), ("high", self.high)):
            if given and len(given) != self.size:
                raise SignalError(f"{self.name} has {self.size} elements and {len(given)} {what}")

    @property
    def size(self) -> int:
        """Scalars in one row."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def scalars(self) -> tuple[str, ...]:
        """One column name a scalar, as stored: `gyro_0`, or `joint_position_hip` where elements have labels."""
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}_{tag}" for tag in (self.labels or range(self.size)))

    def check(self, rows: Array) -> Array:
        """Give `rows` back if they are rows of this signal, or raise saying what they should be."""
        if rows.dtype != np.dtype(self.dtype):
            raise SignalError(f"{self.name} is {rows.dtype}, want {self.dtype}", where=self.name)
        if rows.shape[1:] != self.shape or rows.ndim != len(self.shape) + 1:
            want = ("n", *map(str, self.shape))
            raise SignalError(f"{self.name} has shape {rows.shape}, want ({', '.join(want)})", where=self.name)
        return rows

    def clip(self, rows: Array) -> Array:
        """Bring `rows` inside the limits; the same rows when there are none."""
        if not self.low and not self.high:
            return rows
        low = np.asarray(self.low or -np.inf, rows.dtype)
        high = np.asarray(self.high or np.inf, rows.dtype)
        return np.clip(rows.reshape(len(rows), -1), low, high).reshape(rows.shape)

    def as_dict(self) -> dict[str, object]:
        """Describe this signal in JSON's own types."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "unit": self.unit,
            "frame": self.frame,
            "dtype": self.dtype,
            "labels": list(self.labels),
            "low": list(self.low),
            "high": list(self.high),
        }


@final
@dataclass(frozen=True)
class Schema:
    """Ordered signals with one digest: the contract two sides compare."""

    signals: tuple[Signal, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for signal in self.signals:
            for column in (signal.name, *(signal.scalars if signal.shape else ())):
                if column in seen:
                    raise SignalError(f"two signals would be stored as {column!r}", where=signal.name)
                seen.add(column)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the signals, in order."""
        return tuple(signal.name for signal in self.signals)

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """One column name a scalar, in order."""
        return tuple(column for signal in self.signals for column in signal.scalars)

    @cached_property
    def size(self) -> int:
        """Scalars in one row."""
        return sum(signal.size for signal in self.signals)

    @cached_property
    def slices(self) -> Mapping[str, slice]:
        """Where each signal lies in a packed row."""
        ends = np.cumsum([0, *(signal.size for signal in self.signals)]).tolist()
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(self.names)}

    @cached_property
    def _parts(self) -> tuple[tuple[str, slice, tuple[int, ...]], ...]:
        return tuple((signal.name, self.slices[signal.name], signal.shape) for signal in self.signals)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that must agree for two sides to understand each other."""
        text = json.dumps([signal.as_dict() for signal in self.signals], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __getitem__(self, name: str) -> Signal:
        for signal in self.signals:
            if signal.name == name:
                return signal
        raise SignalError(f"no signal {name!r}", attempt=nearest(name, self.names))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def pack(self, columns: Columns, *, dtype: str = "float32") -> Array:
        """Lay the signals side by side, (rows, size), in the order of this schema."""
        rows = len(columns[self.names[0]]) if self.names else 0
        packed = np.empty((rows, self.size), dtype)
        for name, where in self.slices.items():
            if name not in columns:
                raise SignalError(f"no column {name!r}", attempt=nearest(name, columns))
            packed[:, where] = columns[name].reshape(rows, -1)
        return packed

    def unpack(self, packed: Array) -> dict[str, Array]:
        """Name the parts of packed rows; views, not copies."""
        rows = len(packed)
        return {name: packed[:, where].reshape(rows, *shape) for name, where, shape in self._parts}

    def text(self) -> str:
        """Write the schema as JSON, one signal a line."""
        lines = ",\n".join(json.dumps(signal.as_dict()) for signal in self.signals)
        return f"[{lines}]"

    @classmethod
    def parse(cls, text: str) -> Schema:
        """Read what `text` wrote."""
        return cls(tuple(_signal(entry) for entry in cast("list[dict[str, Any]]", json.loads(text))))


def every_row(true: Array) -> Array:
    """Whether a row is true throughout; quick where all rows are."""
    if true.all():
        return np.ones(len(true), bool)
    whole: Array = np.all(true.reshape(len(true), -1), axis=1)
    return whole


def _signal(entry: dict[str, Any]) -> Signal:
    return Signal(
        name=entry["name"],
        shape=tuple(entry["shape"]),
        unit=entry["unit"],
        frame=entry["frame"],
        dtype=entry["dtype"],
        labels=tuple(entry["labels"]),
        low=tuple(entry["low"]),
        high=tuple(entry["high"]),
    )
