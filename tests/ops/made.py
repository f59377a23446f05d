"""A task of a moment in a project folder of its own: hundreds of waves in a second."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.main import main

if TYPE_CHECKING:
    from simops.ops.factory import Progress

SIMOPS = (sys.executable, "-m", "simops.cli")

TASK = '''\
"""The pendulum, for a moment, and a policy that gives up on every third episode."""

from dataclasses import dataclass, replace

import numpy as np

from simops.core.protocols import Act
from simops.tasks.pendulum.task import pendulum


def quick(steps: int = 20):
    return replace(pendulum(), name="quick", horizon_s=0.02 * steps)


@dataclass(frozen=True)
class Broken:
    digest = "broken"

    def start(self, task, seeds):
        return {"bad": seeds % np.uint64(3) == 0}

    def act(self, observation, memory):
        return Act(np.where(memory["bad"], np.nan, 0.0)[:, None], memory)
'''

SPEC = """\
scene: {task: "./task.py:quick"}
engine: {use: pendulum, step_s: 0.01}
rollout: {parallel_envs: 4, episodes_per_env: 6}
"""


def project(folder: Path, spec: str = SPEC) -> Path:
    """Write a task and a spec; gives the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.py").write_text(TASK)
    path = folder / "spec.yaml"
    path.write_text(spec)
    return path


def rollout(spec: Path, out: Path, *changes: str) -> int:
    """Run the command here, in this process; gives its exit code."""
    return main(["rollout", str(spec), "--out", str(out), *(word for change in changes for word in ("--set", change))])


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder and its digest, but for the lock, whose number is a courtesy."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def unwatched(progress: Progress) -> None:
    """Nobody watches."""
    del progress
