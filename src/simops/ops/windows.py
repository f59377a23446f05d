"""Stretches of recorded trajectories, replayed in an engine at many points of its params side by side.

A stretch begins in the recorded state, is driven by the recorded commands, and is compared row by row with what was
recorded. It is short, so that a small error stays one, and there are many.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from simops.core import chance
from simops.core.errors import DataError, EngineError, SceneError
from simops.core.params import Params
from simops.core.protocols import Engine, Sim
from simops.core.signal import Array, Columns
from simops.core.task import Body, Joint, Task
from simops.core.trajectory import Trajectory
from simops.learn.replay import padded

Driven: TypeAlias = Literal["action", "executed"]


@final
@dataclass(frozen=True)
class Stretches:
    """What is replayed: where each stretch begins, what drives it, and what was recorded in it."""

    task: Task
    names: tuple[str, ...]
    """Signals that are compared; each begins a stretch too."""
    begins: Columns
    """(stretches, ...) the recorded state that each begins in, and the command before it."""
    commands: Array
    """(stretches, steps, action size)."""
    recorded: Array
    """(stretches, steps, scalars), packed signal by signal; NaN beyond the end of an episode."""
    sessions: Array
    """(stretches,) which trajectory each comes from."""

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def steps(self) -> int:
        """Control steps that a stretch lasts."""
        return self.commands.shape[1]

    @property
    def scalars(self) -> tuple[str, ...]:
        """What is compared, one name a column."""
        return tuple(column for name in self.names for column in self.task.state_schema[name].scalars)

    def rows(self, ids: Array) -> Stretches:
        """Some of them."""
        begins = {name: values[ids] for name, values in self.begins.items()}
        return Stretches(self.task, self.names, begins, self.commands[ids], self.recorded[ids], self.sessions[ids])

    def scale(self) -> Array:
        """(scalars,) how far each column gets within a stretch: what a prediction that nothing moves is off by."""
        first = self._first()
        moved = np.sqrt(np.nanmean((self.recorded - first[:, None]) ** 2, axis=(0, 1)))
        return np.maximum(moved, 1e-9)

    def _first(self) -> Array:
        return np.concatenate([self.begins[name].reshape(len(self), -1) for name in self.names], axis=1)


def kinematic(task: Task, engine: Engine) -> tuple[str, ...]:
    """Signals of the state that an episode can begin with, found by trying; raises where there is none."""
    tried = [r for r in task.state if isinstance(r.source, Joint | Body) and getattr(r.source, "what", "") != "torque"]
    found: list[str] = []
    zero = np.zeros(1, np.int64)
    with engine.open(task, 1) as sim:
        points = Params.nominal(task.belief.params, 1)
        sim.reset(zero, points, {})
        rest = {name: np.array(values) for name, values in sim.read().items()}
        for reading in tried:
            try:
                sim.reset(zero, points, {reading.signal.name: rest[reading.signal.name]})
            except (EngineError, SceneError):
                continue
            found.append(reading.signal.name)
    if not found:
        raise DataError(f"no state of {task.name} can be begun in, so nothing can be replayed", fault="LRN-003")
    return tuple(found)


def cut(
    task: Task,
    names: Sequence[str],
    trajectories: Sequence[Trajectory],
    *,
    steps: int,
    most: int = 256,
    driven: Driven = "action",
    seed: int = 0,
) -> Stretches:
    """Cut trajectories into stretches of `steps` control steps, at most `most` of them, evenly from all."""
    places: list[tuple[int, int]] = []
    for i, one in enumerate(trajectories):
        places += [(i, at) for at in range(0, max(1, len(one) - steps // 2), steps)]
    if len(places) > most:
        order = np.argsort(chance.seeds(seed, np.arange(len(places)), realm="stretches"), kind="stable")
        places = [places[i] for i in sorted(order[:most].tolist())]
    begins: dict[str, list[Array]] = {name: [] for name in (*names, task.action.name)}
    commands, recorded = list[Array](), list[Array]()
    for i, at in places:
        one = trajectories[i]
        for name in names:
            begins[name].append(one[name][at].astype(float))
        asked = one[driven][: len(one)].reshape(len(one), -1).astype(float)
        begins[task.action.name].append(asked[max(0, at - 1)].reshape(task.action.shape))
        commands.append(padded(asked[at : at + steps], steps, hold=True))
        rows = np.concatenate(
            [one[name][at + 1 : at + 1 + steps].reshape(-1, one.schema[name].size) for name in names], 1
        )
        recorded.append(padded(rows.astype(float), steps, hold=False))
    found = Stretches(
        task,
        tuple(names),
        {name: np.stack(rows) for name, rows in begins.items()},
        np.stack(commands),
        np.stack(recorded),
        np.array([i for i, _ in places]),
    )
    sound = np.all([np.isfinite(v).reshape(len(found), -1).all(1) for v in found.begins.values()], axis=0)
    return found.rows(np.flatnonzero(sound & np.isfinite(found.commands).all(axis=(1, 2))))


@final
class Replays:
    """An engine held open for one task, to replay stretches at any number of points."""

    def __init__(self, sim: Sim, task: Task) -> None:
        """Use the copies of `sim`."""
        self._sim, self._task = sim, task

    def __call__(self, stretches: Stretches, points: Params) -> Array:
        """(points, stretches, steps, scalars) predicted minus recorded; NaN where a copy broke down."""
        many, count = len(points), len(stretches)
        which = np.repeat(np.arange(many), count)
        stretch = np.tile(np.arange(count), many)
        found = np.empty((many * count, *stretches.recorded.shape[1:]), np.float32)
        for start in range(0, len(which), self._sim.n):
            some = slice(start, min(start + self._sim.n, len(which)))
            found[some] = self._run(stretches, stretch[some], points.rows(which[some]))
        return found.reshape(many, count, *stretches.recorded.shape[1:])

    def _run(self, stretches: Stretches, ids: Array, points: Params) -> Array:
        copies = np.arange(len(ids))
        everyone = None if len(ids) == self._sim.n else copies
        begins = {name: values[ids] for name, values in stretches.begins.items()}
        self._sim.reset(copies, points, begins)
        off = np.empty((len(ids), *stretches.recorded.shape[1:]))
        for step in range(stretches.steps):
            command = stretches.commands[ids, step].reshape(len(ids), *self._task.action.shape)
            self._sim.step(command, everyone)
            read = self._sim.read()
            off[:, step] = _differences(stretches, {n: read[n][: len(ids)] for n in stretches.names}, ids, step)
        off[np.isnan(stretches.recorded[ids])] = 0.0  # beyond the end there is nothing to be off from
        off[self._sim.diverged[: len(ids)]] = np.nan
        return off


@contextmanager
def replaying(task: Task, engine: Engine, copies: int) -> Generator[Replays]:
    """Hold `copies` of the task open."""
    with engine.open(task, copies) as sim:
        yield Replays(sim, task)


def _differences(stretches: Stretches, read: Columns, ids: Array, step: int) -> Array:
    want = stretches.recorded[ids, step]
    parts: list[Array] = []
    at = 0
    for name in stretches.names:
        got = read[name].reshape(len(ids), -1).astype(float)
        mine = want[:, at : at + got.shape[1]]
        at += got.shape[1]
        source = stretches.task.sources[name]
        if isinstance(source, Body) and source.what == "quaternion":  # q and -q are the same attitude
            got = got * np.where((got * np.nan_to_num(mine)).sum(1) < 0, -1.0, 1.0)[:, None]
        parts.append(got - mine)
    return np.concatenate(parts, axis=1)
