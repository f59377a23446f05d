"""Every example holds, and runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.cli.main import main
from simops.data.check import check
from simops.data.store import Dataset
from tests.house.tree import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*/spec.yaml"))


@pytest.fixture(params=EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def example(request: pytest.FixtureRequest) -> Path:
    """The spec of one example."""
    path = request.param
    assert isinstance(path, Path)
    return path


def test_there_is_an_example() -> None:
    assert EXAMPLES


def test_an_example_holds(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(example)]) == 0
    assert f"{example}: OK as rollout, " in capsys.readouterr().out


def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    small = ["--set", "rollout.parallel_envs=4", "--set", "rollout.episodes_per_env=1"]
    assert main(["rollout", str(example), "--out", str(tmp_path / "out"), *small]) == 0
    assert check(tmp_path / "out").bad == ()
    assert len(Dataset.open(tmp_path / "out")) == 4


@pytest.mark.parametrize(
    ("example", "reality"),
    [
        ("crank_pendulum", "reality.yaml"),
        ("crank_pendulum", "far.yaml"),
        ("crank_go2", "reality.yaml"),
        ("crank_pick_and_place", "reality.yaml"),
    ],
)
def test_the_crank_of_an_example_holds_and_can_be_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], example: str, reality: str
) -> None:
    """The plan asks the sealed robot who it is, so its file holds as well."""
    spec = ROOT / "examples" / example / "crank.yaml"
    assert main(["plan", str(spec), "--out", str(tmp_path / "out"), "--set", f"reality.path={reality}"]) == 0
    assert "a policy in what is believed; it was never done" in capsys.readouterr().out


def test_the_gate_of_an_example_lets_the_expert_through(tmp_path: Path) -> None:
    kinds = ("nominal", "edge", "shift", "disturbance")
    small = [word for kind in kinds for word in ("--set", f"suite.{kind}.rate=0.5")]
    spec = ROOT / "examples" / "validate_pendulum" / "gate.yaml"
    less = ["--set", "gap_episodes=0", "--set", "canary_episodes=8", "--no-pictures"]
    assert main(["validate", str(spec), "--out", str(tmp_path / "gate"), *small, *less]) == 0


@pytest.mark.parametrize("name", ["foam", "cable"])
def test_the_gates_with_things_that_bend_hold(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "examples" / "validate_soft" / f"{name}.yaml")]) == 0
    assert "OK as validate" in capsys.readouterr().out


def test_the_expert_gets_the_cube_past_a_cable(tmp_path: Path) -> None:
    spec = ROOT / "examples" / "validate_soft" / "cable.yaml"
    sets = (
        "suite.disturbance.scenarios=0",
        "suite.nominal={scenarios: 8, rate: 0.5}",
        "suite.edge={scenarios: 8, rate: 0.5}",
    )
    less = ("gap_episodes=0", "canary_episodes=8")
    small = [word for change in (*sets, *less) for word in ("--set", change)]
    assert main(["validate", str(spec), "--out", str(tmp_path / "gate"), *small, "--no-pictures"]) == 0
