"""Many processes, one registry; and processes that are killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from simops.ops.registry import Registry

PROCESSES, ADDS = 8, 50
WRITER = """
import sys, random
from pathlib import Path
from simops.core.errors import BusyError
from simops.ops.registry import Registry
home, number, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(number)
source = home / f"source{number}"
source.mkdir(exist_ok=True)
with Registry(home / "registry", create=True) as registry:
    for turn in range(count):
        content = f"{number} {turn}" if turn % 5 else f"shared {turn}"
        (source / "policy.onnx").write_text(content)
        found = registry.add("go2", source)
        print(found.version, found.digest, content, flush=True)
        if turn % 10 == 9:
            held = [v.version for v in registry.versions("go2") if "best" in v.tags]
            try:
                registry.tag(found.ref, "best", why=str(number), was=held[0] if held else 0)
                print("tagged", found.version, held[0] if held else 0, flush=True)
            except BusyError as error:
                assert error.fault == "REG-001", error
        if chance.random() < 0.05:
            registry.gc(keep=1000)
"""


def writer(home: Path, number: int, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(home), str(number), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def spoken(process: subprocess.Popen[str]) -> tuple[str, str]:
    return process.communicate()


def acknowledged(home: Path, said: str) -> int:
    """Check that every version that was acknowledged is there and sound; gives how many there are."""
    with Registry(home / "registry", create=True) as registry:
        lines = [line.split(" ", 2) for line in said.splitlines() if not line.startswith("tagged")]
        versions = {found.version: found for found in registry.versions("go2")} if lines else {}
        assert list(versions) == list(range(1, len(versions) + 1))
        by_content: dict[str, set[str]] = {}
        for number, digest, content in lines:
            assert versions[int(number)].digest == digest
            assert (registry.fetch(f"go2@{number}") / "policy.onnx").read_text() == content
            by_content.setdefault(content, set()).add(number)
        assert all(len(numbers) == 1 for numbers in by_content.values()), "one content, two versions"
        assert registry.check() == {}
        return len(versions)


def race(home: Path, processes: int, adds: int) -> None:
    running = [writer(home, number, adds) for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        results = list(pool.map(spoken, running))
    assert [errors for _, errors in results] == [""] * processes
    said = "".join(out for out, _ in results)
    shared = len(range(0, adds, 5))
    assert acknowledged(home, said) == processes * (adds - shared) + shared
    swaps = sorted((line.split()[1:] for line in said.splitlines() if line.startswith("tagged")), key=str)
    with Registry(home / "registry") as registry:
        history = registry.history("go2", tag="best")
    was = 0
    for event in history:  # each was put in place of the one before: nobody's change was lost
        assert [str(event.version), str(was)] in swaps
        was = event.version
    assert len(history) == len([1 for new, old in swaps if new != old])


def test_racing_processes_get_every_number_once(tmp_path: Path) -> None:
    race(tmp_path, 4, 10)


@pytest.mark.slow
def test_eight_racing_processes_of_fifty(tmp_path: Path) -> None:
    race(tmp_path, PROCESSES, ADDS)


def kill_and_check(home: Path, seed: int, kills: int) -> None:
    chance, said = np.random.default_rng(seed), ""
    for turn in range(kills):
        process = writer(home, turn, 10_000)
        assert process.stdout is not None
        first = process.stdout.readline() if turn % 3 else ""  # it is at work, or only begins
        time.sleep(chance.random() * 0.15)
        os.kill(process.pid, signal.SIGKILL)
        rest, errors = process.communicate()
        assert errors == ""
        lines = (first + rest).splitlines(keepends=True)
        said += "".join(line for line in lines if line.endswith("\n"))
    assert acknowledged(home, said) >= kills // 2
    with Registry(home / "registry") as registry:
        registry.gc(keep=100_000)
    assert list((home / "registry" / "incoming").iterdir()) == []


def test_no_acknowledged_version_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 0, 3)


@pytest.mark.slow
def test_no_acknowledged_version_is_lost_over_many_kills(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 1, 40)
