"""What users and readers see, as text kept beside this file: trajectories and error screens.

`python -m tests.golden.screens` writes the files anew; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.errors import SimOpsError
from simops.core.params import Param
from simops.core.plugin import Registry
from simops.core.policy import Random, Tape
from simops.core.rollout import rollout
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Trajectory
from simops.sim.pendulum import Pendulum
from simops.sim.sensor import Noise
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum

FOLDER = Path(__file__).parent
EVERY = 25
"""Steps between the rows that are kept."""


def texts() -> dict[str, str]:
    """File name to what it must hold."""
    task, engine = pendulum(), Pendulum()
    return {
        "expert.txt": "\n".join(_shown(t) for t in rollout(Expert(), task, engine, n=2, seed=0)),
        "sensed.txt": "\n".join(
            _shown(t) for t in rollout(Random(5), task, engine, n=1, seed=1, sensors=(Noise({"angle": 0.1}),))
        ),
        "errors.txt": "\n".join(_said(act) for act in _mistakes()),
    }


def _shown(trajectory: Trajectory) -> str:
    """A trajectory to the fourth decimal, which no processor's sine changes."""
    lines = [f"episode {trajectory.episode} seed {trajectory.seed} {trajectory.outcome} after {len(trajectory)} steps"]
    lines += [f"{name} = {value:.6f}" for name, value in trajectory.params.items()]
    packed = trajectory.schema.pack(trajectory.columns)
    lines.append("step " + " ".join(f"{column:>15}" for column in trajectory.schema.scalars))
    for step in sorted({*range(0, len(packed), EVERY), len(packed) - 1}):
        lines.append(f"{step:>4} " + " ".join(f"{value + 0.0:>15.4f}" for value in packed[step]))
    return "\n".join(lines) + "\n"


def _said(act: Callable[[], object]) -> str:
    try:
        act()
    except SimOpsError as error:
        return f"[{error.code}]\n{error}\n"
    message = "a mistake went through"
    raise AssertionError(message)


def _mistakes() -> tuple[Callable[[], object], ...]:
    task = pendulum()
    gyro = Signal("gyro", (3,), "rad/s")
    mass = Param("mass", 1.0, "kg", low=0.1, high=2.0)
    return (
        lambda: gyro.check(np.zeros((4, 3))),
        lambda: gyro.check(np.zeros((4, 2), np.float32)),
        lambda: Schema((gyro,))["gyra"],
        lambda: Schema((gyro, Signal("gyro_0"))),
        lambda: Param("mass", 3.0, low=0.1, high=2.0),
        lambda: Box((mass,), (0.0,), (1.0,)),
        lambda: Registry[object]("engine").load("mujocoo"),
        lambda: Registry[object]("task").load("./mine.py:Thing"),
        lambda: rollout(Tape(np.zeros((3, 2))), task, Pendulum()),
        lambda: rollout(Random(), task, Pendulum(), sensors=(Noise({"angel": 0.1}),)),
    )


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
