"""What was seen of a robot, kept: its trials as a dataset, some of them never to be learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simops.core import chance
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import Block, Trajectory
from simops.data.header import Header
from simops.data.store import Dataset
from simops.data.writer import Writer


class Halves(NamedTuple):
    """Trials, apart."""

    learned: list[Trajectory]
    held_out: list[Trajectory]


def keep(block: Block, task: Task, folder: Path) -> str:
    """Write trials down, and give the digest of what is there now."""
    header = Header(
        schema=block.schema,
        provenance=block.provenance,
        control_dt_s=task.control_dt_s,
        terms=("reward", *(term.name for term in task.reward)),
    )
    with Writer(folder, header) as writer:
        writer.append(block)
    return Dataset.open(folder).digest()


def read(folder: Path) -> list[Trajectory]:
    """Every trial, as it was seen; what was let out stands where what was asked for stood."""
    return [let_out(one) for block in Dataset.open(folder).blocks() for one in block]


def let_out(one: Trajectory) -> Trajectory:
    """The same trial with the action that the guard let out as the one that was asked for: it moved the robot."""
    return replace(one, columns={**one.columns, "action": one.columns["executed"]})


def apart(trials: Sequence[Trajectory], held_out: float) -> Halves:
    """Set a share of the trials aside, whole and by their numbers alone, so that none ever changes sides."""
    numbers = np.array([one.episode for one in trials], np.int64)
    drawn: Array = chance.uniform(chance.seeds(0, numbers, realm="held out"), "logbook")
    aside: list[bool] = (drawn < held_out).tolist()
    return Halves(
        [one for one, kept in zip(trials, aside, strict=True) if not kept],
        [one for one, kept in zip(trials, aside, strict=True) if kept],
    )
