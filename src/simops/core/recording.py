"""Recordings: what a robot's log holds, as it was logged.

A trajectory has one clock and one row a control step. A log has many: every stream keeps its own time stamps, its own
rate and its own gaps, and nothing is resampled until somebody asks. A recording is one episode; what was logged in
one go, as the laps of one file, shares a session.

Streams may call their signals anything. These names are understood: `command` (what a joint was asked for),
`position`, `velocity`, `acceleration`, `effort` (torque or force), each with one label a joint; others are told by
their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, final

import numpy as np

from simops.core.errors import SignalError, nearest
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.trajectory import Origin

Role: TypeAlias = Literal["command", "position", "velocity", "acceleration", "effort", ""]
"""What a signal is to a joint or body; empty where that is not known."""

_COMMAND = {"command", "commands", "cmd", "goal", "target", "desired", "des", "reference", "ref", "setpoint", "action"}
_ROLES: Mapping[Role, frozenset[str]] = {
    "acceleration": frozenset({"acceleration", "accelerations", "acc", "qacc", "linear_acceleration"}),
    "velocity": frozenset({"velocity", "velocities", "vel", "speed", "qvel", "dq", "rate"}),
    "effort": frozenset({"effort", "efforts", "torque", "torques", "tau", "force"}),
    "position": frozenset({"position", "positions", "pos", "qpos", "angle", "angles", "q", "state"}),
}
_UNITS: Mapping[str, Role] = {
    "rad": "position",
    "m": "position",
    "rad/s": "velocity",
    "m/s": "velocity",
    "rad/s^2": "acceleration",
    "m/s^2": "acceleration",
    "N m": "effort",
    "N": "effort",
}


@final
@dataclass(frozen=True)
class Stream:
    """Rows that came from one place, each with its own time."""

    name: str
    time_s: Array
    """(n,) float64: when each row was measured, from the recording's start; as logged, so it may jump or repeat."""
    schema: Schema
    columns: Columns
    """One array a signal, n rows each; NaN where there was no number."""
    received_s: Array | None = None
    """(n,) float64: when each row was written down, where a log tells that beside the time of measurement."""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Words that came along, one a row."""

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise SignalError(f"{self.name!r} is not a name for a stream", attempt="letters, digits and underscores")
        for name, cells in (*self.columns.items(), *self.texts.items()):
            if len(cells) != len(self.time_s):
                raise SignalError(f"{name} has {len(cells)} rows and {len(self.time_s)} times", where=self.name)
        if self.schema.names != tuple(self.columns):
            raise SignalError(f"stream {self.name} has {list(self.columns)}, its schema {list(self.schema.names)}")

    def __len__(self) -> int:
        return len(self.time_s)

    def __getitem__(self, name: str) -> Array:
        _ = self.schema[name]
        return self.columns[name]

    @property
    def duration_s(self) -> float:
        """From the earliest to the latest row."""
        return float(self.time_s.max() - self.time_s.min()) if len(self) else 0.0


@final
@dataclass(frozen=True)
class Series:
    """One signal with its own times: what fits and checks work on."""

    signal: Signal
    time_s: Array
    """(n,) float64, as logged."""
    values: Array
    """(n, size) float64, one column an element."""
    stream: str = ""

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def labels(self) -> tuple[str, ...]:
        """One name an element; numbers where the log gave none."""
        return self.signal.labels or tuple(str(i) for i in range(self.signal.size))

    def at(self, times_s: Array, *, how: Literal["linear", "hold"] = "linear") -> Array:
        """Values at other times, (len(times_s), size): NaN before the first and after the last row, and beside NaN.

        `linear` is for what was measured, `hold` for commands, which stay until the next one. Needs times that rise.
        """
        if len(self) and np.any(np.diff(self.time_s) <= 0):
            row = int(np.flatnonzero(np.diff(self.time_s) <= 0)[0]) + 1
            raise SignalError(
                f"{self.signal.name}: time does not rise at row {row}",
                where=self.stream,
                attempt="ordered(), which leaves such rows out",
            )
        found = np.full((len(times_s), self.values.shape[1]), np.nan)
        if not len(self):
            return found
        inside = (times_s >= self.time_s[0]) & (times_s <= self.time_s[-1])
        if how == "hold":
            rows = np.searchsorted(self.time_s, times_s[inside], side="right") - 1
            found[inside] = self.values[rows]
            return found
        for i in range(self.values.shape[1]):
            found[inside, i] = np.interp(times_s[inside], self.time_s, self.values[:, i])
        return found

    def ordered(self) -> Series:
        """The rows whose time is later than that of every row before them."""
        if not len(self):
            return self
        before = np.concatenate([[-np.inf], np.maximum.accumulate(self.time_s)[:-1]])
        rise = self.time_s > before
        return self if rise.all() else Series(self.signal, self.time_s[rise], self.values[rise], self.stream)


@final
@dataclass(frozen=True)
class Recording:
    """One episode of a log."""

    name: str
    streams: tuple[Stream, ...]
    robot: str = ""
    """Which robot it was, as its maker or its serial number tells; empty when nobody said."""
    session: str = ""
    """What was logged in one go; episodes of a session are not independent."""
    start_ns: int = 0
    """Nanoseconds from 1970 to time zero; 0 when the log does not tell."""
    facts: Mapping[str, str | float] = field(default_factory=dict[str, "str | float"])
    """What was the same throughout, as a gain or a mass."""
    notes: tuple[str, ...] = ()
    """What was left out, converted, or could not be read."""
    origin: Origin = "recorded"

    def __post_init__(self) -> None:
        names = [stream.name for stream in self.streams]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise SignalError(f"two streams are called {twice[0]!r}", where=self.name)

    def __getitem__(self, name: str) -> Stream:
        for stream in self.streams:
            if stream.name == name:
                return stream
        names = [stream.name for stream in self.streams]
        raise SignalError(f"no stream {name!r} in {self.name}", attempt=nearest(name, names) or ", ".join(names))

    def every(self, role: Role, *, of: Role = "") -> tuple[Series, ...]:
        """Every signal of a role, in order; of commands only those that ask for positions, velocities or efforts.

        A command that does not say what it asks for counts as one for positions.
        """
        found: list[Series] = []
        for stream in self.streams:
            for signal in stream.schema.signals:
                if role_of(signal) != role or (of and (asked_for(signal) or "position") != of):
                    continue
                values = np.asarray(stream.columns[signal.name], np.float64).reshape(len(stream), -1)
                found.append(Series(signal, stream.time_s, values, stream.name))
        return tuple(found)

    def series(self, role: Role, *, of: Role = "") -> Series:
        """The signal of a role: the one that is called so, else the first; raises where there is none."""
        found = self.every(role, of=of)
        if not found:
            held = [signal.name for stream in self.streams for signal in stream.schema.signals]
            what = f"{self.name} has no {role}{f' of {of}' if of else ''}"
            raise SignalError(what, attempt=f"a column map; it has {', '.join(held[:12])}")
        return next((one for one in found if one.signal.name == role), found[0])

    def named(self, name: str) -> Series:
        """The signal called `name`, in whichever stream it is."""
        for stream in self.streams:
            if name in stream.schema:
                values = np.asarray(stream.columns[name], np.float64).reshape(len(stream), -1)
                return Series(stream.schema[name], stream.time_s, values, stream.name)
        held = [signal.name for stream in self.streams for signal in stream.schema.signals]
        raise SignalError(f"{self.name} has no signal {name!r}", attempt=nearest(name, held) or ", ".join(held[:12]))

    @property
    def command(self) -> Series:
        """What positions were asked for; else what else was asked for."""
        return self.series("command", of="position") if self.every("command", of="position") else self.series("command")

    @property
    def position(self) -> Series:
        """Where the joints were."""
        return self.series("position")

    @property
    def velocity(self) -> Series:
        """How fast the joints were."""
        return self.series("velocity")

    @property
    def effort(self) -> Series:
        """Torque or force that was measured."""
        return self.series("effort")

    @property
    def duration_s(self) -> float:
        """From the earliest to the latest row of any stream."""
        held = [stream for stream in self.streams if len(stream)]
        if not held:
            return 0.0
        return max(float(s.time_s.max()) for s in held) - min(float(s.time_s.min()) for s in held)


class Importer(Protocol):
    """Reads files of one format: a plugin of kind `importer`, whose fields are what a map may set."""

    def read(self, path: Path) -> Iterator[Recording]:
        """Every episode of the file or folder at `path`; raise `DataError` naming what is wrong with it."""
        ...


def role_of(signal: Signal) -> Role:
    """What a signal is to a joint, by the words of its name and then by its unit."""
    words = {word for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", signal.name.lower()) if word}
    if words & _COMMAND:
        return "command"
    for role, known in _ROLES.items():
        if words & known:
            return role
    return ""


def asked_for(signal: Signal) -> Role:
    """What kind of quantity a command asks for, by the other words of its name, else by its unit."""
    words = set(re.split(r"[\W_]+", signal.name.lower()))
    for role, known in _ROLES.items():
        if words & known:
            return role
    return _UNITS.get(signal.unit, "")
