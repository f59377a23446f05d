"""`simops rollout` as a person meets it: mistakes, the spec from the field, and running a lock again."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from simops.cli.main import main
from simops.core.rollout import score
from simops.core.signal import Schema
from simops.data.check import check
from simops.data.store import Dataset
from simops.ops.build import load_pass
from tests.house.tree import ROOT
from tests.ops.made import contents, project, rollout

FIELD = ROOT / "examples" / "pick_and_place" / "spec.yaml"

TEN_MISTAKES = """\
scene: {robot: ur5, task: pick_and_place}
engine: {use: mujoco, thread: 2}
polcy: expert
randomization:
  visual: {texture_pool: [9, 3], lighting_intensity: [0.3, 180]}
  physics:
    object_mass_lb: [0.05, 0.4]
    friction_coefficient: .nan
seed: 1
seed: 2
rollout: {parallel_envs: 0, episodes_per_env: 2.5}
"""
WHERE = (
    "line 1: scene.robot: ",
    "line 2: engine.thread: ",
    "line 3: polcy: ",
    "line 5: randomization.visual.texture_pool: ",
    "line 5: randomization.visual.lighting_intensity: ",
    "line 7: randomization.physics.object_mass_lb: ",
    "line 8: randomization.physics.friction_coefficient: ",
    "line 10: seed: ",
    "line 11: rollout.parallel_envs: ",
    "line 11: rollout.episodes_per_env: ",
)


def test_ten_mistakes_are_told_at_once_and_touch_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(TEN_MISTAKES)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    before = (contents(tmp_path), sorted(tmp_path.rglob("*")), tmp_path.stat().st_mtime_ns)
    assert main(["rollout", str(spec)]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    lines = caught.err.splitlines()
    assert lines[0] == f"simops: {spec} has {len(lines) - 1} problems"
    assert len(lines) - 1 == len(WHERE) == 10, caught.err
    for where in WHERE:
        assert any(line.strip().startswith(where) for line in lines[1:]), (where, caught.err)
    assert (contents(tmp_path), sorted(tmp_path.rglob("*")), tmp_path.stat().st_mtime_ns) == before


def test_the_spec_from_the_field_runs_small_and_its_lock_runs_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert rollout(FIELD, out, "rollout.parallel_envs=8", "rollout.episodes_per_env=2") == 0
    said = capsys.readouterr().out
    data = Dataset.open(out)
    assert check(out).bad == ()
    assert sum(data.outcomes.values()) == len(data) == 16
    assert data.outcomes.get("success", 0) >= 14
    assert f"success {data.outcomes['success']}" in said
    table = data.episodes()
    assert sorted(table["episode"].tolist()) == list(range(16))
    assert len(set(table["seed"].tolist())) == 16
    turn = math.radians(5) + 1e-9
    ranges = {
        "object_mass": (0.05, 0.4),
        "friction_coefficient": (0.2, 1.1),
        "object_position_noise_x": (-0.02, 0.02),
        "object_position_noise_y": (-0.02, 0.02),
        "texture": (0, 200),
        "lighting_intensity": (0.3, 1.8),
        "camera_jitter_pan": (-turn, turn),
        "camera_jitter_tilt": (-turn, turn),
    }
    assert {name.removeprefix("param_") for name in table if name.startswith("param_")} == set(ranges)
    for name, (low, high) in ranges.items():
        values = table[f"param_{name}"]
        assert low <= values.min() < values.max() <= high, name
    with Image.open(out / "summary.png") as picture:
        picture.load()
        assert picture.format == "PNG"
    lock = out / "spec.lock"
    assert main(["rollout", str(lock), "--out", str(tmp_path / "again")]) == 0
    assert Dataset.open(tmp_path / "again").digest() == data.digest()


def test_what_is_stored_is_what_the_task_says_and_scores_the_same(tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = ("rollout.parallel_envs=3", "rollout.episodes_per_env=1")
    assert rollout(FIELD, out, *small) == 0
    task = load_pass(FIELD, overrides=small).recipe.task
    data = Dataset.open(out)
    assert set(task.state_schema.names) <= set(data.header.schema.names)
    assert isinstance(data.header.schema, Schema)
    assert data.header.provenance.task == "pick_and_place"
    table = data.episodes()
    for i, episode in enumerate(table["episode"].tolist()):
        one = data.trajectory(episode)
        again = score(task, one)
        np.testing.assert_array_equal(again["reward"], one.columns["reward"][:-1])
        assert float(again["reward"].astype(float).sum()) == pytest.approx(float(table["reward"][i]))
        assert (len(one), one.outcome, one.seed) == (table["steps"][i], table["outcome"][i], table["seed"][i])


def test_the_lock_of_a_project_runs_from_its_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code files are those of the working folder, wherever the lock lies."""
    project(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["rollout", "spec.yaml", "--out", "deep/data"]) == 0
    assert main(["rollout", "deep/data/spec.lock", "--out", "again"]) == 0
    assert Dataset.open(tmp_path / "again").digest() == Dataset.open(tmp_path / "deep" / "data").digest()


def test_a_lock_may_not_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = project(tmp_path / "project")
    assert rollout(spec, tmp_path / "out") == 0
    capsys.readouterr()
    assert rollout(tmp_path / "out" / "spec.lock", tmp_path / "again", "seed=3") == 2
    assert "a lock cannot be changed" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_a_spec_that_is_not_there_is_one_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").touch()
    assert main(["rollout", str(tmp_path / "spce.yaml"), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "cannot be read: No such file or directory; try 'spec.yaml'" in said
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.tex").write_text("\\section{}")
    before = contents(out)
    assert rollout(spec, out) == 2
    assert "is no dataset and holds chapter.tex" in capsys.readouterr().err
    assert contents(out) == before


def test_paths_are_said_whole_whatever_is_in_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs of [red]today[/red]" / ("long" * 30)
    assert rollout(project(tmp_path / "project"), out) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"24 episodes of quick to {out}"
    assert f"chart: {out}/summary.png" in said
