"""What a crank makes of what it cannot use: no robot, a registry from the future, patches at odds, no room left."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from simops.cli.main import main
from simops.core.patch import Edit, Patch
from simops.ops.crank import SUMMARY
from simops.ops.ledger import FILE
from simops.ops.patches import Patches
from simops.ops.ratchet import HOME
from tests.ops.cranked import SPEC, project


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """The exit code of a command, and what it said to either side."""
    code = main(list(argv))
    seen = capsys.readouterr()
    return code, seen.out + seen.err


@pytest.mark.filterwarnings("ignore:No artists with labels")
def test_without_a_robot_it_makes_candidates_and_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path, SPEC.replace("reality: {path: reality.yaml}", "# nobody:"))
    code, words = said(capsys, "crank", str(spec), "--turns", "0", "--out", str(tmp_path / "out"))
    assert code == 0
    assert "there is no robot to try it on: a candidate" in words
    assert (tmp_path / "out" / "turn-0.json").is_file()


def test_a_reality_that_is_not_there_is_an_error_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path, SPEC.replace("path: reality.yaml", "path: nowhere.yaml"))
    code, words = said(capsys, "crank", str(spec), "--out", str(tmp_path / "out"))
    assert code != 0
    assert "there is no sealed reality" in words
    assert "nowhere.yaml" in words
    assert not list((tmp_path / "out").glob("steps/*"))


def test_a_registry_from_the_future_is_left_alone_and_nothing_is_trained_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = project(tmp_path), tmp_path / "out"
    argv = ("crank", str(spec), "--turns", "0", "--out", str(out))
    assert said(capsys, *argv)[0] == 0
    file = out / HOME / FILE
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    code, words = said(capsys, *argv)
    assert code != 0
    assert "DAT-012 this registry has format 99" in words
    assert {path: path.read_bytes() for path in before} == before


def test_patches_that_contradict_each_other_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, kept = project(tmp_path), Patches(tmp_path / "out")
    some = [
        Patch(level="simulator", edits=(Edit("learning.most", json.dumps(most), "48"),), reason="because")
        for most in (60, 70)
    ]
    for patch in some:
        kept.keep(patch)
    names = [patch.name for patch in some]
    code, words = said(capsys, "patch", "apply", str(tmp_path / "out"), *names, "--spec", str(spec))
    assert code != 0
    assert "CRK-004" in words
    assert all(name in words for name in names)
    assert spec.read_text() == SPEC
    assert said(capsys, "patch", "apply", str(tmp_path / "out"), names[0], "--spec", str(spec))[0] == 0
    assert said(capsys, "patch", "apply", str(tmp_path / "out"), names[1], "--spec", str(spec))[0] != 0
    assert "most: 60" in spec.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [48, 96, 160, 240, 400])
def test_a_full_disk_stops_it_in_words_and_room_lets_it_go_on(
    tmp_path: Path, kilobytes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    disk, mount, umount = tmp_path / "disk", shutil.which("mount"), shutil.which("umount")
    disk.mkdir()
    if mount is None or umount is None:
        pytest.skip("no mount command")
    small = [mount, "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
    if subprocess.run(small, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a small disk")
    try:
        spec = project(tmp_path / "project")
        argv = ("crank", str(spec), "--turns", "1", "--out", str(disk / "out"))
        code, words = said(capsys, *argv)
        assert code == 2
        assert "DAT-009" in words
        subprocess.run([mount, "-o", "remount,size=32m", str(disk)], check=True)
        assert said(capsys, *argv)[0] == 0
        whole = tmp_path / "whole"
        assert said(capsys, *argv[:-1], str(whole))[0] == 0
        assert (disk / "out" / SUMMARY).read_bytes() == (whole / SUMMARY).read_bytes()
    finally:
        subprocess.run([umount, str(disk)], check=True)
