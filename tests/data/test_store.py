"""What is kept comes back bit for bit, once, whole, and only if the recipe is the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from simops.core.errors import BusyError, DataError, SpaceError
from simops.core.trajectory import OUTCOMES, Block, Trajectory, shown
from simops.data import files
from simops.data.shard import pick
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block
from tests.strategies import blocks

if TYPE_CHECKING:
    from simops.core.signal import Array

DIVERGED = OUTCOMES.index("diverged")


def mended(block: Block) -> Block:
    """Finite wherever a dataset wants it; whatever may be odd stays odd."""
    ends = block.starts + block.lengths
    free = np.zeros(block.rows.shape, bool)
    for name, where in block.schema.slices.items():
        if name in {"action", "executed", "reward"} or name.startswith(shown("")):
            free[ends, where] = True
    free[ends[block.outcomes == DIVERGED]] = True
    rows = np.where(free | np.isfinite(block.rows), block.rows, np.float32(-0.0))
    return dataclasses.replace(block, rows=rows)


def bits(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def assert_same(one: Block, other: Block) -> None:
    for name in ("rows", "episodes", "seeds", "lengths", "outcomes"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), name
        assert bits(mine) == bits(theirs), name
    assert (one.schema, one.scenarios) == (other.schema, other.scenarios)
    assert one.provenance == other.provenance
    assert one.params.names == other.params.names
    assert bits(one.params.values) == bits(other.params.values)
    assert {name: bits(v) for name, v in one.scores.items()} == {name: bits(v) for name, v in other.scores.items()}


def assert_same_trajectory(one: Trajectory, other: Trajectory) -> None:
    assert dataclasses.replace(one, columns={}) == dataclasses.replace(other, columns={})
    for name in one.schema.names:
        assert one[name].shape == other[name].shape
        assert bits(one[name]) == bits(other[name]), name


@given(blocks())
def test_disk_changes_nothing(block: Block) -> None:
    block = mended(block)
    with TemporaryDirectory() as folder:
        with Writer.create(Path(folder) / "set", header_of(block)) as writer:
            writer.append(block)
        dataset = Dataset.open(Path(folder) / "set")
        [again] = dataset.blocks()
        assert dataset.header == header_of(block)
        assert_same(block, again)
        for one in block:
            assert_same_trajectory(one, dataset.trajectory(one.episode))


def test_rows_beyond_one_group_find_their_episode(tmp_path: Path) -> None:
    block = made_block(400, steps=99)
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        writer.append(block)
    dataset = Dataset.open(tmp_path / "set")
    for i in (0, 163, 164, 399):
        assert_same_trajectory(block.trajectory(i), dataset.trajectory(i))


def test_arrays_are_columns_of_the_episodes_asked_for(tmp_path: Path) -> None:
    block = made_block(9, steps=4)
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        writer.append(pick(block, np.arange(5)))
        writer.append(pick(block, np.arange(5, 9)))
    dataset = Dataset.open(tmp_path / "set")
    found = dataset.arrays(["reward"], episodes=np.array([2, 7]))
    assert found["episode"].tolist() == [2] * 5 + [7] * 5
    assert found["step"].tolist() == [0, 1, 2, 3, 4] * 2
    want = np.concatenate([block.trajectory(2)["reward"], block.trajectory(7)["reward"]])
    assert bits(found["reward"]) == bits(want)
    wins = {int(e) for e, o in zip(block.episodes, block.outcomes, strict=True) if OUTCOMES[o] == "success"}
    assert set(dataset.arrays(["reward"], outcomes=["success"])["episode"].tolist()) == wins
    assert len(dataset.arrays(["reward"], episodes=np.array([77]))["reward"]) == 0


def test_a_pass_resumes_where_it_stopped_and_keeps_each_episode_once(tmp_path: Path) -> None:
    block = made_block(10)
    with Writer.resume(tmp_path / "set", header_of(block)) as writer:
        writer.append(pick(block, np.array([1, 2, 5])))
        assert writer.missing(range(8)).tolist() == [0, 3, 4, 6, 7]
    with Writer.resume(tmp_path / "set", header_of(block)) as writer:
        assert writer.notices == ()
        again = writer.append(pick(block, np.array([1, 5])))  # a retry: nothing new
        assert (again.number, len(writer.dataset.shards)) == (0, 1)
        writer.append(block)  # seven of ten are new
        assert writer.missing(range(10)).tolist() == []
    dataset = Dataset.open(tmp_path / "set")
    assert [each.count for each in dataset.shards] == [3, 7]
    assert sorted(dataset.episodes()["episode"].tolist()) == list(range(10))


def test_content_has_one_digest_however_it_is_cut(tmp_path: Path) -> None:
    block = made_block(6)
    with Writer.create(tmp_path / "whole", header_of(block)) as writer:
        writer.append(block)
    with Writer.create(tmp_path / "cut", header_of(block)) as writer:
        writer.append(pick(block, np.array([3, 4, 5])))
        writer.append(pick(block, np.array([0, 1, 2])))
    with Writer.create(tmp_path / "fewer", header_of(block)) as writer:
        writer.append(pick(block, np.array([0, 1])))
    whole, cut, fewer = (Dataset.open(tmp_path / name).digest() for name in ("whole", "cut", "fewer"))
    assert whole == cut
    assert whole != fewer


def test_the_same_blocks_make_the_same_bytes(tmp_path: Path) -> None:
    block = made_block(6)
    for name in ("a", "b"):
        with Writer.create(tmp_path / name, header_of(block)) as writer:
            writer.append(block)
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file() and path.name != "lock":
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes(), path


def test_another_episode_of_the_same_number_is_refused(tmp_path: Path) -> None:
    block = made_block(4)
    rows = block.rows.copy()
    rows[0, 0] += 1
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        writer.append(block)
        with pytest.raises(DataError, match="episode 0 is there already, and is another") as caught:
            writer.append(dataclasses.replace(block, rows=rows))
    assert caught.value.fault == "DAT-011"
    assert len(Dataset.open(tmp_path / "set")) == 4


def test_another_recipe_is_refused_with_what_differs(tmp_path: Path) -> None:
    block = made_block(2)
    header = header_of(block)
    Writer.create(tmp_path / "set", header).close()
    changed = dataclasses.replace(block.provenance, seed=99)
    other = dataclasses.replace(header, provenance=changed, belief="wider", lock="copies: 2\n")
    with pytest.raises(DataError) as caught:
        Writer.resume(tmp_path / "set", other)
    assert caught.value.fault == "CFG-008"
    assert "belief was '' and is now 'wider'" in str(caught.value)
    assert "lock" not in str(caught.value)  # how it was run is no part of what it is
    assert "provenance.seed was 0 and is now 99" in str(caught.value)
    with Writer.resume(tmp_path / "set", header) as writer, pytest.raises(DataError, match="another recipe"):
        writer.append(dataclasses.replace(block, provenance=changed))


def test_a_dataset_is_begun_only_where_there_is_nothing(tmp_path: Path) -> None:
    block = made_block(1)
    Writer.create(tmp_path / "set", header_of(block)).close()
    with pytest.raises(DataError, match="holds a dataset already"):
        Writer.create(tmp_path / "set", header_of(block))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(DataError, match=r"holds thesis\.tex"):
        Writer.resume(tmp_path / "other", header_of(block))
    with pytest.raises(DataError, match="is not a dataset"):
        Dataset.open(tmp_path / "other")


def test_there_is_one_writer_at_a_time(tmp_path: Path) -> None:
    block = made_block(1)
    with Writer.create(tmp_path / "set", header_of(block)):
        with pytest.raises(BusyError, match="is being written by process") as caught:
            Writer.resume(tmp_path / "set", header_of(block))
        assert caught.value.fault == "DAT-010"
        assert len(Dataset.open(tmp_path / "set")) == 0  # readers do not mind
    Writer.resume(tmp_path / "set", header_of(block)).close()


def test_a_closed_writer_writes_nothing(tmp_path: Path) -> None:
    block = made_block(1)
    writer = Writer.create(tmp_path / "set", header_of(block))
    writer.close()
    with pytest.raises(DataError, match="closed"):
        writer.append(block)


@pytest.mark.parametrize(
    ("row", "column", "outcome", "fine"),
    [
        (1, "angle", "timeout", False),
        (1, "reward", "timeout", False),
        (-1, "angle", "timeout", False),
        (-1, "reward", "timeout", True),
        (-1, "shown_angle", "timeout", True),
        (-1, "angle", "diverged", True),
        (-2, "reward", "diverged", True),
        (-2, "action", "diverged", True),
        (-2, "angle", "diverged", False),
        (-3, "reward", "diverged", False),
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_may_be_missing_only_where_an_episode_ends(
    tmp_path: Path, row: int, column: str, outcome: str, value: float, *, fine: bool
) -> None:
    block = made_block(3, steps=5)
    rows = block.rows.copy()
    first = int(block.starts[1])
    rows[first + row % 6, block.schema.slices[column]] = value
    outcomes = np.array([0, [*OUTCOMES].index(outcome), 1], np.int8)
    odd = dataclasses.replace(block, rows=rows, outcomes=outcomes)
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        if fine:
            writer.append(odd)
            return
        with pytest.raises(DataError, match=f"episode 1, step {row % 6}: {column} is {value}") as caught:
            writer.append(odd)
    assert caught.value.fault == "DAT-007"
    assert len(Dataset.open(tmp_path / "set")) == 0


def test_a_block_of_another_kind_is_refused(tmp_path: Path) -> None:
    block = made_block(3)
    params = dataclasses.replace(block.params, names=("weight", "mass"))
    strange = [
        dataclasses.replace(block, rows=block.rows[:-1]),
        dataclasses.replace(block, rows=block.rows.astype(np.float64)),
        dataclasses.replace(block, params=params),
        dataclasses.replace(block, scores={"reward": block.scores["reward"]}),
        dataclasses.replace(block, scores={name: values * np.nan for name, values in block.scores.items()}),
        dataclasses.replace(block, episodes=np.zeros(3, np.int64)),
    ]
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        for odd in strange:
            with pytest.raises(DataError) as caught:
                writer.append(odd)
            assert caught.value.fault == "DAT-007"


def nearly_full(_: Path) -> SimpleNamespace:
    return SimpleNamespace(free=1000)


def test_a_full_disk_says_what_is_needed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = made_block(3)
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        monkeypatch.setattr(files.shutil, "disk_usage", nearly_full)
        with pytest.raises(SpaceError, match=r"shard-000000 needs .* kB, 1\.0 kB are free") as caught:
            writer.append(block)
        monkeypatch.undo()
        assert caught.value.fault == "DAT-009"
        assert list((tmp_path / "set" / "steps").iterdir()) == []
        writer.append(block)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    block = made_block(1)
    header = header_of(block)
    Writer.create(tmp_path / "set", header).close()
    files.publish(tmp_path / "set" / "dataset.json", files.seal(header.body() | {"format": 2, "colour": "blue"}))
    with pytest.raises(DataError, match="format 2 is not known") as caught:
        Dataset.open(tmp_path / "set")
    assert caught.value.fault == "DAT-012"
