"""LeRobot's layout out and in: ours comes back bit for bit, others as far as they tell."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from simops.core.errors import DataError
from simops.core.signal import Schema, Signal
from simops.core.trajectory import OUTCOMES, Block
from simops.data import lerobot, parquet
from simops.data.lerobot_read import adopt
from simops.data.shard import pick
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block
from tests.data.test_store import assert_same, mended
from tests.strategies import blocks

DIVERGED = OUTCOMES.index("diverged")


def kept(folder: Path, *parts: Block) -> Path:
    with Writer.create(folder, header_of(parts[0])) as writer:
        for part in parts:
            writer.append(part)
    return folder


@given(blocks())
@settings(max_examples=15)
def test_out_and_back_changes_nothing(block: Block) -> None:
    block = mended(block)
    sound = np.flatnonzero(block.outcomes != DIVERGED)
    with TemporaryDirectory() as name:
        folder = Path(name)
        kept(folder / "set", block)
        if not len(sound):
            with pytest.raises(DataError, match="no episode to export"):
                lerobot.export(folder / "set", folder / "out")
            return
        done = lerobot.export(folder / "set", folder / "out")
        back = adopt(folder / "out", folder / "back")
        assert (done.episodes, back.episodes) == (len(sound), len(sound))
        assert done.frames == back.frames == int(block.lengths[sound].sum())
        [again] = Dataset.open(folder / "back").blocks()
        assert_same(pick(block, sound), again)


def test_the_layout_is_lerobots(tmp_path: Path) -> None:
    block = made_block(70, steps=4)
    outcomes = block.outcomes.copy()
    outcomes[5] = DIVERGED
    block = dataclasses.replace(block, outcomes=outcomes)
    kept(tmp_path / "set", pick(block, np.arange(66)), pick(block, np.arange(66, 70)))
    done = lerobot.export(tmp_path / "set", tmp_path / "out", task="sway gently")
    assert done.notes == ("1 episodes left out: they ended otherwise than success, failure, timeout",)
    info: dict[str, Any] = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert (info["codebase_version"], info["fps"], info["total_episodes"], info["total_frames"]) == (
        "v3.0",
        50,
        69,
        276,
    )
    shapes = {name: told["shape"] for name, told in info["features"].items()}
    assert shapes["observation.state"] == [4]  # gyro, and the angle as it was shown
    assert info["features"]["observation.state"]["names"] == ["gyro_0", "gyro_1", "gyro_2", "shown_angle"]
    assert info["features"]["privileged.state"]["names"] == ["angle"]
    assert (shapes["action"], shapes["executed_action"], shapes["next.reward"]) == ([2], [2], [1])
    table = parquet.decode((tmp_path / "out/data/chunk-000/file-000.parquet").read_bytes())
    assert list(table) == list(info["features"])
    assert table["episode_index"][[0, -1]].tolist() == [0, 64]
    assert table["frame_index"][:6].tolist() == [0, 1, 2, 3, 0, 1]
    assert table["next.done"].reshape(-1, 4)[:, :3].sum() == 0
    assert table["next.success"].reshape(-1, 4)[:, 3].tolist() == (np.delete(outcomes[:66], 5) == 0).tolist()
    rows = block.trajectory(0)
    np.testing.assert_array_equal(table["privileged.state"][:4], rows["angle"][:4])
    np.testing.assert_array_equal(table["observation.state"][:4, 3], rows["shown_angle"][:4])
    later = parquet.decode((tmp_path / "out/data/chunk-000/file-001.parquet").read_bytes())
    assert (later["episode_index"][0], later["index"][0]) == (65, 260)
    meta = parquet.decode((tmp_path / "out/meta/episodes/chunk-000/file-000.parquet").read_bytes())
    assert meta["dataset_to_index"][-1] == 276
    assert meta["data/file_index"].tolist() == [0] * 65 + [1] * 4
    assert meta["tasks"][0] == ["sway gently"]
    tasks = (tmp_path / "out/meta/tasks.parquet").read_bytes()
    assert lerobot.PANDAS.encode() in tasks  # what makes the words the index of the frame
    assert parquet.decode(tasks)["__index_level_0__"] == ["sway gently"]


def test_statistics_are_those_of_the_whole(tmp_path: Path) -> None:
    block = made_block(30, steps=6)
    kept(tmp_path / "set", pick(block, np.arange(7)), pick(block, np.arange(7, 30)))
    lerobot.export(tmp_path / "set", tmp_path / "out")
    stats: dict[str, Any] = json.loads((tmp_path / "out/meta/stats.json").read_text())
    action = np.concatenate([one["action"][:-1] for one in block]).astype(np.float64)
    want = {"min": action.min(0), "max": action.max(0), "mean": action.mean(0), "std": action.std(0)}
    want |= {name: np.quantile(action, q, axis=0) for name, q in lerobot.QUANTILES.items()}
    for name, values in want.items():
        np.testing.assert_allclose(stats["action"][name], values, rtol=1e-9, err_msg=name)
    assert stats["action"]["count"] == [180]
    assert stats["next.done"]["mean"] == [pytest.approx(1 / 6)]


def test_an_export_goes_to_a_folder_of_its_own(tmp_path: Path) -> None:
    kept(tmp_path / "set", made_block(2))
    lerobot.export(tmp_path / "set", tmp_path / "out")
    with pytest.raises(DataError, match="not empty"):
        lerobot.export(tmp_path / "set", tmp_path / "out")


def test_an_export_without_actions_is_refused(tmp_path: Path) -> None:
    block = made_block(1)
    still = Schema((Signal("angle"),))
    bare = dataclasses.replace(block, schema=still, rows=np.ascontiguousarray(block.rows[:, :1]))
    kept(tmp_path / "set", bare)
    with pytest.raises(DataError, match="no signal 'action'"):
        lerobot.export(tmp_path / "set", tmp_path / "out")


def test_a_changed_export_does_not_come_back(tmp_path: Path) -> None:
    kept(tmp_path / "set", made_block(3))
    lerobot.export(tmp_path / "set", tmp_path / "out")
    path = tmp_path / "out/data/chunk-000/file-000.parquet"
    table = parquet.decode(path.read_bytes())
    table["action"] = table["action"] + np.float32(1e-3)
    path.write_bytes(parquet.encode(table, typed=True))
    with pytest.raises(DataError, match="not what was exported") as caught:
        adopt(tmp_path / "out", tmp_path / "back")
    assert caught.value.fault == "DAT-003"


NAMES = [["hip", "knee", "ankle"]]


def foreign(folder: Path, lengths: tuple[int, ...] = (6, 4, 9)) -> tuple[Path, list[dict[str, Any]]]:
    """A v2.1 dataset as somebody else would have written it: a file an episode, tasks in JSON lines."""
    chance, tables = np.random.default_rng(3), list[dict[str, Any]]()
    for number, length in enumerate(lengths):
        table: dict[str, Any] = {
            "observation.state": chance.normal(size=(length, 3)).astype(np.float32),
            "action": chance.normal(size=(length, 3)).astype(np.float32),
            "next.reward": chance.normal(size=length).astype(np.float32),
            "next.success": np.arange(length) + number == length,
            "timestamp": (np.arange(length) / 30).astype(np.float32),
            "frame_index": np.arange(length),
            "episode_index": np.full(length, number),
            "task_index": np.zeros(length, np.int64),
        }
        path = folder / f"data/chunk-000/episode_{number:06d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(parquet.encode(table, typed=True))
        tables.append(table)
    vector = {"dtype": "float32", "shape": [3], "names": NAMES}
    scalar: dict[str, Any] = {"dtype": "int64", "shape": [1], "names": None}
    info: dict[str, Any] = {
        "codebase_version": "v2.1",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "fps": 30,
        "features": {
            "observation.state": vector,
            "action": vector,
            "observation.images.front": {"dtype": "video", "shape": [480, 640, 3], "names": None},
            "next.reward": scalar | {"dtype": "float32"},
            "next.success": scalar | {"dtype": "bool"},
            **dict.fromkeys(("timestamp", "frame_index", "episode_index", "task_index"), scalar),
        },
    }
    (folder / "meta").mkdir()
    (folder / "meta/info.json").write_text(json.dumps(info))
    (folder / "meta/tasks.jsonl").write_text('{"task_index": 0, "task": "lift the leg"}\n')
    return folder, tables


def change(folder: Path, **changes: object) -> None:
    path = folder / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_v21_is_read_as_far_as_it_tells(tmp_path: Path) -> None:
    source, tables = foreign(tmp_path / "foreign")
    done = adopt(source, tmp_path / "set", origin="robot")
    assert (done.episodes, done.frames) == (3, 19)
    assert "observation.images.front left out: video" in done.notes
    dataset = Dataset.open(tmp_path / "set")
    header = dataset.header
    assert header.schema.names == ("observation_state", "action", "reward")
    assert header.schema["action"].labels == ("hip", "knee", "ankle")
    assert {signal.unit for signal in header.schema.signals} == {"unknown"}
    assert (header.provenance.origin, header.provenance.task) == ("robot", "lift the leg")
    assert header.control_dt_s == pytest.approx(1 / 30)
    for number, table in enumerate(tables):
        one = dataset.trajectory(number)
        np.testing.assert_array_equal(one["observation_state"], table["observation.state"])
        np.testing.assert_array_equal(one["action"][:-1], table["action"][:-1])
        assert np.isnan(one["action"][-1]).all()
        assert one.outcome == ("success" if table["next.success"].any() else "timeout")
    reward = dataset.episodes(["reward"])["reward"]
    assert reward[0] == pytest.approx(tables[0]["next.reward"][:-1].astype(float).sum())
    assert adopt(source, tmp_path / "set", origin="robot").episodes == 3  # again: nothing new


def test_a_foreign_v3_is_read_without_our_sidecar(tmp_path: Path) -> None:
    block = made_block(8)
    kept(tmp_path / "set", block)
    lerobot.export(tmp_path / "set", tmp_path / "out", task="sway")
    shutil.rmtree(tmp_path / "out/meta/simops")
    with pytest.raises(DataError, match="does not say where it comes from"):
        adopt(tmp_path / "out", tmp_path / "back")
    assert adopt(tmp_path / "out", tmp_path / "back", origin="sim").episodes == 8
    dataset = Dataset.open(tmp_path / "back")
    assert dataset.header.provenance.task == "sway"
    np.testing.assert_array_equal(dataset.trajectory(3)["action"][:-1], block.trajectory(3)["action"][:4])


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"codebase_version": "v9"}, "DAT-012"),
        ({"fps": "fast"}, "DAT-007"),
        ({"features": 3}, "DAT-007"),
        ({"features": {}}, "DAT-008"),
        ({"total_frames": 20}, "DAT-005"),
    ]
    for i, (changes, fault) in enumerate(cases):
        source, _ = foreign(tmp_path / f"foreign{i}")
        change(source, **changes)
        with pytest.raises(DataError) as caught:
            adopt(source, tmp_path / f"set{i}", origin="sim")
        assert caught.value.fault == fault, changes


@pytest.mark.parametrize(
    ("name", "cells", "fault"),
    [
        ("frame_index", np.array([0, 1, 1, 2, 3, 4]), "DAT-006"),  # a frame twice
        ("frame_index", np.array([0, 1, 2, 0, 1, 2]), "DAT-006"),  # two episodes run together
        ("action", np.full((6, 3), np.nan, np.float32), "DAT-007"),
        ("action", None, "DAT-008"),
    ],
)
def test_a_bad_episode_is_refused(tmp_path: Path, name: str, cells: np.ndarray[Any, Any] | None, fault: str) -> None:
    source, tables = foreign(tmp_path / "foreign")
    table = {key: value for key, value in tables[0].items() if key != name} | ({} if cells is None else {name: cells})
    (source / "data/chunk-000/episode_000000.parquet").write_bytes(parquet.encode(table, typed=True))
    with pytest.raises(DataError) as caught:
        adopt(source, tmp_path / "set", origin="sim")
    assert caught.value.fault == fault


def test_hostile_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = foreign(tmp_path / "foreign")
    path = source / "data/chunk-000/episode_000001.parquet"
    good = path.read_bytes()
    bomb = parquet.encode({"episode_index": np.zeros(5_000_000, np.int64)})
    assert len(bomb) < 100_000
    monkeypatch.setattr("simops.data.lerobot_read.TABLE_BYTES", 2**24)
    for data, fault in ((bomb, "SEC-010"), (b"", "DAT-003"), (b"PAR1" * 40, "DAT-003"), (good[:200], "DAT-003")):
        path.write_bytes(data)
        with pytest.raises(DataError) as caught:
            adopt(source, tmp_path / "set", origin="sim")
        assert caught.value.fault == fault
    (tmp_path / "elsewhere.parquet").write_bytes(good)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(DataError, match="leads outside"):
        adopt(source, tmp_path / "set", origin="sim")
    (source / "meta/info.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="not JSON"):
        adopt(source, tmp_path / "set", origin="sim")
