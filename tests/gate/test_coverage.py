"""Coverage is counted right, holes are found where they are, and what is emitted closes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from simops.cli.main import main
from simops.core.belief import Box
from simops.core.errors import DataError
from simops.core.scenario import check
from simops.core.signal import Array
from simops.gate.coverage import Coverage, weakest
from simops.ops import coverage
from simops.tasks.pendulum.task import pendulum


def evenly(n: int, size: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, size))


def test_pairs_are_counted_as_one_would_by_hand() -> None:
    points = np.array([[0.1, 0.1, 0.9], [0.1, 0.2, 0.1], [0.9, 0.9, 0.9]])
    made = Coverage(points, bins=2)
    assert made.pairs == ((0, 1), (0, 2), (1, 2))
    np.testing.assert_array_equal(made.counts, [[[2, 0], [0, 1]], [[1, 1], [0, 1]], [[1, 1], [0, 1]]])
    assert made.possible == 12
    assert made.pairwise == pytest.approx(8 / 12)
    assert weakest(made, ("a", "b", "c"))[0] == ("a", "b", 0.5)
    np.testing.assert_array_equal(made.single, [1.0, 1.0, 1.0])


def test_even_points_reach_what_is_expected_of_them() -> None:
    shares = [Coverage(evenly(100, 5, seed), 8).pairwise for seed in range(20)]
    assert float(np.mean(shares)) == pytest.approx(Coverage(evenly(1, 5), 8).expected(100), abs=0.01)


def test_the_largest_hole_is_where_it_was_cut() -> None:
    points = evenly(4000, 3)
    centre = np.array([0.3, 0.6, 0.5])
    points = points[np.linalg.norm(points - centre, axis=1) > 0.25]
    hole = Coverage(points).hole
    assert float(np.linalg.norm(hole.centre - centre)) < 0.15
    assert 0.24 < hole.radius < 0.35


def test_the_discrepancy_is_the_known_one_and_falls_where_points_fill_evenly() -> None:
    assert Coverage(np.array([[0.5]])).discrepancy == pytest.approx(np.sqrt(1 / 12))  # one point in the middle
    grid = (np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(-1, 2) + 0.5) / 8
    assert Coverage(grid).discrepancy < 0.8 * Coverage(evenly(64, 2)).discrepancy


@pytest.mark.parametrize("size", [1, 2, 6])
def test_what_is_missing_closes_every_pair_and_is_the_same_again(size: int) -> None:
    made = Coverage(evenly(30, size) * 0.5, bins=6)
    found = made.closing(10_000)
    whole = Coverage(np.concatenate([made.points, found]), 6)
    assert whole.pairwise == 1.0
    assert len(found) < 4 * 36
    assert found.tobytes() == made.closing(10_000).tobytes()
    few = Coverage(np.concatenate([made.points, made.closing(10)]), 6).pairwise
    chance = np.mean([Coverage(np.concatenate([made.points, evenly(10, size, s)]), 6).pairwise for s in range(10)])
    assert few >= chance


SPEC = "scene: {task: pendulum}\nengine: {use: pendulum, step_s: 0.02}\nrollout: {parallel_envs: 40}\n"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coverage")
    (folder / "spec.yaml").write_text(SPEC)
    assert main(["rollout", str(folder / "spec.yaml"), "--out", str(folder / "data")]) == 0
    return folder / "data"


def test_a_dataset_is_measured_by_the_belief_it_was_drawn_from_and_closed(dataset: Path, tmp_path: Path) -> None:
    tried = coverage.measured([dataset], bins=6)
    assert tried.names == ("bob_mass", "hinge_damping")
    assert len(tried.coverage.points) == 40
    assert 0.4 < tried.coverage.pairwise < 0.9
    path, found = coverage.close(tried, 1000, tmp_path)
    for each in found:
        check(each, pendulum())
    again = coverage.measured([dataset, path], bins=6)
    assert again.coverage.pairwise == 1.0 == coverage.closed(tried, found).coverage.pairwise
    assert coverage.draw(tried, tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_says_what_is_missing_and_what_it_cannot_read(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = dataset.parent / "spec.yaml"
    assert main(["coverage", str(dataset), "--bins", "6", "--close", "3", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "3 scenarios that are missing" in out
    assert "largest hole" in out
    suite = tmp_path / "out" / coverage.SUITE
    assert main(["coverage", str(suite), "--spec", str(spec), "--out", str(tmp_path / "out")]) == 0
    assert main(["coverage", str(suite), "--out", str(tmp_path / "out")]) == 2
    assert "no belief" in capsys.readouterr().err
    with pytest.raises(DataError, match="neither a dataset nor scenarios"):
        _ = coverage.measured([tmp_path], belief=pendulum().belief)


def test_what_a_gate_and_a_search_tried_counts(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "gate").mkdir()
    shutil.copytree(dataset, tmp_path / "gate" / "candidate")
    spec = tmp_path / "falsify.yaml"
    spec.write_text(SPEC.replace("rollout: {parallel_envs: 40}", "search: {episodes: 32, side_by_side: 16}"))
    assert main(["falsify", str(spec), "--out", str(tmp_path / "search")]) == 0
    searched = coverage.measured([tmp_path / "search"])
    assert len(searched.coverage.points) == 32
    assert searched.names == ("bob_mass", "hinge_damping")
    both = coverage.measured([tmp_path / "gate", tmp_path / "search"])
    assert len(both.coverage.points) == 72


def test_points_outside_of_the_belief_cover_nothing(dataset: Path) -> None:
    narrow = Box(pendulum().belief.params, (1.0, 0.0, 0.4), (1.2, 0.1, 0.4))
    tried = coverage.measured([dataset], belief=narrow)
    assert tried.outside > 0
    assert tried.outside + len(tried.coverage.points) == 40
