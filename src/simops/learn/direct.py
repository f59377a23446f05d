"""Identification by effort: which effort the recorded motion would have wanted, against the effort that was recorded.

Motion is filtered without delay, one step of the engine says which acceleration the recorded effort would have given
there, and another how much effort makes up for the difference. Nothing is integrated, so no start has to be good, and
friction, which a replay of short stretches confuses with noise of the velocity, is seen for what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.params import Param, Params
from simops.core.protocols import Engine, Sim, Tunable
from simops.core.rig import EFFORT, POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.learn.replay import Track
from simops.learn.smooth import smooth

OPEN = ("motor_kp", "motor_kd", "motor_kff", "motor_delay_s", "motor_backlash")
"""Settings that are zero while a motor is driven by the effort it put out."""
GROUP_S = 0.5
"""Residuals nearer than this count as one group."""


@final
@dataclass(frozen=True)
class Rows:
    """Filtered motion, and the effort that went with it."""

    position: Array
    """(n, joints)."""
    velocity: Array
    change: Array
    """(n, joints) what the velocity changed by in the period that the effort stands for: about the instant where it
    was read beside the position, from there to the next point of the grid where it is a command that was held."""
    effort: Array
    ends: tuple[int, ...]
    """Where each recording's rows end."""
    groups: Array
    """(n,) rows of one number depend on each other."""

    def __len__(self) -> int:
        return len(self.position)


def rows_of(rig: Rig, tracks: Sequence[Track], cut_hz: float, *, most: int = 0) -> Rows:
    """Filter tracks; their ends, where a filter makes things up, are left out. At most about `most` rows, in runs."""
    parts: list[tuple[Array, Array, Array, Array, Array]] = []
    edge = round(1.0 / cut_hz / rig.dt_s)
    share = min(1.0, most / max(1, sum(len(one.time_s) for one in tracks))) if most else 1.0
    base = 0
    for one in tracks:
        keep = slice(edge, edge + max(8, round((len(one.time_s) - 2 * edge - 1) * share)))
        position = smooth(one.columns[POSITION], rig.dt_s, cut_hz)
        velocity = smooth(one.columns[POSITION], rig.dt_s, cut_hz, slope=1)
        effort = one.columns.get(EFFORT, one.command)
        if EFFORT in one.columns:  # read in the same instant as the position
            change = smooth(one.columns[POSITION], rig.dt_s, cut_hz, slope=2) * rig.dt_s
        else:  # held from its instant until the next
            change = np.diff(velocity, axis=0, append=velocity[-1:])
        groups = base + np.floor((one.time_s - one.time_s[0]) / GROUP_S).astype(int)
        base = int(groups[-1]) + 1
        whole = (position, velocity, change, effort, groups)
        parts.append(tuple(column[:-1][keep] for column in whole))  # pyright: ignore[reportArgumentType]
    ends = np.cumsum([len(part[0]) for part in parts])
    joined = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return Rows(joined[0], joined[1], joined[2], joined[3], tuple(ends.tolist()), joined[4])


@final
class Direct:
    """The effort that is missing, row by row, at any number of points."""

    def __init__(self, sim: Sim, rig: Rig, engine: Engine, cut_hz: float) -> None:
        """Use the copies of `sim`, which is open for the rig."""
        self._sim, self._rig, self._cut_hz = sim, rig, cut_hz
        motor = getattr(engine, "motor", None)
        settings = {p.name for p in motor.params} if isinstance(motor, Tunable) else set[str]()
        self._open = tuple(name for name in OPEN if name in settings)

    def __call__(self, rows: Rows, points: Params) -> Array:
        """(points, rows, joints) recorded effort less what the motion wants, low-pass filtered as the motion was."""
        found = np.stack([self._missing(rows, points.rows(slice(i, i + 1))) for i in range(len(points))])
        return np.stack([self._filtered(one, rows.ends) for one in found])

    def decimated(self, rows: Rows) -> Array:
        """Rows that are about independent of each other after the filter."""
        every = max(1, round(0.5 / self._cut_hz / self._rig.dt_s))
        return np.arange(every // 2, len(rows), every)

    def filtered(self, rows: Rows) -> Array:
        """The recorded effort, filtered the same way."""
        return self._filtered(rows.effort, rows.ends)

    def _filtered(self, values: Array, ends: tuple[int, ...]) -> Array:
        starts = (0, *ends[:-1])
        parts = [
            smooth(np.nan_to_num(values[a:b], nan=1e6), self._rig.dt_s, self._cut_hz)
            for a, b in zip(starts, ends, strict=True)
        ]
        return np.concatenate(parts)

    def _missing(self, rows: Rows, point: Params) -> Array:
        joints = len(self._rig.joints)
        changed = self._stepped(rows, point, rows.effort)
        scale = 1e-3 * np.maximum(np.abs(rows.effort).max(axis=0), 1e-3)
        slopes = np.empty((len(rows), joints, joints))
        for j in range(joints):
            more = rows.effort.copy()
            more[:, j] += scale[j]
            slopes[:, :, j] = (self._stepped(rows, point, more) - changed) / scale[j]
        short = np.nan_to_num(changed - rows.change, nan=1e6)
        slopes += 1e-12 * np.eye(joints)
        return np.linalg.solve(slopes, short[:, :, None])[:, :, 0]

    def _stepped(self, rows: Rows, point: Params, effort: Array) -> Array:
        found = np.empty_like(rows.velocity)
        names = (*point.names, *(name for name in self._open if name not in point.names))
        row = np.concatenate([point.values[0], np.zeros(len(names) - len(point.names))])
        for name in self._open:
            row[names.index(name)] = 0.0
        for start in range(0, len(rows), self._sim.n):
            part = slice(start, min(start + self._sim.n, len(rows)))
            count = part.stop - part.start
            copies = np.arange(count)
            begins = {POSITION: rows.position[part], VELOCITY: rows.velocity[part], "command": effort[part]}
            self._sim.reset(copies, Params(names, np.tile(row, (count, 1))), begins)
            self._sim.step(effort[part], None if count == self._sim.n else copies)
            found[part] = self._sim.read()[VELOCITY][:count] - rows.velocity[part]
            found[part][self._sim.diverged[:count]] = np.nan
        return found


@final
class DirectProblem:
    """The missing effort as residuals in units of what stays unexplained."""

    def __init__(self, direct: Direct, rows: Rows, rig: Rig, params: tuple[Param, ...]) -> None:
        """Ask `direct` about `rows`."""
        self._direct, self._rows = direct, rows
        self._kept = direct.decimated(rows)
        self._names = tuple(p.name for p in rig.params)
        self._rest = np.array([p.nominal for p in rig.params])
        self._index = [self._names.index(p.name) for p in params]
        self._scale: Array = np.maximum(np.std(direct.filtered(rows), axis=0), 1e-9)

    @property
    def groups(self) -> Array:
        """One number a residual: of its half second."""
        return np.repeat(self._rows.groups[self._kept], len(self._scale))

    def off(self, values: Array) -> Array:
        """(points, kept rows, joints)."""
        points = np.tile(self._rest, (len(values), 1))
        points[:, self._index] = values
        return self._direct(self._rows, Params(self._names, points))[:, self._kept]

    def weigh(self, point: Array) -> None:
        """Take what is left at `point` for noise."""
        left: Array = np.sqrt(np.mean(self.off(point[None])[0] ** 2, axis=0))
        self._scale = np.maximum(left, 1e-9)

    def __call__(self, values: Array) -> Array:
        """(points, residuals)."""
        return (self.off(values) / self._scale).reshape(len(values), -1)
