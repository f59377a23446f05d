"""Plugins: listed from metadata, loaded on use, and honest about who broke what."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from simops.core.errors import ExtraError, PluginError
from simops.core.plugin import Registry, listing

if TYPE_CHECKING:
    from pathlib import Path

OFFERS = """\
[simops.engine]
glass = acme_glass:Glass
torn = acme_torn:Torn
gone = acme_glass:Gone
heavy = acme_heavy:Heavy
number = acme_glass:NUMBER
"""

REQUIRES = """\
Requires-Dist: acme-solver>=1; extra == 'all'
Requires-Dist: acme-paint>=1; extra == 'all'
Requires-Dist: acme-solver>=1; extra == 'solver'
"""


def install(site: Path, name: str, offers: str, requires: str = "") -> None:
    """Write what pip would have: one distribution's metadata."""
    info = site / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n{requires}")
    (info / "entry_points.txt").write_text(offers)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path with a foreign package of good and bad engines."""
    (tmp_path / "acme_glass.py").write_text("NUMBER = 3\nclass Glass:\n    pass\n")
    (tmp_path / "acme_torn.py").write_text("raise RuntimeError('torn in half')\n")
    (tmp_path / "acme_heavy.py").write_text("import acme_solver\n")
    install(tmp_path, "acme", OFFERS, REQUIRES)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


@pytest.mark.usefixtures("site")
def test_listing_tells_the_package_and_imports_nothing() -> None:
    rows = {(row.kind, row.name, row.value, row.origin) for row in listing("engine")}
    assert ("engine", "torn", "acme_torn:Torn", "acme 1.2") in rows
    assert {"glass", "torn", "mujoco", "pendulum"} <= set(Registry[object]("engine").names())
    assert "acme_torn" not in sys.modules
    assert {row.kind for row in listing()} == {
        "engine",
        "task",
        "motor",
        "sensor",
        "policy",
        "trainer",
        "importer",
        "learner",
    }


@pytest.mark.usefixtures("site")
def test_a_plugin_loads_by_name() -> None:
    assert type(Registry[object]("engine").load("glass")()).__name__ == "Glass"


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("glas", "no engine is called 'glas'\n  try: 'glass'"),
        ("torn", "engine 'torn' of acme 1.2 does not load: RuntimeError: torn in half\n  at: acme_torn:Torn\n  try: "),
        ("gone", "engine 'gone' of acme 1.2 does not load: AttributeError: "),
        ("number", "engine 'number' is of type int, want a class or function that makes one"),
    ],
)
def test_what_is_wrong_is_said(name: str, words: str) -> None:
    with pytest.raises(PluginError) as caught:
        Registry[object]("engine").load(name)
    assert str(caught.value).startswith(words)


@pytest.mark.usefixtures("site")
def test_a_missing_dependency_names_the_extra() -> None:
    with pytest.raises(ExtraError, match="needs acme_solver") as caught:
        Registry[object]("engine").load("heavy")
    assert caught.value.attempt == "pip install 'acme[solver]'"


def test_one_name_from_two_packages_is_refused(site: Path) -> None:
    install(site, "rival", "[simops.engine]\nglass = rival:Glass\n")
    with pytest.raises(PluginError, match=r"engine 'glass' is offered by acme 1\.2 and rival 1\.2"):
        Registry[object]("engine").load("glass")
    assert [row.origin for row in listing("engine") if row.name == "glass"] == ["acme 1.2", "rival 1.2"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(PluginError, match="no plugin kind is called 'engin'"):
        Registry[object]("engin")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one file of the user's own."""
    text = "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine:\n    gain: float = 2.0\n"
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return tmp_path


def test_a_file_of_the_project_loads_once_per_content(project: Path) -> None:
    policies = Registry[object]("policy")
    mine = policies.load("./mine.py:Mine", allow_files=True, root=project)
    assert repr(mine()) == "Mine(gain=2.0)"
    assert policies.load("mine.py:Mine", allow_files=True, root=project) is mine
    (project / "mine.py").write_text((project / "mine.py").read_text().replace("2.0", "3.0"))
    assert repr(policies.load("./mine.py:Mine", allow_files=True, root=project)()) == "Mine(gain=3.0)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("./mine.py:Min", "./mine.py has no 'Min'"),
        ("./mine.py", "'./mine.py' names no policy"),
        ("./absent.py:Mine", "no Python file './absent.py'"),
        ("./broken.py:Mine", "policy './broken.py:Mine' does not load: ZeroDivisionError"),
        ("../other.py:Mine", "SEC-001 '../other.py' is outside the project"),
        ("/etc/passwd:root", "SEC-001 '/etc/passwd' is outside the project"),
        ("os:system", "no Python file 'os'"),
    ],
)
def test_a_bad_file_is_refused(project: Path, name: str, words: str) -> None:
    with pytest.raises(PluginError) as caught:
        Registry[object]("policy").load(name, allow_files=True, root=project)
    assert str(caught.value).startswith(words)


def test_files_are_refused_unless_allowed(project: Path) -> None:
    with pytest.raises(PluginError, match="may not come from a file") as caught:
        Registry[object]("policy").load(f"{project}/mine.py:Mine")
    assert caught.value.fault == "SEC-001"
