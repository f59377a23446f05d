"""Write a dataset as LeRobot v3, directly: what its trainers read, and beside it what they have no word for.

    meta/info.json  meta/stats.json  meta/tasks.parquet  meta/episodes/chunk-000/file-000.parquet
    data/chunk-000/file-000.parquet       one row a step; the row after the last step goes to the sidecar
    meta/simops/                          header and episodes: params, seeds, last rows; for a way back without loss

`observation.state` is what the policy was shown. The truth behind a signal that a sensor changed goes to
`privileged.state`, under a name that no trainer takes for an input.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array, Schema
from simops.core.trajectory import OUTCOMES, Block, shown
from simops.data import files, parquet, shard
from simops.data.header import Header
from simops.data.store import Dataset

VERSION = "v3.0"
GROUP_EPISODES = 64
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
SAMPLED_ROWS = 100_000
"""Rows that quantiles are taken from, evenly over the dataset; everything else is exact."""
SIDECAR = "meta/simops"

Watch: TypeAlias = Callable[[int, int], None]


@final
@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    path: Path
    episodes: int
    frames: int
    notes: tuple[str, ...]
    """What was left out, and why."""


@final
@dataclass(frozen=True)
class Feature:
    """One column of LeRobot's, and the scalars of ours that it is made of."""

    name: str
    where: Array
    """Positions in a packed row."""
    labels: tuple[str, ...]


def features(schema: Schema) -> tuple[Feature, ...]:
    """Sort the signals of a trajectory into LeRobot's columns."""
    own = {"action": "action", "executed": "executed_action", "reward": "next.reward"}
    sensed = {name.removeprefix(shown("")) for name in schema.names if name.startswith(shown(""))}
    groups: dict[str, list[int]] = {"observation.state": []}
    for name, span in schema.slices.items():
        hidden = name in sensed and shown(name) in schema
        group = own.get(name) or ("privileged.state" if hidden else "observation.state")
        groups.setdefault(group, []).extend(range(span.start, span.stop))
    return tuple(
        Feature(name, np.array(where), tuple(schema.scalars[i] for i in where))
        for name, where in groups.items()
        if where
    )


def export(
    source: Path | str,
    out: Path | str,
    *,
    task: str = "",
    outcomes: Sequence[str] = ("success", "failure", "timeout"),
    watch: Watch | None = None,
) -> Exported:
    """Write the dataset at `source` to the new folder `out`; `task` is the instruction in words.

    Only episodes that ended as `outcomes` say: a diverged one has no numbers to learn from.
    """
    dataset, folder = Dataset.open(source), Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty", where=str(folder), attempt="another folder")
    schema = dataset.header.schema
    _require_action(schema)
    making = _Making(folder, dataset.header, task or dataset.header.provenance.task, features(schema))
    making.stride = max(1, sum(one.rows for one in dataset.shards) // SAMPLED_ROWS)
    for done, one in enumerate(dataset.shards):
        if watch is not None:
            watch(done, len(dataset.shards))
        block = dataset.block(one)
        kept = [i for i, code in enumerate(block.outcomes) if OUTCOMES[int(code)] in outcomes and block.lengths[i] > 0]
        if kept:
            making.add(shard.pick(block, np.array(kept)))
    if not making.episodes:
        raise DataError("no episode to export", where=str(source), attempt=f"other outcomes than {', '.join(outcomes)}")
    making.finish()
    left = len(dataset) - making.episodes
    notes = (f"{left} episodes left out: they ended otherwise than {', '.join(outcomes)}",) if left else ()
    films = len(list((Path(source) / "frames").glob("[!.]*.json")))
    if films:
        notes = (*notes, f"{films} films left out: the export holds no video")
    return Exported(folder, making.episodes, making.frames, notes)


def _require_action(schema: Schema) -> None:
    if "action" not in schema:
        raise DataError("nothing to learn from: the dataset has no signal 'action'")


@final
@dataclass
class _Making:
    """An export on its way."""

    folder: Path
    header: Header
    task: str
    features: tuple[Feature, ...]
    stride: int = 1
    episodes: int = 0
    frames: int = 0
    parts: int = 0
    meta: list[dict[str, Array]] = field(default_factory=list[dict[str, Array]])
    aside: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sums: dict[str, _Sums] = field(default_factory=dict[str, "_Sums"])

    def add(self, block: Block) -> None:
        """Write one data file."""
        count, frames = len(block), int(block.lengths.sum())
        ends = block.starts + block.lengths
        acted = np.ones(len(block.rows), bool)
        acted[ends] = False
        rows = block.rows[acted]
        first = np.cumsum(block.lengths) - block.lengths
        frame = np.arange(frames) - np.repeat(first, block.lengths)
        last = first + block.lengths - 1
        done, success = np.zeros(frames, bool), np.zeros(frames, bool)
        done[last] = True
        success[last[block.outcomes == OUTCOMES.index("success")]] = True
        columns: dict[str, Array] = {
            each.name: rows[:, each.where] if len(each.where) > 1 else rows[:, each.where[0]] for each in self.features
        }
        columns |= {
            "next.done": done,
            "next.success": success,
            "timestamp": (frame * self.header.control_dt_s).astype(np.float32),
            "frame_index": frame,
            "episode_index": np.repeat(np.arange(count) + self.episodes, block.lengths),
            "index": np.arange(frames) + self.frames,
            "task_index": np.zeros(frames, np.int64),
        }
        for name, values in columns.items():
            self.sums.setdefault(name, _Sums()).add(values, self.frames, self.stride)
        groups = [int(block.lengths[i : i + GROUP_EPISODES].sum()) for i in range(0, count, GROUP_EPISODES)]
        chunk, part = divmod(self.parts, 1000)
        metadata = {"huggingface": json.dumps({"info": {"features": _arrow_features(columns)}})}
        data = parquet.encode(columns, groups=groups, metadata=metadata, statistics=("episode_index",), typed=True)
        _put(self.folder / "data" / f"chunk-{chunk:03d}" / f"file-{part:03d}.parquet", data)
        where = {"length": block.lengths, "from": first + self.frames, "to": first + block.lengths + self.frames}
        where |= {"chunk": np.full(count, chunk), "file": np.full(count, part)}
        self.meta.append({name: values.astype(np.int64) for name, values in where.items()})
        table = shard.table(block, self.header)
        self.aside.append({name: cells for name, cells in table.items() if name != "first_row"})
        self.aside[-1]["last"] = block.rows[ends]
        self.episodes, self.frames, self.parts = self.episodes + count, self.frames + frames, self.parts + 1

    def finish(self) -> None:
        """Write what tells of the whole; `info.json` comes last, for without it there is no dataset."""
        meta = {name: np.concatenate([part[name] for part in self.meta]) for name in self.meta[0]}
        zeros = np.zeros(self.episodes, np.int64)
        table: dict[str, parquet.Cells] = {
            "episode_index": np.arange(self.episodes),
            "tasks": [[self.task]] * self.episodes,
            "length": meta["length"],
            "data/chunk_index": meta["chunk"],
            "data/file_index": meta["file"],
            "dataset_from_index": meta["from"],
            "dataset_to_index": meta["to"],
            "meta/episodes/chunk_index": zeros,
            "meta/episodes/file_index": zeros,
        }
        _put(self.folder / "meta/episodes/chunk-000/file-000.parquet", parquet.encode(table))
        tasks: dict[str, parquet.Cells] = {"task_index": np.zeros(1, np.int64), "__index_level_0__": [self.task]}
        _put(self.folder / "meta/tasks.parquet", parquet.encode(tasks, metadata={"pandas": PANDAS}))
        stats = {name: sums.stats() for name, sums in self.sums.items()}
        _put(self.folder / "meta/stats.json", json.dumps(stats, indent=1).encode())
        aside: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self.aside])
            if isinstance(self.aside[0][name], np.ndarray)
            else [cell for part in self.aside for cell in part[name]]
            for name in self.aside[0]
        }
        _put(self.folder / SIDECAR / "episodes.parquet", parquet.encode(aside, typed=True))
        _put(self.folder / SIDECAR / "header.json", files.seal(self.header.body()))
        _put(self.folder / "meta/info.json", json.dumps(self._info(), indent=1).encode())

    def _info(self) -> dict[str, object]:
        rate = 1 / self.header.control_dt_s
        described: dict[str, object] = {
            each.name: {"dtype": "float32", "shape": [len(each.where)], "names": list(each.labels)}
            for each in self.features
        }
        kinds = {"next.done": "bool", "next.success": "bool", "timestamp": "float32"}
        for name in self.sums:
            described.setdefault(name, {"dtype": kinds.get(name, "int64"), "shape": [1], "names": None})
        return {
            "codebase_version": VERSION,
            "robot_type": None,
            "total_episodes": self.episodes,
            "total_frames": self.frames,
            "total_tasks": 1,
            "chunks_size": 1000,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": round(rate) if abs(rate - round(rate)) < 1e-6 * rate else rate,
            "splits": {"train": f"0:{self.episodes}"},
            "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
            "video_path": None,
            "features": described,
        }


@final
class _Sums:
    """Statistics of one column, gathered part by part."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.square = np.zeros(1)
        self.low = self.high = np.zeros(1)
        self.sample: list[Array] = []

    def add(self, values: Array, first: int, stride: int) -> None:
        """Take in the rows from `first` on; every `stride`-th joins the sample."""
        rows = values.reshape(len(values), -1)
        rows = rows.astype(np.int8) if rows.dtype == bool else rows
        mean, low, high = rows.mean(0, dtype=np.float64), rows.min(0), rows.max(0)
        square = rows.var(0, dtype=np.float64) * len(rows)
        total = self.count + len(rows)
        gap = mean - self.mean if self.count else np.zeros_like(mean)
        self.square = (self.square if self.count else 0) + square + gap**2 * self.count * len(rows) / total
        self.mean = self.mean + gap * len(rows) / total if self.count else mean
        self.low = np.minimum(self.low, low) if self.count else low
        self.high = np.maximum(self.high, high) if self.count else high
        self.count = total
        self.sample.append(rows[(-first) % stride :: stride])

    def stats(self) -> dict[str, list[float]]:
        """What `stats.json` says of the column."""
        at = np.quantile(np.concatenate(self.sample).astype(np.float64), list(QUANTILES.values()), axis=0)
        return {
            "min": self.low.tolist(),
            "max": self.high.tolist(),
            "mean": self.mean.tolist(),
            "std": np.sqrt(self.square / self.count).tolist(),
            "count": [self.count],
            **dict(zip(QUANTILES, at.tolist(), strict=True)),
        }


PANDAS = json.dumps(
    {
        "index_columns": ["__index_level_0__"],
        "column_indexes": [],
        "columns": [
            {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"},
            {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"},
        ],
        "pandas_version": "2.3.3",
    }
)
"""Tells pandas that the task's words are the index, as LeRobot wants it."""


def _arrow_features(columns: dict[str, Array]) -> dict[str, object]:
    def one(values: Array) -> dict[str, object]:
        value: dict[str, object] = {"dtype": str(values.dtype), "_type": "Value"}
        return value if values.ndim == 1 else {"feature": value, "length": values.shape[1], "_type": "List"}

    return {name: one(values) for name, values in columns.items()}


def _put(path: Path, data: bytes | memoryview) -> None:
    files.make_folder(path.parent)
    files.publish(path, data)
