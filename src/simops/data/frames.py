"""What cameras saw: whole films beside the steps, and a table that says which frame belongs to which instant.

videos/<camera>/<kind>/episode-000012.mp4     the film as it was given, published whole
frames/<camera>-<kind>-000012.parquet         one row a frame: episode, step, time, film and its digest
frames/<camera>-<kind>-000012.json            size and SHA-256 of both; the film exists when this does
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array
from simops.data import files, parquet
from simops.data.shard import Stored
from simops.data.writer import Writer

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
_SUFFIX = re.compile(r"\.[a-z0-9]{2,5}")


@final
@dataclass(frozen=True)
class Film:
    """The record of one film."""

    episode: int
    camera: str
    kind: str
    """As `rgb`, `depth` or `segmentation`."""
    frames: int
    suffix: str
    """Of the film's file, as `.mp4`."""
    film: Stored
    table: Stored
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its maker says of it: codec, unit of a pixel, names of objects."""

    @property
    def file(self) -> str:
        """Where the film is, from the dataset's folder."""
        return f"videos/{self.camera}/{self.kind}/episode-{self.episode:06d}{self.suffix}"

    @property
    def name(self) -> str:
        """As `wrist-depth-000012`."""
        return f"{self.camera}-{self.kind}-{self.episode:06d}"


def keep(
    writer: Writer,
    episode: int,
    camera: str,
    kind: str,
    film: bytes,
    *,
    time_s: Array,
    step: Array,
    suffix: str = ".mp4",
    facts: Mapping[str, str] | None = None,
) -> Film:
    """Keep what one camera saw of one episode; returns when it is on disk to stay.

    `time_s` and `step` tell for each frame when it was taken and which row of the trajectory that is.
    """
    _plain(camera, kind, suffix)
    if len(time_s) != len(step) or not np.all(np.isfinite(time_s)):
        raise DataError(f"a film of {len(time_s)} times and {len(step)} steps", fault="DAT-007")
    if int(writer.dataset.find(np.array([episode]))[0]) < 0:
        raise DataError(f"there is no episode {episode} to go with the film", where=str(writer.path), fault="DAT-005")
    sha256, count = files.digest(film), len(time_s)
    file = Film(episode, camera, kind, count, suffix, Stored(0, ""), Stored(0, "")).file
    table = parquet.encode(
        {
            "episode": np.full(count, episode, np.int64),
            "camera": [camera] * count,
            "kind": [kind] * count,
            "frame": np.arange(count, dtype=np.int64),
            "step": np.asarray(step, np.int64),
            "time_s": np.asarray(time_s, np.float64),
            "file": [file] * count,
            "sha256": [sha256] * count,
        }
    )
    stored = Stored(len(film), sha256), Stored(len(table), files.digest(table))
    record = Film(episode, camera, kind, count, suffix, *stored, facts=dict(facts or {}))
    _publish(writer, record, film, table)
    return record


def _publish(writer: Writer, record: Film, film: bytes, table: memoryview) -> None:
    folder = writer.path / "frames"
    path = folder / f"{record.name}.json"
    if path.exists():
        if _read(path) != record:
            raise DataError(f"film {record.name} is there already, and is another", where=str(path), fault="DAT-011")
        return
    files.make_folder(folder)
    files.make_folder((writer.path / record.file).parent)
    files.require_room(writer.path, len(film) + len(table) + 4096, record.name)
    files.publish(writer.path / record.file, film)
    files.publish(folder / f"{record.name}.parquet", table)
    files.publish(path, files.seal(asdict(record)))


def films(path: Path | str) -> tuple[Film, ...]:
    """Every film of the dataset at `path`, by name."""
    return tuple(_read(record) for record in _records(Path(path)))


def read(path: Path | str, film: Film) -> bytes:
    """The film as it was given, verified."""
    return film.film.read(Path(path) / film.file)


def tables(path: Path, *, verify: bool) -> list[Path]:
    """The files of the frames table, verified or not."""
    found = [(path / "frames" / f"{film.name}.parquet", film.table) for film in films(path)]
    if verify:
        for file, stored in found:
            _ = stored.read(file)
    return [file for file, _ in found]


def broken(path: Path) -> Iterator[tuple[str, DataError]]:
    """Name each film that is not as it was written, and why."""
    for record in _records(path):
        try:
            film = _read(record)
            _ = film.film.read(path / film.file)
            _ = parquet.decode(film.table.read(record.with_suffix(".parquet")))
        except DataError as error:
            yield record.stem, error


def set_aside(path: Path, name: str) -> None:
    """Move a film's table and record to quarantine; the film itself stays where it is, unlisted."""
    aside = path / "quarantine"
    files.make_folder(aside)
    for end in ("parquet", "json"):
        file = path / "frames" / f"{name}.{end}"
        if file.exists():
            file.replace(aside / file.name)
    files.sync(aside)
    files.sync(path / "frames")


def _records(path: Path) -> list[Path]:
    return sorted((path / "frames").glob("[!.]*.json"))


def _read(path: Path) -> Film:
    body = files.unseal(path)
    body["film"], body["table"] = Stored(**body["film"]), Stored(**body["table"])
    film = Film(**body)
    _plain(film.camera, film.kind, film.suffix)
    if film.name != path.stem:
        raise DataError(f"{path.name} tells of another film", where=str(path), fault="DAT-005")
    return film


def _plain(camera: str, kind: str, suffix: str) -> None:
    """Raise unless these make a file name, and nothing more."""
    for word in (camera, kind):
        if not _WORD.fullmatch(word):
            raise DataError(f"{word!r} is not a name for a film", attempt="letters, digits and underscores")
    if not _SUFFIX.fullmatch(suffix):
        raise DataError(f"{suffix!r} is not the ending of a film", attempt="'.mp4'")
