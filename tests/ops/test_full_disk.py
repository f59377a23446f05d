"""A disk that is full stops the run in words; what was kept is whole, and with room made it goes on."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from simops.data.check import check
from simops.data.store import Dataset
from tests.ops.made import project, rollout

LIMITED = """\
import resource, sys
from simops.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def small(tmp_path: Path) -> Generator[Path]:
    """A disk of 300 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("no mount command")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"may not mount a small disk: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([umount, str(folder)], check=True)


def test_a_full_disk_stops_it_and_room_lets_it_go_on(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, out = project(tmp_path / "project"), small / "out"
    many = "rollout.episodes_per_env=40"
    assert rollout(spec, out, many) == 2
    said = capsys.readouterr().err
    assert said.startswith("simops: DAT-009 the disk is full: shard-")
    assert " needs " in said
    assert " are free\n" in said
    assert "try: make room for " in said
    assert "run the same command again" in said
    kept = Dataset.open(out)
    assert check(out).bad == ()
    assert (len(kept) > 0, len(kept) % 4, kept.unfinished) == (True, 0, 0)
    assert rollout(spec, out, many) == 2  # and again, for nothing has changed
    assert len(Dataset.open(out)) >= len(kept)
    mount = shutil.which("mount")
    assert mount is not None
    subprocess.run([mount, "-o", "remount,size=8m", str(small)], check=True)
    assert rollout(spec, out, many) == 0
    assert check(out).bad == ()
    assert rollout(spec, tmp_path / "undisturbed", "rollout.parallel_envs=160", "rollout.episodes_per_env=1") == 0
    assert Dataset.open(out).digest() == Dataset.open(tmp_path / "undisturbed").digest()


def test_no_room_for_the_picture_is_said_and_the_rows_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The picture is larger than any file of this small pass."""
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        code = rollout(spec, out, "rollout.episodes_per_env=1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert "the file size limit is reached: summary.png needs" in capsys.readouterr().err
    assert not (out / "summary.png").exists()
    assert (check(out).bad, len(Dataset.open(out))) == ((), 4)


def test_a_limit_from_the_first_shard_on_keeps_nothing_torn(tmp_path: Path) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    words = [sys.executable, "-c", LIMITED, "8000", "rollout", str(spec), "--out", str(out)]
    large = ["--set", "rollout.parallel_envs=200"]  # one wave, one shard
    done = subprocess.run([*words, *large], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("simops: DAT-009 the file size limit is reached: shard-000000")
    assert (check(out).bad, len(Dataset.open(out)), Dataset.open(out).unfinished) == ((), 0, 0)
    assert rollout(spec, out) == 0
    assert len(Dataset.open(out)) == 24
