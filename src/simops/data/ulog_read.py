# pyright: basic
# pyulog ships no types; this is the one file that talks to it.
"""PX4 ULog as recordings: each topic and instance a stream, parameters as facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.errors import DataError, ExtraError, SignalError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.core.trajectory import Origin
from simops.data import files
from simops.data.messages import identifier
from simops.data.rename import Renamed, renamed
from simops.data.table_read import files_of

try:
    from pyulog import ULog
    from pyulog.exceptions import ULogException
except ModuleNotFoundError as missing:  # pragma: no cover
    raise ExtraError("ULog needs pyulog, which is not installed", attempt="pip install 'simops[logs]'") from missing

MAGIC = b"ULog\x01\x12\x35"
MOST_BYTES = 2 * 2**30
_UNITS = (
    ("gyro_rad", "rad/s"),
    ("_m_s2", "m/s^2"),
    ("_m_s", "m/s"),
    ("voltage", "V"),
    ("_v", "V"),
    ("current", "A"),
    ("_a", "A"),
)
_VECTORS = {2: ("x", "y"), 3: ("x", "y", "z")}


@final
@dataclass(frozen=True)
class Px4:
    """ULog files."""

    topics: tuple[str, ...] = ()
    """Topics to keep, as `sensor_combined`; all by default."""
    robot: str = ""
    """By default the hardware that the log names."""
    session: str = ""
    """What was logged in one go; each file by default."""
    origin: Origin = "recorded"
    signals: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Names, labels, units and signs for what the topics hold."""

    def read(self, path: Path) -> Iterator[Recording]:
        """One recording a file."""
        for file in files_of(path, (".ulg",)):
            yield renamed(self._read(file), self.signals)

    def _read(self, path: Path) -> Recording:
        log = _open(path, self.topics)
        if not log.data_list:
            raise DataError(f"{path.name} holds no topic that was asked for", where=str(path), fault="DAT-004")
        twice = {one.name for one in log.data_list if one.multi_id}
        start_us = min(int(one.data["timestamp"].min()) for one in log.data_list if len(one.data["timestamp"]))
        notes = [f"{one.duration} ms were not logged" for one in log.dropouts]
        notes += [
            f"{name} was changed to {value:g} at {(us - start_us) / 1e6:.2f} s" for us, name, value in _changes(log)
        ]
        if log.file_corruption:
            notes.append("parts of the file are damaged and were skipped")
        streams = [
            _stream(f"{one.name}_{one.multi_id}" if one.name in twice else one.name, one.data, start_us)
            for one in log.data_list
            if len(one.data["timestamp"])
        ]
        facts: dict[str, str | float] = {name: float(value) for name, value in log.initial_parameters.items()}
        utc_s = int(log.msg_info_dict.get("time_ref_utc", 0))
        if utc_s:
            facts["time_ref_utc"] = float(utc_s)
        return Recording(
            name=path.stem,
            streams=tuple(streams),
            robot=self.robot or str(log.msg_info_dict.get("ver_hw", "")),
            session=self.session or path.stem,
            facts=facts,
            notes=tuple(notes),
            origin=self.origin,
        )


def _open(path: Path, topics: tuple[str, ...]) -> Any:
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f"{path.name} is no ULog", where=str(path), fault="DAT-003")
    if path.stat().st_size > MOST_BYTES:
        what = f"{path.name} has more than {files.size(MOST_BYTES)}"
        raise DataError(what, where=str(path), attempt="topics:", fault="SEC-010")
    try:
        return ULog(str(path), list(topics) or None)
    except (ULogException, ValueError, KeyError, IndexError, TypeError, OSError, RecursionError) as error:
        raise DataError(f"{path.name} is not a readable ULog: {error}", where=str(path), fault="DAT-003") from error


def _changes(log: Any) -> list[tuple[int, str, float]]:
    return [(int(us), str(name), float(value)) for us, name, value in log.changed_parameters]


def _stream(name: str, data: Mapping[str, Array], start_us: int) -> Stream:
    written = (data["timestamp"].astype(np.int64) - start_us) / 1e6
    sampled = data.get("timestamp_sample")
    measured = None
    if sampled is not None and np.all(sampled > 0):
        measured = (sampled.astype(np.int64) - start_us) / 1e6
    columns: dict[str, Array] = {}
    signals: list[Signal] = []
    for key, parts in _families({key for key in data if key not in ("timestamp", "timestamp_sample")}, data).items():
        cells = [np.asarray(data[part], np.float64) for part in parts]
        several = len(parts) > 1
        labels = ("w", "x", "y", "z") if key.startswith("q") and len(parts) == 4 else _VECTORS.get(len(parts), ())
        word = identifier(key)
        columns[word] = np.stack(cells, 1) if several else cells[0]
        unit = next((unit for end, unit in _UNITS if key.endswith(end)), "")
        signals.append(Signal(word, (len(parts),) if several else (), unit, "", "float64", labels if several else ()))
    try:
        schema = Schema(tuple(signals))
    except SignalError:  # elements of one are called as another is: number them
        schema = Schema(tuple(Signal(s.name, s.shape, s.unit, s.frame, s.dtype) for s in signals))
    return Stream(
        identifier(name),
        written if measured is None else measured,
        schema,
        columns,
        None if measured is None else written,
    )


def _families(names: set[str], data: Mapping[str, Array]) -> dict[str, list[str]]:
    """`q[0]` to `q[3]` as one, in the order of the log."""
    found: dict[str, list[str]] = {}
    for name in data:
        if name in names and not name.startswith("_padding"):
            found.setdefault(re.sub(r"\[\d+\]$", "", name), []).append(name)
    return found
