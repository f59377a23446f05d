"""Gives signals of a log the names, labels, units and signs that others understand.

signals:
  command: {of: arm_controller_command.data, labels: [hip, knee], unit: rad}
  position: {of: joint_states.position, sign: [1, -1]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from simops.core.errors import DataError, nearest
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.data.table_read import CONVERTED


@final
@dataclass(frozen=True)
class Renamed:
    """How one signal of a log is to be understood."""

    of: str
    """The signal as it is called after import, `stream.signal`, as `joint_states.position`."""
    labels: tuple[str, ...] = ()
    """One name an element."""
    unit: str = ""
    """Unit in the file; deg, rpm, cm, g and their like become SI."""
    scale: float | tuple[float, ...] = 1.0
    sign: tuple[int, ...] = ()
    """1 or -1 for each element."""
    offset: float | tuple[float, ...] = 0.0
    """Added after the scale, in the signal's unit."""
    frame: str = ""


def renamed(recording: Recording, signals: Mapping[str, Renamed]) -> Recording:
    """The recording with each of `signals` in its stream under its new name."""
    streams = {stream.name: stream for stream in recording.streams}
    for name, how in signals.items():
        stream, _, old = how.of.partition(".")
        known = [f"{one.name}.{signal}" for one in recording.streams for signal in one.schema.names]
        if stream not in streams or old not in streams[stream].schema:
            raise DataError(
                f"{recording.name} has no signal {how.of!r}",
                where=f"signals.{name}",
                attempt=nearest(how.of, known) or ", ".join(known[:12]),
                fault="DAT-008",
            )
        streams[stream] = _with(streams[stream], old, name, how)
    return replace(recording, streams=tuple(streams.values()))


def _with(stream: Stream, old: str, name: str, how: Renamed) -> Stream:
    was = stream.schema[old]
    if how.labels and len(how.labels) != was.size:
        what = f"{how.of} has {was.size} elements and {len(how.labels)} labels"
        raise DataError(what, where=f"signals.{name}", fault="DAT-008")
    factor, unit = CONVERTED.get(how.unit, (1.0, how.unit or was.unit))
    rule = np.asarray(how.scale, float) * np.asarray(how.sign or 1.0, float) * factor
    if rule.size not in (1, was.size) or np.size(how.offset) not in (1, was.size):
        what = f"{how.of} has {was.size} elements, and another number of scales"
        raise DataError(what, where=f"signals.{name}", fault="DAT-008")
    rows: Array = np.asarray(stream.columns[old], np.float64).reshape(len(stream), -1)
    values = (rows * rule + np.asarray(how.offset, float)).reshape(stream.columns[old].shape)
    made = Signal(name, was.shape, unit, how.frame or was.frame, "float64", how.labels or was.labels)
    signals = tuple(made if one.name == old else one for one in stream.schema.signals)
    columns = {name if key == old else key: values if key == old else cells for key, cells in stream.columns.items()}
    return replace(stream, schema=Schema(signals), columns=columns)
