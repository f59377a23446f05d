"""The tutorial is run, command by command, as its reader would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n([\s\S]*?)```", PAGE) for line in block.splitlines() if line.strip()]
PYTHON = re.findall(r"```python\n([\s\S]*?)```", PAGE)


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    folder = tmp_path
    assert len(COMMANDS) > 8
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] == "cd":
            folder /= words[1]
            continue
        assert words[0] == "simops"
        line = [sys.executable, "-m", "simops.cli", *words[1:]]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ})
        if words[1] == "render" and "missing-extra" in done.stderr:
            pytest.skip("no headless GL on this machine")
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("code", PYTHON)
def test_every_python_block_of_the_tutorial_holds(code: str) -> None:
    exec(compile(code, "tutorial", "exec"), {})  # noqa: S102 (our own page)
