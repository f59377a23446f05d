"""Each tool's configuration is tested once: break the rule, watch it fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT

BIN = Path(sys.executable).parent
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]

BREAKS = """
from __future__ import annotations
import os, numpy as np
import json
from os import path
from . import sibling
from collections.abc import Iterable
from typing import List
x = l = 1; y = x
# y = x + 1
def NotSnake(a, flag=True, unused=[]):
    print(np.random.rand(3), object()._secret)
    assert type(a) == int
    global x
    out = []
    for i in range(3):
        out.append(i * 2)
    try:
        open("f")
    except Exception as e:
        raise Exception("no")
    if a:
        return None
    else:
        return
def later(rows: Iterable[int], names: List[str]) -> None:
    first = list(names)[0]
    listed = list([name for name in names])
    if first:
        if listed:
            pass
    x = 1; y = 2
"""

WIDE = "from __future__ import annotations\nimport numpy\ndef f(p: numpy.ndarray) -> None: ...\n# " + "wide " * 30
KNOTTED = "def knotted(a: int) -> None:\n" + "".join(f"    if a == {i}:\n        a += 1\n" for i in range(12))
PYTEST_STYLE = "import pytest\n\n\ndef test_x() -> None:\n    with pytest.raises(ValueError):\n        int('a')\n"


def project(tmp_path: Path, files: dict[str, str]) -> Path:
    """Write a small project under our configuration."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(BIN.parent)
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def output(folder: Path, *command: str) -> str:
    words = [str(BIN / command[0]), *command[1:]]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_every_ruff_group_bites(tmp_path: Path) -> None:
    files = {
        "src/simops/bad.py": BREAKS,
        "src/simops/knotted.py": KNOTTED,
        "src/simops/wide.py": WIDE,
        "tests/test_bad.py": PYTEST_STYLE,
    }
    report = output(project(tmp_path, files), "ruff", "check", "--no-cache", "--output-format=concise", ".")
    groups: list[str] = SETTINGS["ruff"]["lint"]["select"]
    codes = {line.split()[1] for line in report.splitlines() if ".py:" in line}
    silent = [group for group in groups if not any(code.startswith(group) for code in codes)]
    assert silent == [], report
    assert "E501" in codes


def test_printing_is_for_the_command_line_and_asserting_for_kits(tmp_path: Path) -> None:
    text = '"""Say."""\n\n\ndef say(word: str) -> None:\n    """Say it."""\n    assert word\n    print(word)\n'
    files = {f"src/simops/{name}/say.py": text for name in ("cli", "testing", "core")}
    report = output(project(tmp_path, files), "ruff", "check", "--no-cache", "--output-format=concise", ".")
    found = {tuple(line.split()[:2]) for line in report.splitlines() if ".py:" in line}
    places = {(place.split(":")[0].split("/")[2], code) for place, code in found}
    assert places == {("cli", "S101"), ("testing", "T201"), ("core", "S101"), ("core", "T201")}


def test_types_are_strict_in_source_and_tests(tmp_path: Path) -> None:
    loose = "def loose(a):\n    return a\n"
    report = output(project(tmp_path, {"src/simops/bad.py": loose, "tests/test_bad.py": loose}), "pyright")
    for place in ("src/simops/bad.py:1", "tests/test_bad.py:1"):
        assert any(place in line and "reportMissingParameterType" in line for line in report.splitlines()), report


def test_pytest_is_strict(tmp_path: Path) -> None:
    tests = """
import warnings, pytest
def test_warns(): warnings.warn("careful", stacklevel=1)
@pytest.mark.xfail
def test_mended(): pass
@pytest.mark.slow
def test_slow(): raise RuntimeError
def test_finds_the_project(): import tests.beside
"""
    folder = project(tmp_path, {"tests/test_it.py": tests, "tests/beside.py": ""})
    report = output(folder, "pytest", "-n0", "-p", "no:cacheprovider")
    assert "FAILED tests/test_it.py::test_warns - UserWarning: careful" in report
    assert "[XPASS(strict)]" in report
    assert "2 failed, 1 passed, 1 deselected" in report
    (folder / "tests/test_it.py").write_text("import pytest\n@pytest.mark.sloow\ndef test_x(): pass\n")
    assert "'sloow' not found in `markers`" in output(folder, "pytest", "-n0", "-p", "no:cacheprovider")


def test_every_benchmark_is_run_by_make() -> None:
    runnable = [path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()]
    recipes = (ROOT / "Makefile").read_text().partition("\nproof:")[2]
    assert [path.name for path in runnable if path.name not in recipes] == []
