"""Show an episode: run it or take it from a dataset, then film it or lay it out on a sheet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from simops.core.belief import parse
from simops.core.errors import DataError, EngineError, SpecError
from simops.core.params import Params
from simops.core.plugin import Registry
from simops.core.protocols import Engine, Policy
from simops.core.rollout import Recipe, wave
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.data.store import Dataset
from simops.sim.film import Cut, Made, Progress, film, gallery, sheet
from simops.sim.render import Camera, Look
from simops.spec.lock import read_lock
from simops.spec.plugins import installed_plugins
from simops.spec.run import Run


@final
@dataclass(frozen=True, kw_only=True)
class Order:
    """What to show, and as what."""

    target: str
    """A task, or the folder of a dataset."""
    episodes: tuple[int, ...] = (0,)
    """The first is filmed and laid out over time; all of them stand side by side in the gallery."""
    seed: int = 0
    """The root seed of episodes that are run."""
    policy: str = "expert"
    """`expert` is the task's own, or `zero` where it has none."""
    engine: str = "mujoco"
    task: str = ""
    """The task of a dataset, where it is not to be found as its lock or its record names it."""
    nominal: bool = False
    """Run with every param at its nominal value, so that the scene looks as modelled."""
    camera: str = ""
    width: int = 640
    height: int = 480
    look: Look = field(default_factory=Look)
    cut: Cut = field(default_factory=Cut)
    film: Path | None = None
    sheet: Path | None = None
    gallery: Path | None = None


@final
@dataclass(frozen=True)
class Shown:
    """The episode that was shown, and the files that show it."""

    trajectory: Trajectory
    made: tuple[Made, ...]


def show(order: Order, progress: Progress | None = None) -> Shown:
    """Make every picture of the order."""
    if not order.episodes or min(order.episodes) < 0:
        raise EngineError(f"no such episodes to show: {order.episodes}", attempt="numbers from 0")
    stored = Path(order.target).is_dir()
    task, engine, trajectories = _stored(order) if stored else _run(order)
    one = trajectories[0]
    made: list[Made] = []
    if order.film is not None:
        eye = Camera(order.camera, order.width, order.height)
        made.append(film(one, task, engine, order.film, camera=eye, look=order.look, cut=order.cut, progress=progress))
    cell = Camera(order.camera, order.width // 2, order.height // 2)
    if order.sheet is not None:
        made.append(sheet(one, task, engine, order.sheet, camera=cell, look=order.look, progress=progress))
    if order.gallery is not None:
        made.append(gallery(trajectories, task, engine, order.gallery, camera=cell, look=order.look, progress=progress))
    return Shown(one, tuple(made))


def _run(order: Order) -> tuple[Task, Engine, list[Trajectory]]:
    """Run the episodes side by side."""
    task = _task(order.target)
    engine = Registry[Engine]("engine").load(order.engine, allow_files=True)()
    name = (task.expert or "zero") if order.policy == "expert" else order.policy
    policy = Registry[Policy]("policy").load(name, allow_files=True)()
    recipe = Recipe(policy=policy, task=task, engine=engine, seed=order.seed)
    params = Params.nominal(task.belief.params, len(order.episodes)) if order.nominal else None
    with engine.open(task, len(order.episodes)) as sim:
        return task, engine, list(wave(recipe, sim, np.array(order.episodes), params=params))


def _stored(order: Order) -> tuple[Task, None, list[Trajectory]]:
    """Take the episodes from a dataset, and what its params change in the scene from its own record."""
    data = Dataset.open(order.target)
    trajectories = [data.trajectory(episode) for episode in order.episodes]
    task = _task(order.task) if order.task else _recorded(data)
    drawn_from = parse(data.header.belief) if data.header.belief else task.belief
    return dataclasses.replace(task, belief=drawn_from), None, trajectories


def _recorded(data: Dataset) -> Task:
    """The task as the lock of a dataset made it, with code files of the working folder; else the one of that name."""
    name = data.header.provenance.task
    if data.header.lock:
        try:
            return read_lock(data.header.lock, Run, plugins=installed_plugins(Path())).value.scene.task
        except SpecError as error:
            if name not in Registry[Task]("task").names():
                raise DataError(
                    f"the task {name!r} of the dataset is not here: {error.problems[0]}",
                    where=str(data.path),
                    attempt="the folder of its project, or --task ./file.py:task",
                ) from error
    return _task(name)


def _task(name: str) -> Task:
    return Registry[Task]("task").load(name, allow_files=True)()


def describe(params: Mapping[str, float]) -> str:
    """Params of an episode on one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in params.items())
