"""Read LeRobot v3 and v2.1 into a dataset: our own exports without loss, others as far as they tell.

Nothing of a foreign dataset is trusted: paths are found by looking, sizes are capped, and every episode's
frames must be consecutive. What it does not tell (units, executed action, params, seeds) stays unknown and
is not filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, final

import numpy as np

from simops.core.errors import DataError, SignalError
from simops.core.params import Params
from simops.core.signal import Array, Schema, Signal
from simops.core.trajectory import OUTCOMES, Block, Origin, Provenance
from simops.data import files, parquet, shard
from simops.data.header import Header
from simops.data.lerobot import SIDECAR, features
from simops.data.writer import Writer

VERSIONS = ("v3.0", "v2.1")
UNKNOWN = "unknown"
JSON_BYTES = 64 * 2**20
TABLE_BYTES = 2 * 2**30
"""What one file may take in memory."""
BATCH_ROWS = 65536
_KEYS = ("timestamp", "frame_index", "episode_index", "index", "task_index")
_FLAGS = ("next.done", "next.success")
_NUMBERS = {"float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"}

Watch: TypeAlias = Callable[[int, int], None]


@final
@dataclass(frozen=True)
class Imported:
    """What an import kept."""

    episodes: int
    frames: int
    notes: tuple[str, ...]
    """What was left out or is unknown."""


def adopt(source: Path | str, out: Path | str, *, origin: Origin | None = None, watch: Watch | None = None) -> Imported:
    """Read the LeRobot dataset at `source` into the dataset `out`; `origin` says where foreign data comes from."""
    folder = Path(source)
    info = _json(folder / "meta/info.json")
    version = info.get("codebase_version")
    if version not in VERSIONS:
        known = " and ".join(VERSIONS)
        raise DataError(f"LeRobot {version} is not known here, only {known}", where=str(folder), fault="DAT-012")
    if (folder / SIDECAR / "header.json").is_file():
        return _return(folder, Path(out), watch)
    if origin is None:
        raise DataError("a foreign dataset does not say where it comes from", attempt="--origin robot, or --origin sim")
    try:
        foreign = _Foreign(folder, info, origin)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        what = f"info.json is not what LeRobot writes: {type(error).__name__} {error}"
        raise DataError(what, where=str(folder / "meta"), fault="DAT-007") from error
    return foreign.adopt(Path(out), watch)


def _return(folder: Path, out: Path, watch: Watch | None) -> Imported:
    """Bring an export of ours back, bit for bit."""
    header = Header.parse(files.unseal(folder / SIDECAR / "header.json"), folder)
    aside = parquet.decode(_bytes(folder / SIDECAR / "episodes.parquet"))
    paths = _tables(folder)
    with Writer.resume(out, header) as writer:
        for done, path in enumerate(paths):
            if watch is not None:
                watch(done, len(paths))
            table = parquet.decode(_bytes(path))
            numbers, counts = _episodes_of(table, path)
            part: dict[str, Any] = {
                name: cells[numbers] if isinstance(cells, np.ndarray) else [cells[i] for i in numbers.tolist()]
                for name, cells in aside.items()
            }
            if not np.array_equal(part["steps"], counts):
                raise DataError(
                    f"{path.name} has other episodes than its sidecar says", where=str(path), fault="DAT-005"
                )
            rows = np.empty((int((counts + 1).sum()), header.schema.size), np.float32)
            ends = np.cumsum(counts + 1) - 1
            acted = np.ones(len(rows), bool)
            acted[ends] = False
            for each in features(header.schema):
                rows[np.ix_(acted, each.where)] = np.asarray(table[each.name], np.float32).reshape(acted.sum(), -1)
            rows[ends] = part["last"]
            block = shard.decode(part, rows, header)
            if shard.digests(block) != part["digest"]:
                raise DataError(f"{path.name} is not what was exported", where=str(path), fault="DAT-003")
            writer.append(block)
        kept = writer.dataset
    return Imported(len(kept), sum(one.rows for one in kept.shards) - len(kept), ())


@final
class _Foreign:
    """A LeRobot dataset that somebody else made."""

    def __init__(self, folder: Path, info: dict[str, Any], origin: Origin) -> None:
        self.folder, self.info = folder, info
        self.columns: dict[str, Signal] = {}
        self.notes: list[str] = []
        for name, told in cast("dict[str, dict[str, Any]]", info["features"]).items():
            if name in _KEYS or name in _FLAGS:
                continue
            if told["dtype"] not in _NUMBERS:
                self.notes.append(f"{name} left out: {told['dtype']}")
                continue
            if told["dtype"] != "float32":
                self.notes.append(f"{name} narrowed from {told['dtype']} to float32")
            self.columns[name] = _signal(name, told)
        if "action" not in self.columns:
            raise DataError("the dataset has no action", where=str(folder), fault="DAT-008")
        tasks = _tasks(folder)
        if len(tasks) > 1:
            self.columns["task_index"] = Signal("task_index")
            self.notes.append(f"{len(tasks)} tasks: the signal task_index tells them apart")
        self.header = Header(
            schema=_schema(list(self.columns.values())),
            provenance=Provenance(
                engine=UNKNOWN,
                simulator=UNKNOWN,
                task="; ".join(tasks)[:1000] or UNKNOWN,
                policy=UNKNOWN,
                seed=0,
                origin=origin,
                packages=(f"lerobot {info['codebase_version']}",),
            ),
            control_dt_s=1 / float(info["fps"]),
            terms=("reward",) if "next.reward" in self.columns else (),
        )

    def adopt(self, out: Path, watch: Watch | None) -> Imported:
        """Keep every episode that has a step."""
        frames, left, judged = 0, 0, "next.success" in self.info["features"]
        with Writer.resume(out, self.header) as writer:
            for table in self._batches(watch):
                numbers, counts = _episodes_of(table, self.folder)
                frames += int(counts.sum())
                left += int((counts < 2).sum())
                block = self._block(table, numbers, counts)
                writer.append(shard.pick(block, np.flatnonzero(counts >= 2)))
            kept = writer.dataset
        told = self.info.get("total_frames"), self.info.get("total_episodes")
        if told != (frames, len(kept) + left):
            what = f"it has {frames} frames of {len(kept) + left} episodes and says {told[0]} of {told[1]}"
            raise DataError(what, where=str(self.folder), attempt="the whole of it", fault="DAT-005")
        notes = [*self.notes, "units unknown", "each episode's last action and reward left out: no state follows"]
        notes += [f"{left} episodes of one frame left out"] if left else []
        notes += [] if judged else ["no next.success: every episode counts as 'timeout'"]
        return Imported(len(kept), frames, tuple(notes))

    def _batches(self, watch: Watch | None) -> Iterator[dict[str, Array]]:
        """Whole episodes, about `BATCH_ROWS` rows at a time, however they lie in files."""
        flags = [name for name in _FLAGS if name in self.info["features"]]
        keys = [name for name in _KEYS[:3] if name in self.info["features"]]
        wanted = [*self.columns, *flags, *keys, *(["task_index"] if "task_index" in self.columns else [])]
        yield from _batches(self.folder, tuple(dict.fromkeys(wanted)), watch)

    def _block(self, table: dict[str, Array], numbers: Array, counts: Array) -> Block:
        rows = np.concatenate(
            [table[name].reshape(len(table[name]), -1).astype(np.float32) for name in self.columns], axis=1
        )
        last = np.cumsum(counts) - 1
        reward = np.zeros(len(numbers))
        for name in ("action", "reward"):
            if name in self.header.schema:
                rows[last, self.header.schema.slices[name]] = np.nan
        if self.header.terms:
            sums: Array = rows[:, self.header.schema.slices["reward"].start].astype(np.float64)
            sums[last] = 0
            reward = np.add.reduceat(sums, last - counts + 1)
        success = np.zeros(len(numbers), bool)
        if "next.success" in table:
            success = np.logical_or.reduceat(table["next.success"].reshape(-1).astype(bool), last - counts + 1)
        outcome = np.where(success, OUTCOMES.index("success"), OUTCOMES.index("timeout")).astype(np.int8)
        return Block(
            schema=self.header.schema,
            rows=rows,
            episodes=numbers.astype(np.int64),
            seeds=np.zeros(len(numbers), np.uint64),
            lengths=counts - 1,
            outcomes=outcome,
            params=Params((), np.zeros((len(numbers), 0))),
            scores={"reward": reward} if self.header.terms else {},
            provenance=self.header.provenance,
        )


@final
@dataclass(frozen=True)
class Told:
    """What a LeRobot dataset says of itself."""

    fps: float
    robot: str
    signals: Mapping[str, Signal]
    """Each feature of numbers, by its name in the files."""
    tasks: tuple[str, ...]
    notes: tuple[str, ...]

    def task(self, table: Mapping[str, Array]) -> str:
        """The instruction of an episode, as its first frame names it."""
        index = int(np.asarray(table["task_index"]).reshape(-1)[0]) if "task_index" in table else 0
        return self.tasks[index] if 0 <= index < len(self.tasks) else UNKNOWN


def told(folder: Path) -> Told:
    """Read what a dataset says of itself; raises where this is none that is known."""
    info = _json(folder / "meta/info.json")
    if info.get("codebase_version") not in VERSIONS:
        what = f"LeRobot {info.get('codebase_version')} is not known here, only {' and '.join(VERSIONS)}"
        raise DataError(what, where=str(folder), fault="DAT-012")
    try:
        features = cast("dict[str, dict[str, Any]]", info["features"])
        kept = {n: t for n, t in features.items() if n not in (*_KEYS, *_FLAGS) and t["dtype"] in _NUMBERS}
        left = [n for n in features if n not in (*_KEYS, *_FLAGS, *kept)]
        signals = {name: _signal(name, said) for name, said in kept.items()}
        notes = tuple(f"{name} left out: {features[name]['dtype']}" for name in left)
        tasks = tuple(_tasks(folder))
        return Told(float(info["fps"]), str(info.get("robot_type") or ""), signals, tasks, notes)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"info.json is not what LeRobot writes: {type(error).__name__} {error}"
        raise DataError(what, where=str(folder / "meta"), fault="DAT-007") from error


def episodes(folder: Path, said: Told) -> Iterator[dict[str, Array]]:
    """The columns of each episode, in order; frames must be consecutive."""
    here = parquet.kinds(_bytes(_tables(folder)[0]))
    keys = [name for name in ("timestamp", "frame_index", "task_index") if name in here]
    for table in _batches(folder, (*said.signals, *keys, "episode_index"), None):
        _, counts = _episodes_of(table, folder)
        ends = np.cumsum(counts)
        for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True):
            yield {name: cells[start:end] for name, cells in table.items()}


def _batches(folder: Path, names: tuple[str, ...], watch: Watch | None) -> Iterator[dict[str, Array]]:
    """Whole episodes, about `BATCH_ROWS` rows at a time, however they lie in files."""
    waiting: list[dict[str, Array]] = []
    paths = _tables(folder)
    for done, path in enumerate(paths):
        if watch is not None:
            watch(done, len(paths))
        waiting.append(_columns(path, names))
        if sum(len(part["episode_index"]) for part in waiting) < BATCH_ROWS and done + 1 < len(paths):
            continue
        whole = {name: np.concatenate([part[name] for part in waiting]) for name in names}
        number: Array = whole["episode_index"]
        cut = len(number) if done + 1 == len(paths) else int((number < number[-1]).sum())
        waiting = [{name: cells[cut:] for name, cells in whole.items()}]
        if cut:
            yield {name: cells[:cut] for name, cells in whole.items()}


def _tasks(folder: Path) -> list[str]:
    lines = folder / "meta/tasks.jsonl"
    if lines.is_file():
        return [str(json.loads(line)["task"]) for line in _text(lines).splitlines() if line.strip()]
    table = folder / "meta/tasks.parquet"
    if table.is_file():
        words = [cells for cells in parquet.decode(_bytes(table)).values() if not isinstance(cells, np.ndarray)]
        return [str(word) for word in words[0]] if words else []
    return []


def _signal(name: str, told: dict[str, Any]) -> Signal:
    shape = tuple(int(n) for n in told["shape"])
    shape = () if shape == (1,) else shape
    labels = tuple(re.sub(r"\W", "_", label) for label in _flat(told.get("names")))
    plain = "reward" if name == "next.reward" else re.sub(r"\W", "_", name)
    fits = shape and len(set(labels)) == len(labels) == int(np.prod(shape))
    return Signal(plain, shape, UNKNOWN, labels=labels if fits else ())


def _flat(names: object) -> list[str]:
    """Names of elements, however deep somebody put them."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, dict):
        return [label for part in cast("dict[str, object]", names).values() for label in _flat(part)]
    if isinstance(names, list):
        return [label for part in cast("list[object]", names) for label in _flat(part)]
    return []


def _schema(signals: list[Signal]) -> Schema:
    try:
        return Schema(tuple(signals))
    except SignalError:  # labels that clash with another signal's name
        return Schema(tuple(replace(signal, labels=()) for signal in signals))


def _tables(folder: Path) -> list[Path]:
    root = (folder / "data").resolve()
    found = sorted((folder / "data").glob("chunk-*/*.parquet"))
    stray = [path for path in found if not path.resolve().is_relative_to(root)]
    if stray:
        raise DataError(f"{stray[0]} leads outside the dataset", where=str(folder), fault="SEC-010")
    if not found:
        raise DataError("the dataset has no data", where=str(folder), fault="DAT-004")
    return found


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, Array]:
    data = _bytes(path)
    absent = [name for name in names if name not in parquet.kinds(data)]
    if absent:
        raise DataError(f"{path.name} has no column {absent[0]!r}", where=str(path), fault="DAT-008")
    table = parquet.decode(data, names)
    odd = [name for name, cells in table.items() if not isinstance(cells, np.ndarray)]
    if odd:
        raise DataError(f"{path.name}: {odd[0]} is not numbers", where=str(path), fault="DAT-007")
    return table


def _episodes_of(table: dict[str, Any], path: Path) -> tuple[Array, Array]:
    """Numbers and frames of the episodes of a table, which must be whole and in order."""
    number = np.asarray(table["episode_index"]).reshape(-1)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(number) != 0])) if len(number) else np.zeros(0, int)
    counts = np.diff(np.concatenate([starts, [len(number)]]))
    numbers = number[starts]
    frame = np.asarray(table.get("frame_index", ())).reshape(-1)
    wanted = np.arange(len(number)) - np.repeat(starts, counts)
    if len(frame) and not np.array_equal(frame, wanted):
        row = int(np.flatnonzero(frame != wanted)[0])
        what = f"episode {number[row]} has frame {frame[row]} where {wanted[row]} should be"
        raise DataError(what, where=str(path), fault="DAT-006")
    if np.any(np.diff(numbers) <= 0):
        raise DataError("episodes are not in order", where=str(path), fault="DAT-006")
    return numbers, counts


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path.name} is missing", where=str(path), fault="DAT-004")
    if path.stat().st_size > TABLE_BYTES:
        raise DataError(f"{path.name} is too large to read", where=str(path), fault="SEC-010")
    data = path.read_bytes()
    if parquet.weight(data) > TABLE_BYTES:
        raise DataError(f"{path.name} would take more than {files.size(TABLE_BYTES)}", where=str(path), fault="SEC-010")
    return data


def _text(path: Path) -> str:
    if not path.is_file():
        raise DataError(f"{path.name} is missing", where=str(path), attempt="the folder above meta/", fault="DAT-004")
    if path.stat().st_size > JSON_BYTES:
        raise DataError(f"{path.name} is too large to read", where=str(path), fault="SEC-010")
    return path.read_text(encoding="utf-8")


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path.name} is not JSON: {error}", where=str(path), fault="DAT-003") from error
    if not isinstance(value, dict):
        raise DataError(f"{path.name} is not a table of keys", where=str(path), fault="DAT-003")
    return cast("dict[str, Any]", value)
