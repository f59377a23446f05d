"""The example of a search runs, and finds what it says it finds."""

from __future__ import annotations

from pathlib import Path

from simops.cli.main import main
from tests.house.tree import ROOT


def test_the_example_of_a_search_finds_failures(tmp_path: Path) -> None:
    spec = ROOT / "examples" / "falsify_pendulum" / "falsify.yaml"
    small = ["--set", "search.episodes=100", "--set", "engine.step_s=0.01"]
    assert main(["falsify", str(spec), "--out", str(tmp_path / "out"), *small]) == 0
    assert len(list((tmp_path / "out" / "failures").glob("*.json"))) > 10
    assert (tmp_path / "out" / "report.html").exists()
