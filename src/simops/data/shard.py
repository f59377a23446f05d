"""A shard: the steps and episodes tables of one block, and the record that makes them count."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.errors import DataError
from simops.core.params import Params
from simops.core.signal import Array
from simops.core.trajectory import OUTCOMES, Block, shown
from simops.data import files, parquet
from simops.data.header import Header

GROUP_ROWS = 16384
"""Steps that a row group has at least; what reading one episode costs."""
TABLES = ("steps", "episodes")


@final
@dataclass(frozen=True)
class Stored:
    """One file of a shard, as it must be."""

    bytes: int
    sha256: str

    def read(self, path: Path) -> bytes:
        """What is at `path`, which is what was written; or raise."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        if len(data) != self.bytes:
            what = f"{path.parent.name}/{path.name} has {len(data)} of {self.bytes} bytes"
            raise DataError(what, where=str(path), fault="DAT-004")
        if files.digest(data) != self.sha256:
            what = f"{path.parent.name}/{path.name} does not match its checksum"
            raise DataError(what, where=str(path), fault="DAT-003")
        return data


@final
@dataclass(frozen=True)
class Shard:
    """The record of one published block."""

    number: int
    ranges: tuple[tuple[int, int], ...]
    """Episodes it holds, each range from its first up to, not including, its last number."""
    rows: int
    outcomes: Mapping[str, int]
    steps: Stored
    episodes: Stored

    @property
    def name(self) -> str:
        """As `shard-000007`."""
        return f"shard-{self.number:06d}"

    @property
    def count(self) -> int:
        """Episodes it holds."""
        return sum(stop - start for start, stop in self.ranges)

    @property
    def bytes(self) -> int:
        """Bytes of its two tables."""
        return self.steps.bytes + self.episodes.bytes

    def body(self) -> dict[str, object]:
        """Say everything in JSON's own types."""
        return asdict(self)

    @classmethod
    def read(cls, path: Path) -> Shard:
        """Read the record at `path`; raise if it is damaged."""
        body = files.unseal(path)
        return cls(
            number=body["number"],
            ranges=tuple((start, stop) for start, stop in body["ranges"]),
            rows=body["rows"],
            outcomes=body["outcomes"],
            steps=Stored(**body["steps"]),
            episodes=Stored(**body["episodes"]),
        )


def ranges_of(episodes: Array) -> tuple[tuple[int, int], ...]:
    """Sorted episode numbers as ranges without holes."""
    ordered = np.sort(episodes)
    if not len(ordered):
        return ()
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(ordered, breaks))


def term_column(term: str) -> str:
    """Column of the episodes table that holds the sum of a reward term."""
    return term if term == "reward" else f"term_{term}"


def digests(block: Block) -> list[str]:
    """SHA-256 of each episode's packed rows: the same episode has the same, wherever it lies."""
    whole = np.ascontiguousarray(block.rows, np.dtype("<f4")).data.cast("B")
    width = block.schema.size * 4
    first = (block.starts * width).tolist()
    last = ((block.starts + block.lengths + 1) * width).tolist()
    return [hashlib.sha256(whole[a:b]).hexdigest() for a, b in zip(first, last, strict=True)]


def pick(block: Block, wanted: Array) -> Block:
    """Some episodes of a block, by position."""
    if len(wanted) == len(block):
        return block
    kept = np.zeros(len(block), bool)
    kept[wanted] = True
    return replace(
        block,
        rows=block.rows[np.repeat(kept, block.lengths + 1)],
        episodes=block.episodes[kept],
        seeds=block.seeds[kept],
        lengths=block.lengths[kept],
        outcomes=block.outcomes[kept],
        params=block.params.rows(kept),
        scores={name: values[kept] for name, values in block.scores.items()},
        scenarios=tuple(each for each, keep in zip(block.scenarios, kept, strict=False) if keep),
    )


def sound(block: Block, header: Header) -> None:
    """Refuse a block that is not what the header says, or has numbers where none may be missing."""
    what = ""
    if block.schema.digest != header.schema.digest:
        what = f"signals {_named(block.schema.names)}, not {_named(header.schema.names)}"
    elif block.params.names != tuple(header.params):
        what = f"params {_named(block.params.names)}, not {_named(tuple(header.params))}"
    elif set(block.scores) != set(header.terms):
        what = f"scores {_named(tuple(block.scores))}, not {_named(header.terms)}"
    elif block.rows.dtype != np.float32 or block.rows.shape != (int((block.lengths + 1).sum()), header.schema.size):
        what = f"rows {block.rows.dtype} {block.rows.shape} for {int((block.lengths + 1).sum())} steps"
    elif len(np.unique(block.episodes)) != len(block):
        what = "an episode twice"
    elif len(block.scenarios) not in {0, len(block)}:
        what = f"{len(block.scenarios)} scenarios for {len(block)} episodes"
    if what:
        raise DataError(f"the block has {what}", fault="DAT-007")
    if block.provenance != header.provenance:
        raise DataError("the block comes from another recipe than the dataset", fault="CFG-008")
    _finite(block)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _finite(block: Block) -> None:
    """Numbers everywhere, but for what an episode's end cannot have."""
    numbers = {"params": block.params.values, **block.scores}
    for name, values in numbers.items():
        odd = ~np.isfinite(values).reshape(len(block), -1).all(1)
        if odd.any():
            raise DataError(f"episode {block.episodes[odd][0]}: {name} not finite", fault="DAT-007")
    bad = ~np.isfinite(block.rows)
    if not bad.any():
        return
    last = block.starts + block.lengths
    diverged = block.outcomes == OUTCOMES.index("diverged")
    before = np.maximum(last - 1, block.starts)[diverged]
    slices = block.schema.slices
    unacted = [
        where
        for name, where in slices.items()
        if name in {"action", "executed", "reward"} or name.startswith(shown(""))
    ]
    for where in unacted:
        bad[last, where] = False
        bad[before, where] = False  # the step that broke it has no reward, and may have no action
    bad[last[diverged]] = False
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        i = int(np.searchsorted(block.starts, row, "right")) - 1
        raise DataError(
            f"episode {block.episodes[i]}, step {row - block.starts[i]}: "
            f"{block.schema.scalars[column]} is {block.rows[row, column]}",
            attempt="end the episode as diverged where its numbers end",
            fault="DAT-007",
        )


def encode(block: Block, header: Header, number: int) -> tuple[Shard, Mapping[str, memoryview]]:
    """Make the record and the two files of a block."""
    lengths = block.lengths + 1
    turned = np.ascontiguousarray(block.rows.T)
    steps: dict[str, parquet.Cells] = {
        "episode": np.repeat(block.episodes.astype(np.int64), lengths),
        "step": (np.arange(len(block.rows)) - np.repeat(block.starts, lengths)).astype(np.int32),
        **{name: turned[i] for i, name in enumerate(header.schema.scalars)},
    }
    tables = {
        "steps": parquet.encode(steps, groups=_groups(lengths), statistics=("episode", "step")),
        "episodes": parquet.encode(table(block, header), statistics=("episode",)),
    }
    stored = {name: Stored(len(data), files.digest(data)) for name, data in tables.items()}
    names, counts = np.unique(block.outcomes, return_counts=True)
    outcomes = {OUTCOMES[int(name)]: int(count) for name, count in zip(names, counts, strict=True)}
    return Shard(number, ranges_of(block.episodes), len(block.rows), outcomes, **stored), tables


def _groups(lengths: Array) -> list[int]:
    """Rows of each row group: whole episodes, as few as reach `GROUP_ROWS`."""
    group = np.cumsum(lengths) // GROUP_ROWS
    return [int(rows) for rows in np.bincount(group, lengths).astype(int) if rows]


def table(block: Block, header: Header) -> dict[str, parquet.Cells]:
    """The episodes table of a block."""
    return {
        "episode": block.episodes.astype(np.int64),
        "seed": block.seeds.astype(np.uint64),
        "outcome": [OUTCOMES[int(i)] for i in block.outcomes],
        "steps": block.lengths.astype(np.int64),
        "duration_s": block.lengths * header.control_dt_s,
        **{term_column(name): np.asarray(block.scores[name], np.float64) for name in header.terms},
        **{f"param_{name}": np.asarray(block.params[name], np.float64) for name in header.params},
        **({"scenario": list(block.scenarios)} if block.scenarios else {}),
        "first_row": block.starts.astype(np.int64),
        "digest": digests(block),
    }


def decode(table: Mapping[str, Any], rows: Array, header: Header) -> Block:
    """Put an episodes table and packed rows together again."""
    values = [np.asarray(table[f"param_{name}"], np.float64) for name in header.params]
    return Block(
        schema=header.schema,
        rows=rows,
        episodes=table["episode"],
        seeds=table["seed"],
        lengths=table["steps"],
        outcomes=np.array([OUTCOMES.index(name) for name in table["outcome"]], np.int8),
        params=Params(tuple(header.params), np.stack(values, 1) if values else np.empty((len(table["episode"]), 0))),
        scores={name: table[term_column(name)] for name in header.terms},
        provenance=header.provenance,
        scenarios=tuple(table.get("scenario", ())),
    )


def joined(steps: bytes, episodes: bytes, header: Header) -> Block:
    """Put the two files of a shard together again."""
    names = header.schema.scalars
    return decode(parquet.decode(episodes), packed(parquet.decode(steps, names), names), header)


def packed(columns: Mapping[str, Array], names: Sequence[str]) -> Array:
    """Lay scalar columns side by side, (rows, names)."""
    turned = np.empty((len(names), len(next(iter(columns.values())))), np.float32)
    for i, name in enumerate(names):
        turned[i] = columns[name]
    return np.ascontiguousarray(turned.T)
