"""Sensors: the way from the true state to what the policy is shown of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, final

import numpy as np

from simops.core.chance import normal
from simops.core.params import Param
from simops.core.protocols import Memory, Sensed
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.sim.dial import dial, settings, still, tall
from simops.sim.timing import Timing, params_of
from simops.spec.bounds import AtLeast


@final
@dataclass(frozen=True)
class Noise:
    """White noise and a bias drawn once an episode, on any signals of the state."""

    std: Mapping[str, float] = field(default_factory=dict[str, float])
    """Signal name to the spread of fresh noise at every step, in the signal's unit."""
    bias: Mapping[str, float] = field(default_factory=dict[str, float])
    """Signal name to the spread of an offset that stays for the episode."""
    scale_param: str = ""
    """A param that multiplies both, so that the belief can say how noisy the sensors are."""
    _: KW_ONLY
    name: str = "noise"
    """What its params begin with, as `noise_scale`."""
    scale: Annotated[float, AtLeast(0.0)] = 1.0
    """Multiplies both."""

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return settings(self.name, self)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals it disturbs; raises if the task has no such signal."""
        return tuple(task.state_schema[name].name for name in {**self.std, **self.bias})

    def start(self, task: Task, draw: Draw) -> Memory:
        """The biases of this episode."""
        offsets = {
            name: normal(draw.seeds, f"bias/{name}", task.state_schema[name].shape) * spread
            for name, spread in self.bias.items()
        }
        return {name: rows * tall(self._scale(draw), rows) for name, rows in offsets.items()}

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """Truth plus bias plus noise."""
        shown = dict(columns)
        for name, spread in self.std.items():
            rows = columns[name]
            noise = normal(draw.seeds, f"noise/{name}", rows.shape[1:], step=draw.step) * spread
            shown[name] = (rows + noise * tall(self._scale(draw), noise)).astype(np.float32)
        for name, offset in memory.items():
            shown[name] = (shown[name] + offset).astype(np.float32)
        return Sensed(shown, memory)

    def _scale(self, draw: Draw) -> Array:
        own = dial(draw, f"{self.name}_scale", self.scale)
        return own * draw.params[self.scale_param] if self.scale_param else own


@final
@dataclass(frozen=True)
class Encoder:
    """A quantised reading with a fixed offset that arrives late."""

    signal: str = "joint_position"
    step: Annotated[float, AtLeast(0.0)] = 0.0
    """Smallest difference it can tell, in the signal's unit; 0 for none."""
    offset_std: Annotated[float, AtLeast(0.0)] = 0.0
    """Spread of an offset drawn once an episode."""
    delay_steps: Annotated[int, AtLeast(0)] = 0
    """Control steps before a reading is shown, besides `timing.delay_s`."""
    _: KW_ONLY
    name: str = "encoder"
    """What its params begin with, as `encoder_step`."""
    offset: float = 0.0
    """Added to every reading, in the signal's unit."""
    noise_std: Annotated[float, AtLeast(0.0)] = 0.0
    """Spread of fresh noise of every reading, before it is rounded."""
    backlash: Annotated[float, AtLeast(0.0)] = 0.0
    """Play between what moves and what is read, in the signal's unit: the reading stays until that has been crossed."""
    limit: Annotated[float, AtLeast(0.0)] = 0.0
    """Largest reading either way; 0 for no limit."""
    timing: Timing = field(default_factory=Timing)

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return params_of(self.name, self, self.timing)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signal it reads; raises if the task has no such signal."""
        return (task.state_schema[self.signal].name, *self.timing.names(task))

    def start(self, task: Task, draw: Draw) -> Memory:
        """The offset of this episode and the readings under way; none yet."""
        signal = task.state_schema[self.signal]
        spread = dial(draw, f"{self.name}_offset_std", self.offset_std)[:, None]
        drawn = normal(draw.seeds, f"encoder/{self.signal}", signal.shape).reshape(-1, signal.size) * spread
        memory = {"offset": drawn + dial(draw, f"{self.name}_offset", self.offset)[:, None]}
        if not self._still(draw, "backlash", self.backlash):
            memory["engaged"] = np.full(drawn.shape, np.nan)
        return memory | self.timing.start(task, draw, self.name, signal.size, steps=self.delay_steps)

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """The newest reading that has arrived, rounded."""
        rows, after = columns[self.signal], dict(memory)
        felt = rows.reshape(len(rows), -1).astype(np.float64)
        if "engaged" in memory:
            play = 0.5 * dial(draw, f"{self.name}_backlash", self.backlash)[:, None]
            engaged = np.where(np.isnan(memory["engaged"]), felt, memory["engaged"])
            felt = after["engaged"] = np.clip(engaged, felt - play, felt + play)
        sample = self.timing.sample(felt + memory["offset"], draw, after, self.name, steps=self.delay_steps)
        read = self._rounded(sample.rows, draw, sample.number).reshape(rows.shape).astype(np.float32)
        return Sensed(self.timing.stamped({**columns, self.signal: read}, sample.age_s), sample.memory)

    def _rounded(self, rows: Array, draw: Draw, number: Array) -> Array:
        read = rows
        if not self._still(draw, "noise_std", self.noise_std):
            spread = dial(draw, f"{self.name}_noise_std", self.noise_std)[:, None]
            read = read + spread * normal(draw.seeds, f"{self.name}/noise", rows.shape[1:], step=number)
        if not self._still(draw, "limit", self.limit):
            limit = dial(draw, f"{self.name}_limit", self.limit)[:, None]
            read = np.where(limit > 0, np.clip(read, -limit, limit), read)
        if not self._still(draw, "step", self.step):
            step = dial(draw, f"{self.name}_step", self.step)[:, None]
            read = np.where(step > 0, np.round(read / np.where(step > 0, step, 1.0)) * step, read)
        return read

    def _still(self, draw: Draw, field: str, value: float) -> bool:
        return still(draw, f"{self.name}_{field}", value)


@final
@dataclass(frozen=True, kw_only=True)
class Late:
    """Any signals, as they are, at their own rate and late."""

    signals: tuple[str, ...] = ()
    """Read at the same instants."""
    name: str = "late"
    """What its params begin with, as `late_delay_s`."""
    timing: Timing = field(default_factory=Timing)

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return params_of(self.name, self, self.timing)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals that come late; raises if the task has no such signal."""
        return tuple(task.state_schema[name].name for name in self.signals) + self.timing.names(task)

    def start(self, task: Task, draw: Draw) -> Memory:
        """The readings under way; none yet."""
        return self.timing.start(task, draw, self.name, sum(task.state_schema[name].size for name in self.signals))

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """The newest reading that has arrived."""
        if not self.signals:
            return Sensed(columns, memory)
        parts = [columns[name].reshape(len(draw.seeds), -1) for name in self.signals]
        sample = self.timing.sample(np.concatenate(parts, axis=1).astype(np.float64), draw, memory, self.name)
        shown, at = dict(columns), 0
        for name, part in zip(self.signals, parts, strict=True):
            read = sample.rows[:, at : at + part.shape[1]]
            shown[name] = read.reshape(columns[name].shape).astype(np.float32)
            at += part.shape[1]
        return Sensed(self.timing.stamped(shown, sample.age_s), sample.memory)
