"""What wears on real machines, between a command and its effect and between the truth and what is read of it.

Every number is a function of the trial's seed and the time, so a trial is the same whatever runs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import chance
from simops.core.protocols import Sim
from simops.core.signal import Array, Columns
from simops.core.task import Task


@final
@dataclass(frozen=True, kw_only=True)
class Wear:
    """How worn; 0 means like new."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    lost: float = 0.0
    backlash: float = 0.0
    stick: float = 0.0
    weakness: float = 0.0
    no_load_rad_s: float = 1e9
    kp: float = 0.0
    """Stiffness of position servos; 0 where the command is a torque."""
    kd: float = 0.0
    stall: float = 0.0
    position: str = ""
    velocity: str = ""


@final
class Drive:
    """The way of commands into a simulation that is stepped `ticks` times a control period."""

    def __init__(self, wear: Wear, task: Task, sim: Sim, ticks: int) -> None:
        """Stand before `sim`, which is open for the task with a control period of one tick."""
        self._wear, self._task, self._sim, self._ticks = wear, task, sim, ticks
        self._dt_s = task.control_dt_s / ticks

    def begin(self, seeds: Array, rest: Array) -> None:
        """Begin trials; `rest` (n, size) is what was commanded before."""
        self._seeds, self._step = seeds, 0
        self._sent: list[tuple[Array, Array]] = [(np.full(len(seeds), -1e9), rest.astype(float))]
        self._arrived = self._moved = rest.astype(float)

    def step(self, action: Array, ids: Array) -> None:
        """Command copies `ids`, rising, for one control period; `action` has a row for every trial."""
        wear, at_s = self._wear, self._step * self._task.control_dt_s
        late = wear.delay_s + wear.jitter_s * chance.uniform(self._seeds, "jitter", step=self._step)
        gone = chance.uniform(self._seeds, "lost", step=self._step) < wear.lost
        self._sent.append((np.where(gone, np.inf, at_s + late), action.reshape(len(self._seeds), -1).astype(float)))
        self._sent = self._sent[-self._kept() :]
        for tick in range(self._ticks):
            now_s = at_s + tick * self._dt_s + 1e-9
            for due, command in self._sent:  # the newest that has arrived counts
                here = due <= now_s
                self._arrived = np.where(here[:, None], command, self._arrived)
            command = self._limited(self._geared())
            shaped = command.reshape(len(self._seeds), *self._task.action.shape).astype(np.float32)
            self._sim.step(shaped[ids], ids)
        self._step += 1

    def _kept(self) -> int:
        return 2 + int(np.ceil((self._wear.delay_s + self._wear.jitter_s) / self._task.control_dt_s))

    def _geared(self) -> Array:
        """After stick and play: what the command moves."""
        wear, wanted = self._wear, self._arrived
        slips = np.abs(wanted - self._moved) > wear.stick
        played = np.clip(self._moved, wanted - wear.backlash / 2, wanted + wear.backlash / 2)
        self._moved = np.where(slips, played, self._moved)
        return self._moved

    def _limited(self, command: Array) -> Array:
        """After the motor's own limits: a torque, or the target whose servo torque is within them."""
        wear = self._wear
        if not wear.velocity:
            return command * (1 - wear.weakness)
        read = self._sim.read()
        speed = read[wear.velocity].reshape(self._sim.n, -1)[: len(command)]
        joints = min(speed.shape[1], command.shape[1])
        speed, wanted = speed[:, :joints], command[:, :joints]
        high = wear.stall * (1 - wear.weakness) * np.clip(1 - speed / wear.no_load_rad_s, 0, 1)
        low = -wear.stall * (1 - wear.weakness) * np.clip(1 + speed / wear.no_load_rad_s, 0, 1)
        if wear.kp <= 0:
            held = np.clip(wanted * (1 - wear.weakness), low, high)
        else:
            angle = read[wear.position].reshape(self._sim.n, -1)[: len(command), :joints]
            torque = wear.kp * (wanted - angle) - wear.kd * speed
            held = angle + (np.clip(torque, low, high) + wear.kd * speed) / wear.kp
        return np.concatenate([held, command[:, joints:]], axis=1)


@final
class Gauges:
    """What is read of the truth: noisy, biased, now and then not at all."""

    def __init__(self, noise: Mapping[str, float], bias: Mapping[str, float], dropout: float, seed: int) -> None:
        """Biases are the machine's own and stay for its life."""
        self._noise, self._spread, self._dropout = noise, bias, dropout
        self._own = chance.seeds(seed, np.zeros(1, np.int64), realm="gauges")

    def begin(self, seeds: Array) -> None:
        """Begin trials."""
        self._seeds, self._step = seeds, 0
        self._last: dict[str, Array] = {}

    def read(self, columns: Columns) -> dict[str, Array]:
        """Readings of this step."""
        stale = chance.uniform(self._seeds, "dropout", step=self._step) < self._dropout
        found: dict[str, Array] = {}
        for name, rows in columns.items():
            seen = np.array(rows[: len(self._seeds)], float)
            if name in self._noise:
                seen += self._noise[name] * chance.normal(self._seeds, f"noise/{name}", seen.shape[1:], step=self._step)
            if name in self._spread:
                seen += self._spread[name] * chance.normal(self._own, f"bias/{name}", seen.shape[1:])
            if name in self._last:
                seen = np.where(stale.reshape(-1, *([1] * (seen.ndim - 1))), self._last[name], seen)
            self._last[name] = seen
            found[name] = seen.astype(np.float32)
        self._step += 1
        return found
