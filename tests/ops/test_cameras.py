"""Films of a pass are kept beside its rows, found again, and completed after a stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.data.frames import films, read
from simops.data.store import Dataset
from simops.ops.build import load_pass
from simops.ops.factory import Progress, run
from simops.sim.video import decode
from tests.gl import needs_gl
from tests.ops.made import contents, project, rollout, unwatched

KINDS = ("rgb", "depth", "segmentation")
SPEC = """\
scene: {task: "./task.py:quick"}
rollout:
  parallel_envs: 4
  episodes_per_env: 2
  cameras: [{name: overview, width: 48, height: 32, kinds: [rgb, depth, segmentation]}]
  film_every: 3
  film_hz: 10
"""
FILMED = {(episode, "overview", kind) for episode in (0, 3, 6) for kind in KINDS}


def kept(out: Path) -> set[tuple[int, str, str]]:
    return {(film.episode, film.camera, film.kind) for film in films(out)}


def pictures(folder: Path) -> dict[str, str]:
    """Files of pictures and their digests, but for those in colour, whose coder does not promise its bytes."""
    found = contents(folder).items()
    return {name: "colour" if "rgb" in name else sha for name, sha in found if name.startswith(("videos/", "frames/"))}


def alike(folder: Path, other: Path) -> bool:
    """Whether the colour films of two folders show the same, as well as a lossy coder can tell."""
    one, two = ([decode(read(at, film)) for film in films(at) if film.kind == "rgb"] for at in (folder, other))
    apart = [np.abs(a.astype(int) - b).mean() for a, b in zip(one, two, strict=True)]
    return max(apart) < 0.5  # films of two episodes are more than 1 apart


@needs_gl
def test_what_cameras_saw_is_found_again(tmp_path: Path) -> None:
    order = load_pass(project(tmp_path / "project", SPEC), out=tmp_path / "out")
    assert run(order, unwatched).filmed == 3
    assert kept(order.out) == FILMED
    steps = dict(zip(*(Dataset.open(order.out).episodes()[key] for key in ("episode", "steps")), strict=True))
    seen: dict[str, np.ndarray] = {}
    for film in films(order.out):
        values = decode(read(order.out, film))
        assert len(values) == film.frames == steps[film.episode] // 5 + 1  # 10 pictures a second of 50 steps
        assert values.shape[1:3] == (32, 48)
        seen.setdefault(film.kind, values)
        assert (film.facts["width"], film.facts["height"]) == ("48", "32")
    assert seen["rgb"].std() > 5
    assert seen["depth"].dtype == np.uint16
    assert 0 < seen["depth"][seen["depth"] > 0].min() < 10_000  # millimetres
    [facts] = [film.facts for film in films(order.out) if film.kind == "segmentation" and film.episode == 0]
    assert {facts[f"object_{value}"] for value in np.unique(seen["segmentation"])} >= {"bob"}


@needs_gl
@pytest.mark.parametrize("stage", ["filming", "writing"])
def test_a_run_stopped_between_rows_and_films_completes_the_films(tmp_path: Path, stage: str) -> None:
    spec = project(tmp_path / "project", SPEC)
    whole = load_pass(spec, out=tmp_path / "whole")
    run(whole, unwatched)
    order = load_pass(spec, out=tmp_path / "out")

    def stop(progress: Progress) -> None:
        if progress.stage == stage and progress.filmed == (1 if stage == "filming" else 0) and progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(order, stop)
    assert len(Dataset.open(order.out)) == 4
    assert {row[0] for row in kept(order.out)} == ({0} if stage == "filming" else set())
    end = run(order, unwatched)
    assert (end.done, end.filmed) == (8, 2 if stage == "filming" else 3)
    assert pictures(order.out) == pictures(whole.out)
    assert alike(order.out, whole.out)
    assert Dataset.open(order.out).digest() == Dataset.open(whole.out).digest()


@needs_gl
def test_one_kind_that_is_missing_is_made_and_the_others_are_left(tmp_path: Path) -> None:
    """What a kill leaves between the films of one episode."""
    order = load_pass(project(tmp_path / "project", SPEC), out=tmp_path / "out")
    run(order, unwatched)
    before = pictures(order.out)
    gone = order.out / "frames" / "overview-depth-000003.json"
    gone.unlink()
    assert kept(order.out) == FILMED - {(3, "overview", "depth")}
    assert run(order, unwatched).filmed == 1
    assert pictures(order.out) == before
    assert run(order, unwatched).filmed == 0


@needs_gl
def test_a_camera_without_a_name_is_the_first_of_the_scene(tmp_path: Path) -> None:
    spec = project(tmp_path / "project", SPEC)
    changes = ("rollout.cameras=[{width: 32, height: 32}]", "rollout.film_every=8", "rollout.film_hz=1")
    run(load_pass(spec, out=tmp_path / "out", overrides=changes), unwatched)
    assert kept(tmp_path / "out") == {(0, "overview", "rgb")}


@pytest.mark.parametrize(
    ("cameras", "words"),
    [
        ("[{name: overveiw}]", "the scene has no camera 'overveiw'"),
        ("[{width: 33}]", "a film of 33x240"),
        ("[{name: overview}, {kinds: [depth]}]", "camera 'overview' is there 2 times"),
    ],
)
def test_cameras_that_cannot_be_are_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cameras: str, words: str
) -> None:
    spec = project(tmp_path / "project", SPEC)
    assert rollout(spec, tmp_path / "out", f"rollout.cameras={cameras}") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
