"""The wheel, alone in an empty environment, can say what it is and what it lacks."""

from __future__ import annotations

import subprocess
import sys
import venv
from typing import TYPE_CHECKING

import pytest

from tests.house.tree import ROOT, SOURCE

if TYPE_CHECKING:
    from pathlib import Path


def said(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_the_bare_package_installs_and_speaks(tmp_path: Path) -> None:
    built = said(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    assert built.startswith("0\n"), built
    [wheel] = tmp_path.glob("simops-*.whl")
    venv.create(tmp_path / "bare", with_pip=True)
    python = tmp_path / "bare" / "bin" / "python"
    installed = said(python, "-m", "pip", "install", "--quiet", wheel)
    assert installed.startswith("0\n"), installed
    simops = python.parent / "simops"
    assert said(simops, "--help").startswith("0\nusage: simops")
    assert "simops.sim.mujoco:Mujoco" in said(simops, "plugins")
    load = "from simops.core.plugin import Registry; Registry('engine').load('mujoco')()"
    assert "pip install 'simops[sim]'" in said(python, "-c", load)
    packed = "from pathlib import Path; import simops; print(*Path(simops.__file__).parent.rglob('*.*'))"
    inside = said(python, "-c", packed)
    assert all(
        f"{path.relative_to(SOURCE)}" in inside
        for path in [SOURCE / "py.typed", *SOURCE.rglob("*.xml"), SOURCE / "web/static/page.js"]
    )
