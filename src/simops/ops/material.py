"""Recordings for a lesson: brought in from wherever they lie, cut, and split by what was logged in one go."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simops.core.errors import DataError, nearest
from simops.core.recording import Recording, Stream
from simops.core.signal import Schema
from simops.core.split import split
from simops.core.trajectory import Trajectory
from simops.data.recordings import Recordings, there
from simops.data.store import Dataset
from simops.data.suspect import WIRED, require
from simops.ops.recordings import importer
from simops.spec.learn import Source, Splitting


class Parted(NamedTuple):
    """Recordings to learn from, and those to judge by."""

    train: tuple[Recording, ...]
    held: tuple[Recording, ...]


def gather(source: Source, *, folder: Path) -> list[Recording]:
    """Every recording of a source whose path is relative to `folder`."""
    if source.path is None:
        raise DataError("nobody said where the recordings are", attempt="recordings: {path: ...}, or --data PATH")
    path = folder / source.path
    if there(path):
        found = list(Recordings.open(path))
    elif (path / "dataset.json").is_file():
        dataset = Dataset.open(path)
        found = [recording_of(one, dataset.header.control_dt_s) for block in dataset.blocks() for one in block]
    else:
        read, _ = importer(path, how=source.map, form=source.format)
        found = list(read.read(path))
    if source.names:
        known = {one.name for one in found}
        for name in source.names:
            if name not in known:
                raise DataError(f"no recording is called {name!r}", where=str(path), attempt=nearest(name, known))
        found = [one for one in found if one.name in source.names]
    if not found:
        raise DataError("there is no recording in it", where=str(path), fault="LRN-004")
    if not source.trusted:
        _ = require(found, WIRED)
    return found


def part(recordings: Sequence[Recording], how: Splitting) -> Parted:
    """Split recordings, by session, name or robot, or by blocks of one long recording; never by row."""
    if how.block_s > 0:
        recordings = [block for one in recordings for block in blocks(one, how.block_s)]
    if how.names:
        keys = {key for one in recordings for key in (one.name, one.session, one.robot)}
        for name in how.names:
            if name not in keys:
                raise DataError(f"nothing to hold back is called {name!r}", attempt=nearest(name, keys))
        held = {i for i, one in enumerate(recordings) if {one.name, one.session, one.robot} & set(how.names)}
        if len(held) == len(recordings):
            raise DataError("everything would be held back", attempt="fewer names in split")
        kept = [one for i, one in enumerate(recordings) if i not in held]
        return Parted(tuple(kept), tuple(recordings[i] for i in sorted(held)))
    named = [replace(one, session=one.robot) for one in recordings] if how.by == "robot" else recordings
    by = "session" if how.by == "robot" else how.by
    found = split(named, held=how.held, by=by, salt=how.salt)
    return Parted(tuple(recordings[i] for i in found.train), tuple(recordings[i] for i in found.held))


def blocks(recording: Recording, block_s: float) -> list[Recording]:
    """A recording in consecutive parts, each a session of its own; a last one of less than half is left out."""
    ends = [s.time_s[[0, -1]] for s in recording.streams if len(s)]
    start, end = min(float(e[0]) for e in ends), max(float(e[1]) for e in ends)
    count = max(1, round((end - start) / block_s))
    edges = np.linspace(start, end + 1e-9, count + 1)
    found: list[Recording] = []
    for i in range(count):
        streams = tuple(_between(one, edges[i], edges[i + 1]) for one in recording.streams)
        name = f"{recording.name}_{i:03d}"
        found.append(replace(recording, name=name, session=name, streams=streams))
    return found


def recording_of(trajectory: Trajectory, dt_s: float) -> Recording:
    """An episode as a recording, so that what was rolled out can be learned from, too."""
    kept = [signal for signal in trajectory.schema.signals if signal.name != "reward"]
    stream = Stream(
        "rows",
        np.arange(len(trajectory) + 1) * dt_s,
        Schema(tuple(kept)),
        {signal.name: trajectory.columns[signal.name] for signal in kept},
    )
    return Recording(name=f"episode_{trajectory.episode:06d}", session=f"{trajectory.episode}", streams=(stream,))


def digest_of(recordings: Sequence[Recording]) -> str:
    """SHA-256 over everything that was recorded."""
    sha = hashlib.sha256()
    for one in recordings:
        sha.update(f"{one.name}\0{one.session}\0".encode())
        for stream in one.streams:
            sha.update(np.ascontiguousarray(stream.time_s).tobytes())
            for name in stream.schema.names:
                sha.update(name.encode() + np.ascontiguousarray(stream.columns[name]).tobytes())
    return sha.hexdigest()


def _between(stream: Stream, low: float, high: float) -> Stream:
    rows = (stream.time_s >= low) & (stream.time_s < high)
    return Stream(
        stream.name,
        stream.time_s[rows],
        stream.schema,
        {name: cells[rows] for name, cells in stream.columns.items()},
        None if stream.received_s is None else stream.received_s[rows],
        {
            name: tuple(word for word, kept in zip(words, rows, strict=True) if kept)
            for name, words in stream.texts.items()
        },
    )
