"""`simops export` and `simops bundle` say what is there and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.cli.main import main
from tests.bundles import files_of, put_down


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_down(files_of(of_pendulum=True), tmp_path / "bundle")


def test_show_says_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "show", str(folder)]) == 0
    said = capsys.readouterr().out
    for words in (
        "pendulum",
        "every 0.02 s (50 Hz)",
        "the same bytes as one by one",
        "torque",
        "N m",
        "heading",
        "chance",
    ):
        assert words in said


def test_check_passes_what_is_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "check", str(folder), "--task", "pendulum"]) == 0
    assert "every byte is the one that was exported" in capsys.readouterr().out


def test_check_names_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "check", str(folder), "--task", "cube_toss"]) == 2
    assert "EXP-003 this policy was trained for another contract" in capsys.readouterr().err
    (folder / "policy.onnx").write_bytes(b"")
    assert main(["bundle", "check", str(folder)]) == 2
    assert "EXP-011 policy.onnx is not the file that was exported" in capsys.readouterr().err


def test_diff_tells_two_apart(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "diff", str(folder), str(folder)]) == 0
    assert capsys.readouterr().out == "the same policy\n"
    other = put_down(files_of("recurrent", of_pendulum=True), tmp_path / "other")
    assert main(["bundle", "diff", str(folder), str(other)]) == 0
    said = capsys.readouterr().out
    assert "memory" in said
    assert "golden answers: largest difference" in said


def test_optimise_says_whether_it_pays(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bundle", "optimise", str(folder), "--kind", "float16", "--out", str(tmp_path / "half")]
    assert main([*words, "--engine", "pendulum", "--episodes", "4"]) == 0
    assert "pays on this machine: " in capsys.readouterr().out
    assert main([*words[:-1], str(tmp_path / "loose"), "--unmeasured"]) == 0
    assert "no candidate: success was not measured" in capsys.readouterr().out


def test_exporting_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "out"), "--engine", "pendulum"]) == 2
    assert "there is no checkpoint" in capsys.readouterr().err
