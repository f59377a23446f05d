"""Verify everything in a dataset, and put aside what fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, final

import numpy as np

from simops.core.errors import DataError
from simops.data import files, frames, parquet, shard
from simops.data.header import Header
from simops.data.shard import TABLES, Shard
from simops.data.store import Dataset, numbers, set_aside

Watch: TypeAlias = Callable[[int, int], None]
"""Called with shards done and shards in all."""


def _quiet(done: int, total: int) -> None:
    del done, total


@final
@dataclass(frozen=True)
class Bad:
    """One thing that failed."""

    name: str
    """The shard, or the file of frames."""
    what: str
    fault: str


@final
@dataclass(frozen=True)
class Checked:
    """What a check found."""

    shards: int
    """Shards that are sound."""
    episodes: int
    bytes: int
    bad: tuple[Bad, ...]
    unfinished: int
    """Shards that were never acknowledged; the next writer discards them."""
    repaired: bool
    """Whether what is bad was put aside."""


def check(path: Path | str, *, repair: bool = False, watch: Watch = _quiet) -> Checked:
    """Read and verify every file at `path`; `repair` moves each bad shard to quarantine, under the writer's lock."""
    folder = Path(path)
    dataset = Dataset(folder, Header.read(folder), (), ())
    recorded, aside = numbers(folder / "manifest"), numbers(folder / "quarantine")
    beyond = max([*recorded, *aside], default=-1) + 1
    orphans = {n for table in TABLES for n in numbers(folder / table)} - {*recorded, *aside}
    bad: dict[int, Bad] = {
        n: Bad(f"shard-{n:06d}", "its record is gone", "DAT-005")
        for n in sorted({*range(beyond), *orphans} - {*recorded, *aside, beyond})
    }
    good: list[Shard] = []
    for done, number in enumerate(recorded):
        watch(done, len(recorded))
        try:
            good.append(_verify(dataset, number))
        except DataError as error:
            bad[number] = Bad(f"shard-{number:06d}", error.what, error.fault)
    watch(len(recorded), len(recorded))
    broken = [Bad(name, error.what, error.fault) for name, error in frames.broken(folder)]
    if repair and (bad or broken):
        lock = files.Lock(folder)
        try:
            for number, one in sorted(bad.items()):
                set_aside(folder, number, one.what)
            for one in broken:
                frames.set_aside(folder, one.name)
        finally:
            lock.release()
    return Checked(
        shards=len(good),
        episodes=sum(one.count for one in good),
        bytes=sum(one.bytes for one in good),
        bad=(*(bad[number] for number in sorted(bad)), *broken),
        unfinished=len(orphans & {beyond}),
        repaired=repair and bool(bad or broken),
    )


def _verify(dataset: Dataset, number: int) -> Shard:
    """Read a shard to the last bit and compare it with its record."""
    one = Shard.read(dataset.path / "manifest" / f"shard-{number:06d}.json")
    steps, episodes = dataset.verified(one, "steps"), dataset.verified(one, "episodes")
    keys = parquet.decode(steps, ("episode", "step"))
    table = parquet.decode(episodes, ("outcome", "digest"))
    block = shard.joined(steps, episodes, dataset.header)
    lengths = block.lengths + 1
    facts = {
        "its number": one.number == number,
        "its episodes": one.ranges == shard.ranges_of(block.episodes),
        "its steps": one.rows == len(block.rows) == int(lengths.sum()),
        "its outcomes": {name: table["outcome"].count(name) for name in set(table["outcome"])} == one.outcomes,
        "the digests of its episodes": shard.digests(block) == table["digest"],
        "the numbers of its rows": np.array_equal(keys["episode"], np.repeat(block.episodes, lengths)),
    }
    wrong = [name for name, holds in facts.items() if not holds]
    if wrong:
        raise DataError(f"{one.name} does not agree with its record on {wrong[0]}", fault="DAT-005")
    return one
