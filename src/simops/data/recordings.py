"""Recordings on disk: every stream at its own rate, whole or absent, verified on every read.

recordings.json                      who made them and how, sealed with its own digest
streams/000000-imu.parquet           one row a reading: time_s, perhaps received_s, one column a scalar
recordings/000000.json               name, streams and the SHA-256 of each; an episode exists when this does
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from simops.core.errors import DataError, SignalError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema
from simops.data import files, parquet
from simops.data.check import Bad, Checked
from simops.data.shard import Stored

FORMAT = 1
NAME = "recordings.json"
RECORDS = "recordings"
STREAMS = "streams"
KEYS = ("episode", "time_s", "received_s")
"""Columns of a stream's table that are not the schema's."""
_RECORD = re.compile(r"(\d{6,})\.json")

Watch: TypeAlias = Callable[[int], None]
"""Called with the episodes kept so far."""


@final
@dataclass(frozen=True)
class Kept:
    """The record of one episode."""

    number: int
    name: str
    robot: str
    session: str
    start_ns: int
    duration_s: float
    facts: Mapping[str, str | float]
    notes: tuple[str, ...]
    streams: tuple[KeptStream, ...]

    @property
    def rows(self) -> int:
        """Rows of all streams."""
        return sum(stream.rows for stream in self.streams)


@final
@dataclass(frozen=True)
class KeptStream:
    """The record of one stream of an episode."""

    name: str
    rows: int
    duration_s: float
    schema: Schema
    texts: tuple[str, ...]
    received: bool
    stored: Stored

    def file(self, number: int) -> str:
        """Where its table is, from the folder of the recordings."""
        return f"{STREAMS}/{number:06d}-{self.name}.parquet"

    @property
    def rate_hz(self) -> float:
        """Rows a second, on average."""
        return (self.rows - 1) / self.duration_s if self.duration_s > 0 else 0.0


@final
@dataclass(frozen=True)
class Recordings:
    """Recordings in a folder, as they were when it was opened."""

    path: Path
    recipe: str
    """The importer that read them, as it prints."""
    source: str
    origin: str
    episodes: tuple[Kept, ...]

    @classmethod
    def open(cls, path: Path | str) -> Recordings:
        """Open what is at `path`; reads the records, not yet the data."""
        folder = Path(path)
        if not there(folder):
            raise DataError(
                f"{folder} holds no recordings: it has no {NAME}", where=str(folder), attempt="another path"
            )
        body = files.unseal(folder / NAME)
        if body.get("format") != FORMAT:
            what = f"format {body.get('format')} is not known here, only {FORMAT}"
            raise DataError(what, where=str(folder), attempt="a newer simops", fault="DAT-012")
        found = tuple(_read(path, number) for number, path in _records(folder))
        missing = sorted(set(range(int(body["episodes"]))) - {one.number for one in found})
        if missing:
            raise DataError(f"the record of episode {missing[0]} is gone", where=str(folder), fault="DAT-005")
        return cls(folder, body["recipe"], body["source"], body["origin"], found)

    def __len__(self) -> int:
        return len(self.episodes)

    def __iter__(self) -> Iterator[Recording]:
        for each in self.episodes:
            yield self.recording(each.number)

    def recording(self, number: int) -> Recording:
        """One episode, verified."""
        found = next((one for one in self.episodes if one.number == number), None)
        if found is None:
            raise DataError(f"there is no episode {number}", where=str(self.path), attempt="simops data show")
        return Recording(
            name=found.name,
            streams=tuple(self._stream(found, stream) for stream in found.streams),
            robot=found.robot,
            session=found.session,
            start_ns=found.start_ns,
            facts=dict(found.facts),
            notes=found.notes,
            origin=self.origin,  # pyright: ignore[reportArgumentType]  # it was one when it was written
        )

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        return sum(stream.stored.bytes for one in self.episodes for stream in one.streams)

    def tables(self, *, verify: bool) -> dict[str, list[Path]]:
        """The files of each stream, verified or not: what a query may read."""
        found: dict[str, list[Path]] = {}
        for one in self.episodes:
            for stream in one.streams:
                file = self.path / stream.file(one.number)
                if verify:
                    _ = stream.stored.read(file)
                found.setdefault(stream.name, []).append(file)
        return found

    def _stream(self, one: Kept, stream: KeptStream) -> Stream:
        table = parquet.decode(stream.stored.read(self.path / stream.file(one.number)))
        if len(table["time_s"]) != stream.rows:
            raise DataError(f"{stream.name} has other rows than its record says", where=str(self.path), fault="DAT-005")
        columns = {
            signal.name: _joined([table[name] for name in signal.scalars], signal.shape, signal.dtype)
            for signal in stream.schema.signals
        }
        return Stream(
            stream.name,
            table["time_s"],
            stream.schema,
            columns,
            table["received_s"] if stream.received else None,
            {name: tuple(table[name]) for name in stream.texts},
        )


def there(path: Path) -> bool:
    """Whether `path` is a folder of recordings."""
    return (path / NAME).is_file()


def keep(
    recordings: Iterator[Recording], path: Path | str, *, recipe: str, source: str, watch: Watch | None = None
) -> Recordings:
    """Write recordings into the new folder `path`; the folder counts once all of them are there."""
    folder = Path(path)
    files.make_folder(folder)
    lock = files.Lock(folder)
    try:
        foreign = sorted(one.name for one in folder.iterdir() if one.name not in {"lock", STREAMS, RECORDS})
        if foreign:
            what = f"{folder} holds {'recordings already' if NAME in foreign else foreign[0]}"
            raise DataError(what, where=str(folder), attempt="another folder", fault="DAT-011")
        for name in (STREAMS, RECORDS):
            files.make_folder(folder / name)
        origin, count = "", 0
        for number, recording in enumerate(recordings):
            if origin and recording.origin != origin:
                raise DataError(f"{recording.name} is {recording.origin}, the others are {origin}", where=source)
            _keep(folder, number, recording)
            origin, count = recording.origin, number + 1
            if watch is not None:
                watch(count)
        if not count:
            raise DataError("there is nothing in it to keep", where=source, fault="DAT-004")
        body = {"format": FORMAT, "recipe": recipe, "source": source, "origin": origin, "episodes": count}
        files.publish(folder / NAME, files.seal(body))
    finally:
        lock.release()
    return Recordings.open(folder)


def check(path: Path | str) -> Checked:
    """Read and verify every file at `path` to the last bit."""
    found = Recordings.open(path)
    bad: list[Bad] = []
    for one in found.episodes:
        try:
            _ = found.recording(one.number)
        except (DataError, SignalError) as error:
            bad.append(Bad(f"episode {one.number}", error.what, error.fault))
    return Checked(len(found) - len(bad), len(found) - len(bad), found.bytes, tuple(bad), 0, repaired=False)


def _keep(folder: Path, number: int, recording: Recording) -> None:
    kept: list[KeptStream] = []
    for stream in recording.streams:
        data = parquet.encode(_cells(stream, number), statistics=("time_s",))
        record = KeptStream(
            stream.name,
            len(stream),
            stream.duration_s,
            stream.schema,
            tuple(stream.texts),
            stream.received_s is not None,
            Stored(len(data), files.digest(data)),
        )
        files.require_room(folder, len(data) + 65536, stream.name)
        files.publish(folder / record.file(number), data)
        kept.append(record)
    body = {name: getattr(recording, name) for name in ("name", "robot", "session", "start_ns")}
    body |= {"number": number, "duration_s": recording.duration_s, "notes": list(recording.notes)}
    body["facts"] = [[name, value] for name, value in recording.facts.items()]
    body["streams"] = [
        {**dataclasses.asdict(one), "schema": json.loads(one.schema.text()), "texts": list(one.texts)} for one in kept
    ]
    files.publish(folder / RECORDS / f"{number:06d}.json", files.seal(body))


def _cells(stream: Stream, number: int) -> dict[str, parquet.Cells]:
    taken = [name for name in (*stream.schema.scalars, *stream.texts) if name in KEYS]
    if taken:
        raise SignalError(f"a signal may not be stored as {taken[0]!r}", where=stream.name, attempt="another name")
    cells: dict[str, parquet.Cells] = {
        "episode": np.full(len(stream), number, np.int64),
        "time_s": stream.time_s.astype(np.float64),
    }
    if stream.received_s is not None:
        cells["received_s"] = stream.received_s.astype(np.float64)
    for signal in stream.schema.signals:
        rows = stream.columns[signal.name].reshape(len(stream), -1)
        cells |= {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(signal.scalars)}
    return cells | {name: list(words) for name, words in stream.texts.items()}


def _joined(parts: list[Array], shape: tuple[int, ...], dtype: str) -> Array:
    if not shape:
        return parts[0].astype(dtype, copy=False)
    return np.stack(parts, 1).astype(dtype, copy=False).reshape(-1, *shape)


def _records(folder: Path) -> list[tuple[int, Path]]:
    found = ((_RECORD.fullmatch(path.name), path) for path in (folder / RECORDS).glob("*.json"))
    return sorted((int(match[1]), path) for match, path in found if match)


def _read(path: Path, number: int) -> Kept:
    body: dict[str, Any] = files.unseal(path)
    if body["number"] != number:
        raise DataError(f"{path.name} tells of another episode", where=str(path), fault="DAT-005")
    streams: list[KeptStream] = []
    for one in body["streams"]:
        told: dict[str, Any] = dict(one)
        told["schema"] = Schema.parse(json.dumps(told["schema"]))
        told["texts"], told["stored"] = tuple(told["texts"]), Stored(**told["stored"])
        streams.append(KeptStream(**told))
    body["facts"], body["notes"], body["streams"] = dict(body["facts"]), tuple(body["notes"]), tuple(streams)
    return Kept(**body)
