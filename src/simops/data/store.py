"""A dataset on disk: what is recorded is whole, what is read is verified.

dataset.json                  what every episode shares, sealed with its own digest
steps/shard-000000.parquet    one row a control step, one float32 column a scalar
episodes/shard-000000.parquet one row an episode: seed, outcome, params, sums, digest
manifest/shard-000000.json    size and SHA-256 of the two; a shard exists when this does
quarantine/                   shards that failed, and why

"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

import numpy as np

from simops.core.errors import BusyError, DataError, SpaceError
from simops.core.signal import Array
from simops.core.trajectory import Block, Trajectory
from simops.data import files, parquet, shard
from simops.data.header import Header
from simops.data.shard import TABLES, Shard

UNFINISHED = "DAT-001"
"""What a writer says when it discards a shard that was never acknowledged."""
Table: TypeAlias = Literal["steps", "episodes"]
_NAME = re.compile(r"shard-(\d{6,})\.(parquet|json|why\.json)")


@final
@dataclass(frozen=True)
class Dataset:
    """What is in a dataset, as it was when it was opened."""

    path: Path
    header: Header
    shards: tuple[Shard, ...]
    """In the order of their numbers; none that is in quarantine."""
    quarantined: tuple[int, ...]
    """Numbers of the shards that failed and were moved aside."""
    unfinished: int = 0
    """Shards of a writer that is at work, or was stopped; never visible, discarded by the next writer."""

    @classmethod
    def open(cls, path: Path | str) -> Dataset:
        """Open what is at `path`; reads the records, not yet the data."""
        folder = Path(path)
        header = Header.read(folder)
        recorded = numbers(folder / "manifest")
        shards = tuple(Shard.read(folder / "manifest" / f"shard-{n:06d}.json") for n in recorded)
        quarantined = numbers(folder / "quarantine")
        beyond = max([*recorded, *quarantined], default=-1) + 1
        orphans = {n for table in TABLES for n in numbers(folder / table)} - set(recorded)
        lost = sorted({*range(beyond), *orphans} - {*recorded, *quarantined, beyond})
        wrong = [n for each, n in zip(shards, recorded, strict=True) if each.number != n]
        if lost or wrong:
            raise DataError(
                f"the record of shard {(lost or wrong)[0]} is gone or of another",
                where=str(folder),
                attempt=f"simops data check {folder} --repair",
                fault="DAT-005",
            )
        return cls(folder, header, shards, tuple(quarantined), len(orphans - set(quarantined)))

    def __len__(self) -> int:
        """Episodes in it."""
        return sum(each.count for each in self.shards)

    @property
    def bytes(self) -> int:
        """Bytes of all tables."""
        return sum(each.bytes for each in self.shards)

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many episodes ended how."""
        total: Counter[str] = Counter()
        for each in self.shards:
            total.update(each.outcomes)
        return dict(total)

    @cached_property
    def _ranges(self) -> tuple[Array, Array, Array]:
        """First numbers, last numbers + 1 and shard positions of all ranges, sorted."""
        found = sorted((a, b, i) for i, each in enumerate(self.shards) for a, b in each.ranges)
        starts, stops, which = np.array(found, np.int64).reshape(-1, 3).T
        return starts, stops, which

    def find(self, episodes: Array) -> Array:
        """Position in `shards` of each episode, -1 where there is none."""
        starts, stops, which = self._ranges
        if not len(starts):
            return np.full(len(episodes), -1)
        at = np.searchsorted(starts, episodes, "right") - 1
        inside = (at >= 0) & (episodes < stops[at])
        return np.where(inside, which[at], -1)

    def missing(self, episodes: range) -> Array:
        """Which of these episodes are not there yet, in order."""
        asked = np.arange(episodes.start, episodes.stop, episodes.step, dtype=np.int64)
        return asked[self.find(asked) < 0]

    def blocks(self) -> Iterator[Block]:
        """Every episode, one shard at a time, all of it verified."""
        for each in self.shards:
            yield self.block(each)

    def block(self, one: Shard) -> Block:
        """The episodes of one shard."""
        return shard.joined(self.read(one, "steps"), self.read(one, "episodes"), self.header)

    def trajectory(self, episode: int) -> Trajectory:
        """One episode by its number."""
        at = int(self.find(np.array([episode]))[0])
        if at < 0:
            raise DataError(f"there is no episode {episode}", where=str(self.path), attempt="simops data show")
        one = self.shards[at]
        table = parquet.decode(self.read(one, "episodes"))
        i = int(np.flatnonzero(table["episode"] == episode)[0])
        data = self.read(one, "steps")
        first = int(table["first_row"][i])
        group, start = parquet.group_of_row(data, first)
        columns = parquet.decode(data, self.header.schema.scalars, groups=(group,))
        span = slice(first - start, first - start + int(table["steps"][i]) + 1)
        rows = shard.packed({name: values[span] for name, values in columns.items()}, self.header.schema.scalars)
        return shard.decode({name: cells[i : i + 1] for name, cells in table.items()}, rows, self.header).trajectory(0)

    def arrays(
        self, columns: Sequence[str], *, episodes: Array | None = None, outcomes: Sequence[str] = ()
    ) -> dict[str, Array]:
        """Columns of the steps table beside `episode` and `step`, of these episodes, or of those that ended so."""
        wanted = ["episode", "step", *(name for name in columns if name not in {"episode", "step"})]
        parts: list[dict[str, Array]] = []
        for each in self.shards:
            table = parquet.decode(self.read(each, "episodes"), ("episode", "outcome", "steps"))
            kept = np.ones(len(table["episode"]), bool)
            if episodes is not None:
                kept &= np.isin(table["episode"], episodes)
            if outcomes:
                kept &= np.isin(np.array(table["outcome"]), outcomes)
            if kept.any():
                rows = np.repeat(kept, table["steps"] + 1)
                found = parquet.decode(self.read(each, "steps"), wanted)
                parts.append({name: values[rows] for name, values in found.items()})
        if not parts:
            return {name: np.empty(0, np.int64 if name in {"episode", "step"} else np.float32) for name in wanted}
        return {name: np.concatenate([part[name] for part in parts]) for name in wanted}

    def episodes(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        """Columns of the episodes table: arrays of numbers, lists of text."""
        tables = [parquet.decode(self.read(each, "episodes"), columns) for each in self.shards]
        return {
            name: np.concatenate([table[name] for table in tables])
            if isinstance(tables[0][name], np.ndarray)
            else [cell for table in tables for cell in table[name]]
            for name in (tables[0] if tables else ())
        }

    def digest(self) -> str:
        """SHA-256 over the header and all episodes in order: the same content has the same, however it was cut.

        The lock is left out: on how many copies and threads a spec ran is no part of what came out.
        """
        keys = ("episode", "seed", "outcome", "digest")
        table = self.episodes(keys)
        order: list[int] = np.argsort(table["episode"]).tolist() if table else []
        lines = ["\t".join(str(table[key][i]) for key in keys) for i in order]
        header = {key: value for key, value in self.header.body().items() if key != "lock"}
        return files.digest("\n".join([json.dumps(header, sort_keys=True), *lines]).encode())

    def read(self, one: Shard, table: Table) -> bytes:
        """The bytes of one file, which are those that were written; or put the shard aside and raise."""
        try:
            return self.verified(one, table)
        except DataError as error:
            moved = self.quarantine(one.number, error.what)
            error.attempt = (
                f"the shard was moved to {self.path / 'quarantine'}; run again what made it"
                if moved
                else f"simops data check {self.path} --repair, when nobody writes there"
            )
            raise

    def verified(self, one: Shard, table: Table) -> bytes:
        """The bytes of one file, which are those that were written; or raise."""
        want = one.steps if table == "steps" else one.episodes
        return want.read(self.path / table / f"{one.name}.parquet")

    def quarantine(self, number: int, why: str) -> bool:
        """Move a shard where nobody reads it; False if somebody else is writing there or the disk refuses."""
        try:
            lock = files.Lock(self.path)
        except (BusyError, SpaceError):
            return False
        try:
            set_aside(self.path, number, why)
        except OSError:
            return False
        else:
            return True
        finally:
            lock.release()


def numbers(folder: Path) -> list[int]:
    """Shards that have a file in `folder`, in order."""
    if not folder.is_dir():
        return []
    matches = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted({int(match[1]) for match in matches if match})


def set_aside(folder: Path, number: int, why: str) -> None:
    """Move all files of a shard to quarantine, its record last, and write down why; under the lock only."""
    name = f"shard-{number:06d}"
    aside = folder / "quarantine"
    files.make_folder(aside)
    files.publish(aside / f"{name}.why.json", files.seal({"shard": number, "why": why}))
    for path, end in (
        (folder / "steps" / f"{name}.parquet", "steps.parquet"),
        (folder / "episodes" / f"{name}.parquet", "episodes.parquet"),
        (folder / "manifest" / f"{name}.json", "json"),
    ):
        with contextlib.suppress(FileNotFoundError):
            path.replace(aside / f"{name}.{end}")
            files.sync(aside)
            files.sync(path.parent)


def with_shard(dataset: Dataset, added: Shard) -> Dataset:
    """The dataset, one shard later."""
    return replace(dataset, shards=(*dataset.shards, added))
