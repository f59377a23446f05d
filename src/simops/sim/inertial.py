"""Inertial units and force sensors: several groups of axes that are read together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, final

import numpy as np

from simops.core.chance import normal
from simops.core.params import Param
from simops.core.protocols import Memory, Sensed
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.sim.axes import Amount, Axes
from simops.sim.dial import dial, still
from simops.sim.timing import Timing, carried, kept, params_of
from simops.spec.bounds import AtLeast


@final
@dataclass(frozen=True, kw_only=True)
class Imu:
    """A gyroscope, an accelerometer and the attitude worked out from them, read at the same instants."""

    name: str = "imu"
    """What its params begin with, as `imu_gyro_white`."""
    gyro: Axes = field(default_factory=lambda: Axes(signal="gyro"))
    """Angular velocity in the sensor's frame [rad/s]."""
    accelerometer: Axes = field(default_factory=Axes)
    """Specific force in the sensor's frame [m/s^2]."""
    attitude: Axes = field(default_factory=Axes)
    """A quaternion w, x, y, z; its noise and bias are small turns about the sensor's axes [rad]."""
    timing: Timing = field(default_factory=Timing)

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return params_of(self.name, self, self.timing)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals it measures; raises if the task has no such signal."""
        return _names(task, self._groups, self.timing)

    def start(self, task: Task, draw: Draw) -> Memory:
        """What stays for this episode and the readings under way."""
        memory: dict[str, Array] = {}
        for part, axes in self._groups.items():
            size = 3 if part == "attitude" else task.state_schema[axes.signal].size
            memory |= kept(axes.start(draw, f"{self.name}_{part}", size), f"{part}/")
        width = sum(task.state_schema[axes.signal].size for axes in self._groups.values())
        return memory | self.timing.start(task, draw, self.name, width)

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """What it feels, at the time it was read, with the noise of that reading."""
        groups, after, felt = self._groups, dict(memory), list[Array]()
        dt_s = float(memory["dt_s"][0])
        for part, axes in groups.items():
            own, flat = carried(memory, f"{part}/"), _flat(columns[axes.signal])
            turned = np.zeros((len(flat), 3)) if part == "attitude" else flat
            wrong = axes.feel(turned, draw, own, f"{self.name}_{part}", dt_s)
            felt.append(_turned(flat, wrong) if part == "attitude" else wrong)
            after |= kept(own, f"{part}/")
        if not felt:
            return Sensed(columns, memory)
        sample = self.timing.sample(np.concatenate(felt, axis=1), draw, after, self.name)
        shown, rate_hz = dict(columns), self.timing.rate_hz or 1 / dt_s
        at = 0
        for part, axes in groups.items():
            rows = columns[axes.signal]
            read = sample.rows[:, at : at + _flat(rows).shape[1]]
            at += read.shape[1]
            name = f"{self.name}_{part}"
            noise = axes.noise(draw, sample.number, name, 3 if part == "attitude" else read.shape[1], rate_hz)
            told = _turned(read, noise) if part == "attitude" else axes.told(read + noise, draw, name)
            shown[axes.signal] = told.reshape(rows.shape).astype(np.float32)
        return Sensed(self.timing.stamped(shown, sample.age_s), sample.memory)

    @property
    def _groups(self) -> Mapping[str, Axes]:
        parts = {"gyro": self.gyro, "accelerometer": self.accelerometer, "attitude": self.attitude}
        return {part: axes for part, axes in parts.items() if axes.signal}


@final
@dataclass(frozen=True, kw_only=True)
class ForceTorque:
    """A force and torque sensor with a low-pass filter before its readings are taken."""

    name: str = "wrist"
    """What its params begin with, as `wrist_force_white`."""
    force: Axes = field(default_factory=lambda: Axes(signal="force"))
    """[N]."""
    torque: Axes = field(default_factory=Axes)
    """[N m]."""
    lever_m: Amount = 0.0
    """Spread of the torque that it shows for each force, drawn once an episode [m]: cross-talk between the two."""
    cutoff_hz: Annotated[float, AtLeast(0.0)] = 0.0
    """Of a first-order low-pass filter; 0 for none."""
    timing: Timing = field(default_factory=Timing)

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return params_of(self.name, self, self.timing)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals it measures; raises if the task has no such signal."""
        return _names(task, self._groups, self.timing)

    def start(self, task: Task, draw: Draw) -> Memory:
        """What stays for this episode, the filter at rest, and the readings under way."""
        memory: dict[str, Array] = {}
        sizes = {part: task.state_schema[axes.signal].size for part, axes in self._groups.items()}
        for part, axes in self._groups.items():
            memory |= kept(axes.start(draw, f"{self.name}_{part}", sizes[part]), f"{part}/")
        width, n = sum(sizes.values()), len(draw.seeds)
        if not still(draw, f"{self.name}_cutoff_hz", self.cutoff_hz):
            memory["filtered"] = np.full((n, width), np.nan)
            memory["before"] = np.full((n, width), np.nan)
        if len(sizes) > 1 and not still(draw, f"{self.name}_lever_m", self.lever_m):
            spread = dial(draw, f"{self.name}_lever_m", self.lever_m)[:, None, None]
            memory["lever"] = normal(draw.seeds, f"{self.name}/lever", (sizes["torque"], sizes["force"])) * spread
        return memory | self.timing.start(task, draw, self.name, width)

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """What it feels, filtered, at the time it was read, with the noise of that reading."""
        groups, after, felt = self._groups, dict(memory), dict[str, Array]()
        dt_s = float(memory["dt_s"][0])
        for part, axes in groups.items():
            own = carried(memory, f"{part}/")
            felt[part] = axes.feel(_flat(columns[axes.signal]), draw, own, f"{self.name}_{part}", dt_s)
            after |= kept(own, f"{part}/")
        if not felt:
            return Sensed(columns, memory)
        if "lever" in memory:
            force = _flat(columns[self.force.signal])
            for i in range(force.shape[1]):
                felt["torque"] = felt["torque"] + memory["lever"][:, :, i] * force[:, i : i + 1]
        whole = self._filtered(np.concatenate(list(felt.values()), axis=1), draw, after, dt_s)
        sample = self.timing.sample(whole, draw, after, self.name)
        shown, rate_hz, at = dict(columns), self.timing.rate_hz or 1 / dt_s, 0
        for part, axes in groups.items():
            rows, width = columns[axes.signal], felt[part].shape[1]
            name = f"{self.name}_{part}"
            read = sample.rows[:, at : at + width] + axes.noise(draw, sample.number, name, width, rate_hz)
            shown[axes.signal] = axes.told(read, draw, name).reshape(rows.shape).astype(np.float32)
            at += width
        return Sensed(self.timing.stamped(shown, sample.age_s), sample.memory)

    def _filtered(self, rows: Array, draw: Draw, memory: dict[str, Array], dt_s: float) -> Array:
        """The filter's output at the end of a step over which its input went straight from the last to this one."""
        if "filtered" not in memory:
            return rows
        cutoff = dial(draw, f"{self.name}_cutoff_hz", self.cutoff_hz)[:, None]
        fresh = np.isnan(memory["before"])
        before, out = np.where(fresh, rows, memory["before"]), np.where(fresh, rows, memory["filtered"])
        x = 2 * np.pi * np.maximum(cutoff, 1e-9) * dt_s
        keep, ramp = np.exp(-x), -np.expm1(-x) / x
        through = rows + (out - before) * keep - (rows - before) * ramp
        memory["filtered"] = np.where(cutoff > 0, through, rows)
        memory["before"] = rows
        return memory["filtered"]

    @property
    def _groups(self) -> Mapping[str, Axes]:
        return {part: axes for part, axes in {"force": self.force, "torque": self.torque}.items() if axes.signal}


def _names(task: Task, groups: Mapping[str, Axes], timing: Timing) -> tuple[str, ...]:
    return tuple(task.state_schema[axes.signal].name for axes in groups.values()) + timing.names(task)


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1).astype(np.float64)


def _turned(quaternion: Array, by_rad: Array) -> Array:
    """A quaternion turned by a small rotation vector in its own frame, of length 1."""
    half = 0.5 * by_rad
    w, x, y, z = (quaternion[:, i] for i in range(4))
    a, b, c = (half[:, i] for i in range(3))
    turned = np.stack(
        [w - x * a - y * b - z * c, x + w * a + y * c - z * b, y + w * b + z * a - x * c, z + w * c + x * b - y * a],
        axis=1,
    )
    return turned / np.maximum(np.sqrt((turned**2).sum(axis=1, keepdims=True)), 1e-12)
