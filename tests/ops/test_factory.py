"""The factory writes every episode once, the same whatever it ran on and however often it was stopped."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.errors import SimOpsError
from simops.core.trajectory import OUTCOMES
from simops.data.check import check
from simops.data.store import Dataset
from simops.data.writer import Writer
from simops.ops.build import load_pass
from simops.ops.factory import Progress, Watch, run
from tests.ops.made import contents, project, rollout, unwatched

MUJOCO = """\
scene: {task: "./task.py:quick"}
rollout: {parallel_envs: 4, episodes_per_env: 6}
"""


def digest(out: Path) -> str:
    return Dataset.open(out).digest()


def whole(out: Path, episodes: int) -> bool:
    """Whether exactly the first episodes are there, each once, and every file is sound."""
    numbers = np.sort(Dataset.open(out).episodes(["episode"])["episode"])
    return check(out).bad == () and numbers.tolist() == list(range(episodes))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project, and the digest of its dataset of 24 episodes, made in one wave."""
    folder = tmp_path_factory.mktemp("reference")
    spec = project(folder / "project")
    one_wave = ("rollout.parallel_envs=24", "rollout.episodes_per_env=1")
    run(load_pass(spec, out=folder / "out", overrides=one_wave), unwatched)
    return spec, digest(folder / "out")


@pytest.mark.parametrize(("copies", "times"), [(1, 24), (8, 3)])
def test_a_pass_writes_every_episode_once_the_same_in_any_batch(
    reference: tuple[Path, str], tmp_path: Path, copies: int, times: int
) -> None:
    spec, want = reference
    sizes = (f"rollout.parallel_envs={copies}", f"rollout.episodes_per_env={times}")
    order = load_pass(spec, out=tmp_path / "out", overrides=sizes)
    run(order, unwatched)
    assert whole(tmp_path / "out", 24)
    assert len(Dataset.open(tmp_path / "out").shards) == times
    assert digest(tmp_path / "out") == want


def test_threads_and_copies_change_no_byte(tmp_path: Path) -> None:
    spec = project(tmp_path / "project", MUJOCO)
    ways = [("engine.threads=1",), ("engine.threads=2",), ("rollout.parallel_envs=12", "rollout.episodes_per_env=2")]
    found: set[str] = set()
    for i, changes in enumerate(ways):
        run(load_pass(spec, out=tmp_path / str(i), overrides=changes), unwatched)
        found.add(digest(tmp_path / str(i)))
    assert len(found) == 1
    run(load_pass(spec, out=tmp_path / "other", overrides=("seed=1",)), unwatched)
    assert digest(tmp_path / "other") not in found


def stopping(moment: int) -> Watch:
    """A person who presses Ctrl-C when they have seen so many pictures."""
    looks = count()

    def watch(progress: Progress) -> None:
        del progress
        if next(looks) == moment:
            raise KeyboardInterrupt

    return watch


@given(moments=st.lists(st.integers(0, 60), min_size=1, max_size=3))
@settings(max_examples=12)
def test_a_pass_stopped_at_any_moment_ends_the_same(
    reference: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory, moments: list[int]
) -> None:
    spec, want = reference
    order, there = load_pass(spec, out=tmp_path_factory.mktemp("stopped") / "out"), 0
    for moment in moments:
        with pytest.raises(KeyboardInterrupt):
            run(order, stopping(moment))
        kept, before = Dataset.open(order.out), there
        there = len(kept)
        assert there >= before
        assert there % order.batch == 0
        Writer.resume(order.out, kept.header).close()  # the lock is free
    progress = run(order, unwatched)
    assert progress.done == 24
    assert progress.fresh == 24 - there
    assert whole(order.out, 24)
    assert digest(order.out) == want


def test_asking_for_more_continues_and_asking_again_adds_nothing(reference: tuple[Path, str], tmp_path: Path) -> None:
    spec, want = reference
    out = tmp_path / "out"
    run(load_pass(spec, out=out, overrides=("rollout.episodes_per_env=2",)), unwatched)
    before = contents(out / "steps")
    progress = run(load_pass(spec, out=out), unwatched)
    assert (progress.done, progress.fresh) == (24, 16)
    assert before.items() <= contents(out / "steps").items()
    assert (whole(out, 24), digest(out)) == (True, want)
    everything = contents(out)
    again = run(load_pass(spec, out=out), unwatched)
    assert (again.done, again.fresh, sum(again.outcomes.values())) == (24, 0, 0)
    assert contents(out) == everything


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("seed=1", "provenance.seed was 0 and is now 1"),
        ("randomization.physics.bob_mass_kg=[0.9, 1.0]", "belief was "),
        ("sensors=[{use: noise, std: {rate: 0.1}}]", "provenance.sensors was [] and is now ["),
        ("policy=random", "provenance.policy was "),
        ("engine.gravity_m_s2=9.8", "provenance.engine was "),
    ],
)
def test_another_recipe_into_the_same_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, words: str
) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    assert rollout(spec, out, "rollout.episodes_per_env=1") == 0
    before = contents(out)
    capsys.readouterr()
    assert rollout(spec, out, "rollout.episodes_per_env=1", change) == 2
    said = capsys.readouterr().err
    assert said.startswith("simops: CFG-008 the dataset was made otherwise: ")
    assert words in said
    assert "try: another folder" in said
    assert contents(out) == before


def test_a_second_writer_is_told_who_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    assert rollout(spec, out, "rollout.episodes_per_env=1") == 0
    before = contents(out)
    with Writer.resume(out, Dataset.open(out).header):
        capsys.readouterr()
        assert rollout(spec, out) == 2
    said = capsys.readouterr().err
    assert f"DAT-010 {out} is being written by process " in said
    assert "try: wait for it" in said
    assert contents(out) == before
    assert rollout(spec, out) == 0


def test_a_policy_that_comes_to_no_number_ends_its_own_episodes_only(tmp_path: Path) -> None:
    spec = project(tmp_path / "project")
    progress = run(load_pass(spec, out=tmp_path / "out", overrides=("policy=./task.py:Broken",)), unwatched)
    table = Dataset.open(tmp_path / "out").episodes()
    broken = table["seed"] % np.uint64(3) == 0
    assert 0 < broken.sum() < 24
    assert [outcome == "diverged" for outcome in table["outcome"]] == broken.tolist()
    assert table["steps"][~broken].tolist() == [20] * int((~broken).sum())
    assert progress.outcomes == {name: table["outcome"].count(name) for name in OUTCOMES}


def test_physics_that_breaks_down_is_counted_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damping that no step of this engine can follow."""
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    assert rollout(spec, out, "randomization.physics.hinge_damping_nms_rad=[0, 8000]", "engine.step_s=0.001") == 0
    counts = Dataset.open(out).outcomes
    assert 0 < counts["diverged"] < 24
    assert f"diverged {counts['diverged']}" in capsys.readouterr().out
    assert whole(out, 24)


def test_a_watcher_sees_progress_and_never_more_than_there_is(tmp_path: Path) -> None:
    order = load_pass(project(tmp_path / "project"), out=tmp_path / "out")
    seen: list[tuple[str, int, float]] = []

    def watch(progress: Progress) -> None:
        assert 0 <= progress.settled <= progress.total
        assert progress.left_s is None or progress.left_s >= -1e-9
        assert progress.running <= progress.in_flight <= order.batch
        seen.append((progress.stage, progress.done, progress.settled))

    end = run(order, watch)
    done = [row[1] for row in seen]
    assert done == sorted(done)
    assert {row[0] for row in seen} == {"simulating", "writing", "done"}
    assert seen[-1] == ("done", 24, 24.0)
    assert end.bytes == Dataset.open(order.out).bytes
    assert end.simulated_s == pytest.approx(float(Dataset.open(order.out).episodes()["steps"].sum()) * 0.02)
    assert 0 < end.physics_s < end.elapsed_s
    assert sum(end.outcomes.values()) == 24


def test_what_the_dataset_keeps_of_the_spec_is_the_lock(tmp_path: Path) -> None:
    order = load_pass(project(tmp_path / "project"), out=tmp_path / "out")
    run(order, unwatched)
    assert (tmp_path / "out" / "spec.lock").read_text() == order.lock
    assert Dataset.open(tmp_path / "out").header.lock == order.lock


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("scene.task=pick_and_place", "has no single joint position"),
        ("policy=pick_and_place_expert", "pick_and_place"),
        ("sensors=[{use: noise, std: {spin: 0.1}}]", "spin"),
    ],
)
def test_parts_that_do_not_fit_leave_nothing_behind(tmp_path: Path, change: str, words: str) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    with pytest.raises(SimOpsError, match=words):
        run(load_pass(spec, out=out, overrides=(change,)), unwatched)
    assert not out.exists()
