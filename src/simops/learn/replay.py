"""Recordings of a rig, replayed in an engine at many points of its params side by side.

A stretch begins in the recorded state, is driven by the recorded commands on the rig's grid, and is compared with what
was recorded at the same times. Where no velocity was recorded it is the slope of the positions around.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import chance
from simops.core.errors import DataError
from simops.core.params import Params
from simops.core.protocols import Engine, Sim
from simops.core.recording import Recording, Series
from simops.core.rig import EFFORT, POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.core.task import Task
from simops.learn.smooth import smooth

SHORTEST_S = 2.0
"""Less recorded motion than this, all together, is not learned from."""


@final
@dataclass(frozen=True)
class Track:
    """A recording on the rig's grid."""

    name: str
    time_s: Array
    """(n,)."""
    command: Array
    """(n, joints) in force at each point of the grid."""
    columns: Mapping[str, Array]
    """(n, joints) position, velocity and perhaps effort; NaN where nothing was recorded."""
    start: Array
    """(n, joints) velocity to begin in: recorded where it was, else the slope of the filtered positions."""


@final
@dataclass(frozen=True)
class Stretches:
    """What is replayed."""

    names: tuple[str, ...]
    begins: Mapping[str, Array]
    """(stretches, joints) position, velocity, and the command before."""
    commands: Array
    """(stretches, steps, joints)."""
    recorded: Array
    """(stretches, steps, signals times joints); NaN beyond the end of a recording."""
    sessions: Array
    """(stretches,) number of the recording."""
    rows: Array
    """(stretches,) the grid point of the recording that each begins at."""

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def steps(self) -> int:
        """Points of the grid that a stretch lasts."""
        return self.commands.shape[1]

    def pick(self, ids: Array) -> Stretches:
        """Some of them."""
        begins = {name: values[ids] for name, values in self.begins.items()}
        return Stretches(self.names, begins, self.commands[ids], self.recorded[ids], self.sessions[ids], self.rows[ids])

    def scale(self) -> Array:
        """(signals times joints,) how far each column gets within a stretch."""
        first = np.concatenate([self.begins[name] for name in (POSITION, VELOCITY)], axis=1)
        width = self.recorded.shape[2]
        first = np.pad(first, ((0, 0), (0, max(0, width - first.shape[1]))))[:, :width]
        moved: Array = np.sqrt(np.nanmean((self.recorded - first[:, None]) ** 2, axis=(0, 1)))
        return np.maximum(moved, 1e-12)


def track(rig: Rig, recording: Recording, *, cut_hz: float) -> Track:
    """Bring a recording onto the rig's grid; raises where it holds values that are no numbers, or nothing moves."""
    position, command = rig.series(recording, rig.position), rig.series(recording, rig.command)
    sound(recording.name, position, command)
    if len(position) < 4:
        raise DataError(f"{recording.name} has {len(position)} rows", where=rig.name, fault="LRN-004")
    time = _grid(position.time_s, rig.dt_s)
    columns = {POSITION: position.at(time)}
    slope = smooth(columns[POSITION], rig.dt_s, cut_hz, slope=1)
    if rig.velocity:
        velocity = rig.series(recording, rig.velocity)
        sound(recording.name, velocity)
        columns[VELOCITY] = velocity.at(time)
    else:
        columns[VELOCITY] = slope
    if rig.effort:
        effort = rig.series(recording, rig.effort)
        sound(recording.name, effort)
        columns[EFFORT] = effort.at(time)
    held = command.at(time + 1e-6 * rig.dt_s, how="hold")
    held[-1:] = np.where(np.isfinite(held[-1:]), held[-1:], held[-2:-1])
    first = np.flatnonzero(np.isfinite(held).all(axis=1))
    if not len(first):
        raise DataError(f"{recording.name} has no command while it has positions", where=rig.name, fault="LRN-001")
    last = held[first[-1]]
    held = np.where(np.isfinite(held), held, np.where(np.arange(len(held))[:, None] > first[-1], last, held[first[0]]))
    start = np.where(np.isfinite(columns[VELOCITY]), columns[VELOCITY], slope)
    return Track(recording.name, time, held, columns, start)


def _grid(time_s: Array, dt_s: float) -> Array:
    """The recording's own times where they are as even as the grid, so that no command comes a row late."""
    steps = np.diff(time_s)
    if np.all(np.abs(steps - dt_s) < 0.05 * dt_s) and abs(steps.mean() - dt_s) < 1e-3 * dt_s:
        return time_s
    return np.arange(time_s[0], time_s[-1] + 1e-9, dt_s)


def sound(name: str, *series: Series) -> None:
    """Raise where a signal holds values that are no numbers, or where all of them stand still."""
    for one in series:
        bad = int(np.count_nonzero(~np.isfinite(one.values)))
        if bad:
            what = f"{one.signal.name} of {name} holds {bad} of {one.values.size} values that are no numbers"
            raise DataError(what, attempt="cutting that part out of the recording", fault="LRN-001")


def enough(rig: Rig, recordings: Sequence[Recording]) -> None:
    """Raise where recordings are too short, or of something that does not move."""
    if not recordings:
        raise DataError("there is no recording to learn from", where=rig.name, fault="LRN-004")
    position = [rig.series(one, rig.position) for one in recordings]
    long_s = sum(float(one.time_s[-1] - one.time_s[0]) for one in position if len(one))
    if long_s < SHORTEST_S:
        what = f"{long_s:.2f} s of motion are too little to learn from"
        raise DataError(what, where=rig.name, attempt=f"at least {SHORTEST_S:g} s, better a minute", fault="LRN-004")
    still = [
        joint
        for i, joint in enumerate(rig.joints)
        if all(len(one) == 0 or np.nanmax(one.values[:, i]) == np.nanmin(one.values[:, i]) for one in position)
    ]
    if len(still) == len(rig.joints):
        what = f"nothing moves: {rig.position} of {', '.join(still)} is constant in every recording"
        raise DataError(what, where=rig.name, attempt="a recording of motion", fault="LRN-002")


def cut(
    tracks: Sequence[Track], names: Sequence[str], *, steps: int, stride: int = 0, most: int = 0, seed: int = 0
) -> Stretches:
    """Cut tracks into stretches of `steps` points, one every `stride`, at most `most` of them, evenly from all."""
    places: list[tuple[int, int]] = []
    for i, one in enumerate(tracks):
        last = max(1, len(one.time_s) - 1 - steps // 2)
        places += [(i, at) for at in range(0, last, stride or steps)]
    if most and len(places) > most:
        order = np.argsort(chance.seeds(seed, np.arange(len(places)), realm="stretches"), kind="stable")
        places = [places[i] for i in sorted(order[:most].tolist())]
    begins: dict[str, list[Array]] = {POSITION: [], VELOCITY: [], "command": []}
    commands, recorded = list[Array](), list[Array]()
    for i, at in places:
        one = tracks[i]
        begins[POSITION].append(one.columns[POSITION][at])
        begins[VELOCITY].append(one.start[at])
        begins["command"].append(one.command[max(0, at - 1)])
        commands.append(padded(one.command[at : at + steps], steps, hold=True))
        rows = np.concatenate([one.columns[name][at + 1 : at + 1 + steps] for name in names], axis=1)
        recorded.append(padded(rows, steps, hold=False))
    found = Stretches(
        tuple(names),
        {name: np.stack(rows) for name, rows in begins.items()},
        np.stack(commands),
        np.stack(recorded),
        np.array([i for i, _ in places]),
        np.array([at for _, at in places]),
    )
    whole = np.all([np.isfinite(v).all(axis=1) for v in found.begins.values()], axis=0)
    return found.pick(np.flatnonzero(whole))


@final
class Replay:
    """An engine held open for a rig's task, to replay stretches at any number of points."""

    def __init__(self, sim: Sim, task: Task) -> None:
        """Use the copies of `sim`."""
        self._sim, self._task = sim, task

    def __call__(self, stretches: Stretches, points: Params) -> Array:
        """(points, stretches, steps, columns) as the engine has them; NaN where a copy broke down."""
        many, count = len(points), len(stretches)
        which, stretch = np.repeat(np.arange(many), count), np.tile(np.arange(count), many)
        found = np.empty((many * count, *stretches.recorded.shape[1:]))
        for start in range(0, len(which), self._sim.n):
            some = slice(start, min(start + self._sim.n, len(which)))
            found[some] = self._run(stretches, stretch[some], points.rows(which[some]))
        return found.reshape(many, count, *stretches.recorded.shape[1:])

    def _run(self, stretches: Stretches, ids: Array, points: Params) -> Array:
        copies = np.arange(len(ids))
        everyone = None if len(ids) == self._sim.n else copies
        begins = {name: values[ids] for name, values in stretches.begins.items()}
        self._sim.reset(copies, points, begins)
        found = np.empty((len(ids), *stretches.recorded.shape[1:]))
        for step in range(stretches.steps):
            self._sim.step(stretches.commands[ids, step], everyone)
            read = self._sim.read()
            found[:, step] = np.concatenate([read[name][: len(ids)] for name in stretches.names], axis=1)
        found[self._sim.diverged[: len(ids)]] = np.nan
        return found


@contextmanager
def replaying(task: Task, engine: Engine, copies: int) -> Generator[Replay]:
    """Hold `copies` of the task open."""
    with engine.open(task, copies) as sim:
        yield Replay(sim, task)


def padded(rows: Array, steps: int, *, hold: bool) -> Array:
    """`rows` made `steps` long: by the last of them where it is held, else by NaN."""
    missing = steps - len(rows)
    if missing <= 0:
        return rows
    fill = np.repeat(rows[-1:], missing, axis=0) if hold else np.full((missing, rows.shape[1]), np.nan)
    return np.concatenate([rows, fill])
