"""Layers are a test: each contract is broken once, on a copy, to see that it holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, SOURCE

LINTER = Path(sys.executable).parent / "lint-imports"
HEAVY = ("mujoco", "pyarrow", "duckdb", "av", "PIL", "matplotlib", "rich", "ruamel")


def skeleton(tmp_path: Path, *edges: tuple[str, str]) -> str:
    """Copy only the packages, add modules that import as `edges` say, and give what the linter prints."""
    for package in [SOURCE, *(path for path in SOURCE.iterdir() if (path / "__init__.py").exists())]:
        copy = tmp_path / "src" / package.relative_to(SOURCE.parent)
        copy.mkdir(parents=True)
        (copy / "__init__.py").touch()
    for importer, imported in edges:
        module = tmp_path / "src" / "simops" / f"{importer}.py"
        module.parent.mkdir(exist_ok=True)
        (module.parent / "__init__.py").touch()
        with module.open("a") as file:
            file.write(f"import {imported}\n")
        if imported.startswith("simops."):
            (tmp_path / "src" / f"{imported.replace('.', '/')}.py").touch()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    command = [LINTER, "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def broken(report: str) -> set[str]:
    return set(re.findall(r"^(.*) BROKEN$", report, re.M))


def test_an_empty_house_keeps_every_contract(tmp_path: Path) -> None:
    report = skeleton(tmp_path)
    assert broken(report) == set()
    assert " 0 broken" in report


def test_every_step_up_or_sideways_is_seen(tmp_path: Path) -> None:
    edges = [
        ("core/a", "simops.data.a"),
        ("spec/b", "simops.data.b"),
        ("data/c", "simops.spec.c"),
        ("sim/d", "simops.tasks.d"),
        ("tasks/e", "simops.testing.e"),
        ("gate/h", "simops.sim.h"),
        ("testing/f", "simops.ops.f"),
        ("ops/g", "simops.cli.g"),
        ("ops/i", "simops.web.i"),
        ("web/j", "simops.cli.j"),
    ]
    report = skeleton(tmp_path, *edges)
    assert "Layers point down" in broken(report)
    for importer, imported in edges:
        assert f"{'simops.' + importer.replace('/', '.')} -> {imported}" in report


def test_a_new_package_must_choose_its_layer(tmp_path: Path) -> None:
    report = skeleton(tmp_path, ("attic/a", "json"))
    assert broken(report) == {"Layers point down"}
    assert "simops.attic" in report


def test_each_heavy_dependency_has_one_owner(tmp_path: Path) -> None:
    strays = [
        ("core/a", "rich"),
        ("tasks/b", "mujoco"),
        ("ops/c", "pyarrow"),
        ("sim/d", "duckdb"),
        ("spec/e", "av"),
        ("sim/f", "matplotlib"),
        ("gate/g", "mujoco"),
        ("ops/h", "pydrake"),
        ("learn/i", "rosbags"),
        ("ops/j", "ribs"),
        ("ops/k", "starlette"),
    ]
    report = skeleton(tmp_path, *strays)
    for importer, imported in strays:
        assert f"simops.{importer.replace('/', '.')} -> {imported}" in report


def test_a_cycle_of_modules_is_seen(tmp_path: Path) -> None:
    report = skeleton(tmp_path, ("sim/inner/a", "simops.sim.outer"), ("sim/outer", "simops.sim.inner.a"))
    assert broken(report) == {"No package imports its way back to itself"}


@pytest.mark.parametrize("package", ["core", "spec", "gate", "cli"])
def test_a_light_package_imports_nothing_heavy(package: str) -> None:
    names = [path.stem for path in (SOURCE / package).glob("[!_]*.py")]
    heavy = set(HEAVY) - ({"ruamel"} if package == "spec" else set())
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module('simops.{package}.' + name)\n"
        f"print(*[name for name in {sorted(heavy)!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
