"""What a candidate says a recording should have been, and how far off it may be.

Stretches are replayed at the centre of the belief and at points drawn from it. An interval holds what the belief
leaves open and what stayed unexplained, by how far ahead, in the recordings that were learned from.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeAlias, final

import numpy as np

from simops.core.learning import Predicted
from simops.core.params import Params
from simops.core.protocols import Motor, Tunable
from simops.core.recording import Recording
from simops.core.rig import EFFORT, POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.learn.replay import Replay, Stretches, Track, cut, track

NINE_OF_TEN = 1.6449
NOISE = "noise.json"
DRIVE, UNDER = "drive", "under/"
"""What a motor remembers that it put out; a network keeps that of the motor under it."""
KNOTS = 24
Noise: TypeAlias = dict[str, Any]


@final
class Foresight:
    """A candidate, held open in an engine."""

    def __init__(
        self, replay: Replay, rig: Rig, motor: Motor | None, points: Params, *, cut_hz: float, ahead_s: float
    ) -> None:
        """Replay at `points`, the first of which is the centre, `ahead_s` far."""
        self._replay, self._rig, self._motor, self._points = replay, rig, motor, points
        self._cut_hz, self._ahead_s = cut_hz, ahead_s
        self.names = (POSITION, VELOCITY)

    def predict(self, recording: Recording, noise: Noise) -> Predicted:
        """A recording beside what it should have been, with intervals that `noise` widens."""
        one = track(self._rig, recording, cut_hz=self._cut_hz)
        stretches = self.stretches([one])
        whole = self.replayed(stretches, self._points)
        steps = stretches.steps
        ahead = (np.arange(steps) + 1) * self._rig.dt_s
        spread = np.nanstd(whole[1:], axis=0) if len(whole) > 2 else np.zeros_like(whole[0])
        recorded = self.recorded(stretches, [one])
        left = widened(noise, ahead, whole.shape[3])
        reach = NINE_OF_TEN * np.sqrt(np.nan_to_num(spread) ** 2 + left**2)
        kept = np.isfinite(recorded).all(axis=2)
        rows = (stretches.rows[:, None] + np.arange(steps) + 1)[kept]
        expected = whole[0][kept]
        labels, units = self.labels
        found = Predicted(
            names=labels,
            units=units,
            time_s=one.time_s[rows],
            recorded=recorded[kept],
            expected=expected,
            ahead_s=np.tile(ahead, (len(stretches), 1))[kept],
            low=expected - reach[kept],
            high=expected + reach[kept],
        )
        return replace(found, errors={"unexplained": found.unexplained, **self._relative(found)})

    def noise(self, tracks: list[Track], *, most: int, seed: int) -> bytes:
        """What stays unexplained in what was learned from, by how far ahead."""
        stretches = self.stretches(tracks, most=most, seed=seed)
        off = self.replayed(stretches, self._points.rows(slice(0, 1)))[0] - self.recorded(stretches, tracks)
        knots = np.unique(np.geomspace(1, stretches.steps, KNOTS).astype(int)) - 1
        ahead = (knots + 1) * self._rig.dt_s
        near = [np.abs(off[:, max(0, k - max(2, k // 8)) : k + max(2, k // 8) + 1]) for k in knots]
        spread = [(reached(part) / NINE_OF_TEN).tolist() for part in near]
        return json.dumps({"ahead_s": ahead.tolist(), "spread": spread}).encode()

    def stretches(self, tracks: list[Track], *, most: int = 0, seed: int = 0) -> Stretches:
        """Tracks in stretches as long as is predicted ahead, or as the longest track."""
        longest = max(len(one.time_s) for one in tracks) - 1
        steps = min(longest, max(2, round(self._ahead_s / self._rig.dt_s)))
        return cut(tracks, self.names, steps=steps, most=most, seed=seed)

    def replayed(self, stretches: Stretches, points: Params) -> Array:
        """(points, stretches, steps, columns) with the motors' effort last, where that is predicted, too."""
        found = self._replay(stretches, points)
        if not self._drives:
            return found
        return np.concatenate([found, np.stack([self._efforts(stretches, one) for one in found])], axis=3)

    def recorded(self, stretches: Stretches, tracks: list[Track]) -> Array:
        """(stretches, steps, columns) what is compared with that."""
        if not self._drives:
            return stretches.recorded
        efforts = np.full((*stretches.recorded.shape[:2], len(self._rig.joints)), np.nan)
        for i in range(len(stretches)):
            session, at = int(stretches.sessions[i]), int(stretches.rows[i])
            rows = tracks[session].columns[EFFORT][at + 1 : at + 1 + stretches.steps]
            efforts[i, : len(rows)] = rows
        return np.concatenate([stretches.recorded, efforts], axis=2)

    @property
    def labels(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names and units of the columns."""
        unit, joints = self._rig.unit, self._rig.joints
        units = {POSITION: unit, VELOCITY: f"{unit}/s", EFFORT: "N m" if unit == "rad" else "N"}
        names = (*self.names, EFFORT) if self._drives else self.names
        return tuple(f"{n}_{j}" for n in names for j in joints), tuple(units[n] for n in names for _ in joints)

    @property
    def _drives(self) -> bool:
        return bool(self._rig.effort) and self._motor is not None

    def _efforts(self, stretches: Stretches, states: Array) -> Array:
        """What the motors put out along predicted states: their law, asked outside of the engine."""
        motor, joints = self._motor, len(self._rig.joints)
        count, steps = len(states), stretches.steps
        found = np.full((count, steps, joints), np.nan)
        if motor is None:
            return found
        memory = motor.start(count, joints)
        if isinstance(motor, Tunable):
            centre = self._points.rows(np.zeros(count, np.int64))
            memory = motor.tune(memory, centre)
        for step in range(steps):
            command = stretches.commands[:, min(step + 1, steps - 1)]
            position, velocity = states[:, step, :joints], states[:, step, joints : 2 * joints]
            torque, memory = motor.torque(command, position, velocity, memory, dt_s=self._rig.dt_s)
            found[:, step] = memory.get(DRIVE, memory.get(UNDER + DRIVE, torque))
        return found

    def _relative(self, found: Predicted) -> dict[str, float]:
        """Error of each signal against its size, in percent, where the prediction runs on for as long as it can."""
        shares: dict[str, float] = {}
        joints = len(self._rig.joints)
        for i, name in enumerate((*self.names, EFFORT) if self._drives else self.names):
            columns = slice(i * joints, (i + 1) * joints)
            size = float(np.linalg.norm(found.recorded[:, columns]))
            off = float(np.linalg.norm(np.nan_to_num(found.expected[:, columns] - found.recorded[:, columns], nan=1e6)))
            shares[f"{name} %"] = 100 * off / size if size else 0.0
        return shares


def reached(sizes: Array) -> Array:
    """(columns,) what nine of ten more stretches stay below, from (stretches, steps, columns) of which some are NaN.

    Of a few stretches, the value that nine of ten stay below is too small for the next one: with n of them the
    (n + 1) times 0.9th in order is the one that holds, and the largest where there is no such.
    """
    many = int(np.isfinite(sizes).all(axis=2).sum(axis=0).max())
    share = min(1.0, max(0.9, (0.9 * (many + 1) - 1) / max(1, many - 1)))
    found: Array = np.nan_to_num(np.nanquantile(sizes, share, axis=0)).mean(axis=0)
    return found


def widened(noise: Noise, ahead: Array, columns: int) -> Array:
    """(len(ahead), columns) standard deviation of what stays unexplained."""
    if not noise:
        return np.zeros((len(ahead), columns))
    spread = np.array(noise["spread"], float)
    return np.stack([np.interp(ahead, noise["ahead_s"], spread[:, i]) for i in range(columns)], axis=1)
