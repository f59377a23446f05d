"""Writing a dataset: what `append` has returned for is kept, whatever happens next."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import TracebackType
from typing import Self, final

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array
from simops.core.trajectory import OUTCOMES, Block
from simops.data import files, parquet, shard
from simops.data.header import NAME, Header
from simops.data.shard import TABLES, Shard
from simops.data.store import UNFINISHED, Dataset, numbers, with_shard

_FOLDERS = (*TABLES, "manifest")
_OURS = {"lock", f".{NAME}{files.TEMPORARY}", *_FOLDERS}
_RECORD_BYTES = 8192


@final
class Writer:
    """The one writer of a dataset; a context manager. Several threads may call it, one is served at a time."""

    def __init__(self, path: Path | str, header: Header, *, fresh: bool = False) -> None:
        """Continue the dataset at `path`, made as `header` says, or begin it; `fresh` refuses one that is there."""
        self.path = Path(path)
        self._turn = threading.Lock()
        files.make_folder(self.path)
        self._lock = files.Lock(self.path)
        try:
            self._begin(header, fresh=fresh)
            self.notices = self._tidy()
            self.dataset = Dataset.open(self.path)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(cls, path: Path | str, header: Header) -> Writer:
        """Begin a dataset where there is none."""
        return cls(path, header, fresh=True)

    @classmethod
    def resume(cls, path: Path | str, header: Header) -> Writer:
        """Continue a dataset that was made as `header` says, or begin it."""
        return cls(path, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the next writer in; everything appended is on disk already."""
        with self._turn:
            self._lock.release()

    def missing(self, episodes: range) -> Array:
        """Which of these episodes are not there yet: what a stopped pass has still to do."""
        return self.dataset.missing(episodes)

    def append(self, block: Block) -> Shard:
        """Keep a block and return its record when it is on disk to stay.

        Episodes that are there already must be the same, and are then kept once.
        """
        with self._turn:
            if not self._lock.held:
                raise DataError("the writer is closed", where=str(self.path))
            header = self.dataset.header
            shard.sound(block, header)
            at = self.dataset.find(block.episodes)
            if (at >= 0).any():
                self._compare(block, at)
                if (at >= 0).all():
                    files.sync(self.path / "manifest")
                    return self.dataset.shards[int(at[0])]
                block = shard.pick(block, np.flatnonzero(at < 0))
            made, tables = shard.encode(block, header, self._next())
            try:
                files.require_room(self.path, made.bytes + _RECORD_BYTES, made.name)
                for table, data in tables.items():
                    files.publish(self.path / table / f"{made.name}.parquet", data)
                files.publish(self.path / "manifest" / f"{made.name}.json", files.seal(made.body()))
            except BaseException:
                self._discard(made.number)
                self.dataset = Dataset.open(self.path)
                raise
            self.dataset = with_shard(self.dataset, made)
            return made

    def _begin(self, header: Header, *, fresh: bool) -> None:
        if (self.path / NAME).exists():
            if fresh:
                raise DataError(f"{self.path} holds a dataset already", where=str(self.path), attempt="another folder")
            Header.read(self.path).require_same(header, self.path)
        else:
            foreign = sorted(path.name for path in self.path.iterdir() if path.name not in _OURS)
            held = any(numbers(self.path / folder) for folder in _FOLDERS)
            if foreign or held:
                what = foreign[0] if foreign else f"shards and no {NAME}"
                raise DataError(f"{self.path} is no dataset and holds {what}", attempt="another folder")
        for folder in _FOLDERS:
            files.make_folder(self.path / folder)
        if not (self.path / NAME).exists():
            header.write(self.path)

    def _next(self) -> int:
        return max([*(each.number for each in self.dataset.shards), *self.dataset.quarantined], default=-1) + 1

    def _tidy(self) -> tuple[str, ...]:
        """Discard what a stopped writer left: one shard that was never acknowledged."""
        for path in self.path.rglob(f".*{files.TEMPORARY}"):
            path.unlink()
        opened = Dataset.open(self.path)
        if not opened.unfinished:
            return ()
        known = {*(each.number for each in opened.shards), *opened.quarantined}
        for number in {n for table in TABLES for n in numbers(self.path / table)} - known:
            self._discard(number)
        return (f"{UNFINISHED} 1 unfinished shard discarded",)

    def _discard(self, number: int) -> None:
        for folder, end in (("manifest", "json"), ("steps", "parquet"), ("episodes", "parquet")):
            with contextlib.suppress(OSError):
                (self.path / folder / f"shard-{number:06d}.{end}").unlink(missing_ok=True)
                files.sync(self.path / folder)

    def _compare(self, block: Block, at: Array) -> None:
        """Raise if an episode that is there already differs from the one given."""
        digests = shard.digests(block)
        for position in np.unique(at[at >= 0]):
            one = self.dataset.shards[int(position)]
            table = parquet.decode(self.dataset.read(one, "episodes"), ("episode", "seed", "outcome", "digest"))
            rows = {int(episode): i for i, episode in enumerate(table["episode"])}
            for i in np.flatnonzero(at == position):
                j = rows[int(block.episodes[i])]
                given = (int(block.seeds[i]), OUTCOMES[int(block.outcomes[i])], digests[i])
                if given != (int(table["seed"][j]), table["outcome"][j], table["digest"][j]):
                    raise DataError(
                        f"episode {block.episodes[i]} is there already, and is another",
                        where=str(self.path),
                        attempt="another folder; the same recipe must make the same episode",
                        fault="DAT-011",
                    )
