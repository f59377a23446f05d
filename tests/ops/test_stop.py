"""A run that is stopped, by force or by hand, keeps what it acknowledged and goes on from there."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from simops.data.check import check
from simops.data.store import Dataset
from simops.data.writer import Writer
from simops.ops.build import load_pass
from simops.ops.factory import run
from tests.ops.made import SIMOPS, contents, project, rollout, unwatched

ONE_BY_ONE = ("rollout.parallel_envs=1", "rollout.episodes_per_env=4000")


@contextmanager
def running(spec: Path, out: Path, *changes: str) -> Generator[subprocess.Popen[str]]:
    """The command in a process of its own, once it simulates; killed if it is still there in the end."""
    words = [*SIMOPS, "rollout", str(spec), "--out", str(out), *(w for change in changes for w in ("--set", change))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("simulating") for line in process.stdout), process.communicate()
            yield process
        finally:
            process.kill()


def kept(out: Path) -> dict[str, str]:
    """The shards that are acknowledged: those with a record, as files and digests."""
    records = [path.stem for path in (out / "manifest").glob("shard-*.json")] if out.is_dir() else []
    return {name: sha for name, sha in contents(out).items() if Path(name).stem in records} if records else {}


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killing_it_at_random_moments_loses_nothing_and_doubles_nothing(tmp_path: Path, kills: int) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    moments, fewest = random.Random(kills), 0  # noqa: S311 (moments, not secrets)
    for kill in range(1, kills + 1):
        with running(spec, out, *ONE_BY_ONE) as process:
            time.sleep(moments.uniform(0.0, 0.3))
            while kill == kills and not kept(out) and process.poll() is None:  # the last has something to lose
                time.sleep(0.01)
            acknowledged = kept(out)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert check(out).bad == ()  # nothing torn is to be seen, before anybody tidies up
        assert acknowledged.items() <= contents(out).items()
        assert len(Dataset.open(out)) >= fewest
        fewest = len(Dataset.open(out))
    assert 0 < fewest < 4000
    acknowledged = kept(out)
    rest = ("rollout.parallel_envs=2000", "rollout.episodes_per_env=2")
    progress = run(load_pass(spec, out=out, overrides=rest), unwatched)
    assert (progress.done, progress.fresh) == (4000, 4000 - fewest)
    assert acknowledged.items() <= contents(out).items()
    numbers = np.sort(Dataset.open(out).episodes(["episode"])["episode"])
    assert numbers.tolist() == list(range(4000))
    run(load_pass(spec, out=tmp_path / "undisturbed", overrides=rest), unwatched)
    assert Dataset.open(out).digest() == Dataset.open(tmp_path / "undisturbed").digest()


def test_ctrl_c_stops_within_a_step_and_says_how_to_go_on(tmp_path: Path) -> None:
    """The first wave has 200,000 steps: had anybody waited for its end, it would be on disk."""
    long = "{use: './task.py:quick', steps: 200000}"
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    with running(spec, out, f"scene.task={long}", "rollout.episodes_per_env=1") as process:
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate()
    assert process.returncode == 130
    assert f"stopped; every finished wave is kept in {out}, the same command goes on from there\n" in said
    assert complaint == "\nsimops: interrupted\n"
    kept_header = Dataset.open(out).header
    assert len(Dataset.open(out)) == 0
    with Writer.resume(out, kept_header) as data:  # the lock is free
        assert data.notices == ()


def test_after_ctrl_c_the_same_command_goes_on(tmp_path: Path) -> None:
    spec, out = project(tmp_path / "project"), tmp_path / "out"
    with running(spec, out, *ONE_BY_ONE) as process:
        while len(list((out / "manifest").glob("shard-*.json"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        acknowledged = {name: sha for name, sha in kept(out).items() if "000000" in name}  # the next one was begun
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert (process.returncode, len(acknowledged)) == (130, 3)
    assert acknowledged.items() <= contents(out).items()
    assert Dataset.open(out).unfinished == 0
    there = len(Dataset.open(out))
    assert rollout(spec, out, f"rollout.parallel_envs={there + 1}", "rollout.episodes_per_env=1") == 0
    assert check(out).bad == ()
    assert len(Dataset.open(out)) == there + 1
