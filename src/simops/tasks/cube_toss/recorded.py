"""Tosses of a real cube, as published with ContactNets: read, thrown again in any engine, and how far off that was.

The measure is that of Acosta, Yang and Posa, "Validating Robotics Simulators on Real-World Impacts" (RA-L 2022): every
toss begins at its first row, and is compared with its recording at every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from simops.core.params import Params
from simops.core.protocols import Engine
from simops.core.signal import Array
from simops.core.task import Task
from simops.data.table_read import Mapped, Table
from simops.tasks.cube_toss.task import SIDE_M, cube_toss

LENGTHS = 0.978
"""What the published recordings show of a metre: the cube rests at 0.978 of half its side, and falls as much slower."""
LAYOUT = Table(
    time="t",
    group=("toss",),
    signals={
        "position": Mapped(("x", "y", "z"), unit="m", frame="world"),
        "quaternion": Mapped(("qw", "qx", "qy", "qz"), frame="world"),
        "velocity": Mapped(("vx", "vy", "vz"), unit="m/s", frame="world"),
        "angular_velocity": Mapped(("wx", "wy", "wz"), unit="rad/s", frame="cube"),
    },
)
"""What the columns of a table of tosses mean: the state of the task, one row a frame of the motion capture."""


@final
@dataclass(frozen=True)
class Toss:
    """One recorded toss; row 0 is the whole initial condition."""

    name: str
    position: Array
    """(rows, 3) in metres; the table is at z = 0."""
    quaternion: Array
    """(rows, 4) world from cube, w first."""
    velocity: Array
    """(rows, 3) in the world."""
    angular_velocity: Array
    """(rows, 3) in the cube."""
    session: str = ""
    """Every toss is one of its own: they are split by name."""

    def __len__(self) -> int:
        return len(self.position)


class Off(NamedTuple):
    """How far a toss was from its recording, over all rows."""

    position_percent: float
    """Mean distance between the centres, in percent of the side."""
    rotation_deg: float
    """Mean angle between the orientations."""


class Tuned(NamedTuple):
    """How far many tosses were off: the mean over the tosses, and the spread among them."""

    position_percent: float
    rotation_deg: float
    position_spread: float
    rotation_spread: float


def recorded(path: Path) -> tuple[Toss, ...]:
    """Every toss of a table, or of all tables of a folder."""
    found: list[Toss] = []
    for recording in LAYOUT.read(path):
        [rows] = recording.streams
        one, two, three, four = (np.asarray(rows[name], np.float64) for name in LAYOUT.signals)
        found.append(Toss(recording.name, one, two, three, four))
    return tuple(found)


def thrown(
    engine: Engine,
    tosses: Sequence[Toss],
    values: Mapping[str, float],
    *,
    task: Task | None = None,
    lengths: float = LENGTHS,
) -> tuple[Off, ...]:
    """Throw every toss in an engine as it began, at these numbers of the task's belief, and say how far off it went.

    Args:
        engine: Any that runs the task.
        tosses: What was recorded.
        values: By name; the others are as the task has them.
        task: The built-in one, or one like it with other params.
        lengths: What the recording shows of a metre. The cube is thrown in metres, and seen as the recording sees.

    A toss that the engine breaks down in counts as left where it began.
    """
    task = task or cube_toss()
    nominal = {p.name: p.nominal for p in task.belief.params} | dict(values)
    ids, longest = np.arange(len(tosses)), max(len(toss) for toss in tosses)
    begun = {name: np.stack([getattr(toss, name)[0] for toss in tosses]) for name in LAYOUT.signals}
    for name in ("position", "velocity"):
        begun[name] = begun[name] / lengths
    still = np.zeros((len(tosses), 0), np.float32)
    position, quaternion = [begun["position"]], [begun["quaternion"]]
    with engine.open(task, len(tosses)) as sim:
        sim.reset(ids, Params.of([nominal] * len(tosses)), begun)
        for _ in range(longest - 1):
            sim.step(still)
            seen = sim.read()
            position.append(np.where(sim.diverged[:, None], position[0], seen["position"]))
            quaternion.append(np.where(sim.diverged[:, None], quaternion[0], seen["quaternion"]))
    ways, turns = lengths * np.stack(position, 1), np.stack(quaternion, 1)
    return tuple(off(toss, ways[i, : len(toss)], turns[i, : len(toss)]) for i, toss in enumerate(tosses))


def off(toss: Toss, position: Array, quaternion: Array) -> Off:
    """How far poses, one a row of the recording, are from it."""
    way = np.linalg.norm(position - toss.position, axis=1) / SIDE_M
    return Off(float(100.0 * way.mean()), float(np.rad2deg(apart(quaternion, toss.quaternion)).mean()))


def apart(one: Array, other: Array) -> Array:
    """The angle between orientations, (rows,) in radians, whatever the length and the sign of the quaternions."""
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return 2.0 * np.arccos(np.clip(np.abs((one * other).sum(axis=1)) / length, 0.0, 1.0))


def tuned(offs: Sequence[Off]) -> Tuned:
    """The mean over tosses, and the standard deviation among them."""
    rows = np.array(offs)
    position, rotation = rows.mean(axis=0)
    return Tuned(float(position), float(rotation), *(float(s) for s in rows.std(axis=0)))
