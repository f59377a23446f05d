"""Recorded episodes to imitate, and students of a few units."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from simops.core.policy import Random
from simops.core.protocols import Engine, Policy
from simops.core.rollout import Recipe, wave
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.training import Course, Trainer
from simops.core.trajectory import Block
from simops.data.header import Header
from simops.data.writer import Writer
from simops.learn.imitation import Clone
from simops.learn.student import Student
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum


def always(c: Columns) -> Array:
    """Done by being there."""
    return np.ones(len(c["rate"]), bool)


def never(c: Columns) -> Array:
    """Not to be done."""
    return ~always(c)


ENGINE = Pendulum(step_s=0.02)
TASK = pendulum()
SHORT = replace(TASK, horizon_s=0.4, success=always, ends_on_success=False, success_hold_s=0.0)
COURSE = Course(task=SHORT, engine=ENGINE, seed=3)
SMALL = Student(hidden=(16, 16))
CLONE = Clone(student=SMALL, laps=6, updates=5, batch=32, checkpoint_every=2, threads=1)


def block_of(
    policy: Policy | None = None, *, n: int = 24, task: Task = SHORT, engine: Engine = ENGINE, seed: int = 0
) -> Block:
    """Some episodes."""
    recipe = Recipe(policy=policy or Expert(), task=task, engine=engine, seed=seed)
    with engine.open(task, n) as sim:
        return wave(recipe, sim, np.arange(n))


def recorded(
    path: Path, policy: Policy | None = None, *, n: int = 24, task: Task = SHORT, engine: Engine = ENGINE, seed: int = 0
) -> Path:
    """A dataset of some episodes."""
    recipe = Recipe(policy=policy or Expert(), task=task, engine=engine, seed=seed)
    with Writer.create(path, Header.of(recipe)) as writer:
        writer.append(block_of(policy, n=n, task=task, engine=engine, seed=seed))
    return path


def chance_data(path: Path) -> Path:
    """A dataset in which nobody ever succeeds."""
    return recorded(path, Random(), task=replace(SHORT, success=never))


def bytes_after(trainer: Trainer, laps: int, *, course: Course = COURSE, checkpoint: bytes = b"") -> bytes:
    """The checkpoint after so many laps more."""
    with trainer.open(course, checkpoint=checkpoint) as training:
        for _ in range(laps):
            training.advance()
        return training.checkpoint()
