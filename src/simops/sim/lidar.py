"""A LiDAR over a scan of perfect ranges: its sweep, its noise, what never comes back, and its own time.

The scan itself is a reading of the task (`core.task.Scan`), cast by the engine. What happens within a sweep is a line
between the scan before and the one now: each beam shows the range at the instant at which it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, final

import numpy as np

from simops.core.chance import normal, uniform
from simops.core.params import Param
from simops.core.protocols import Memory, Sensed
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.sim.dial import dial, still
from simops.sim.timing import Timing, params_of
from simops.spec.bounds import AtLeast, AtMost

Amount = Annotated[float, AtLeast(0.0)]


@final
@dataclass(frozen=True, kw_only=True)
class Lidar:
    """Ranges as a LiDAR tells them; 0 where a beam did not come back."""

    signal: str = "scan"
    """Ranges [m], one a beam, in the order in which they are sent."""
    intensity: str = ""
    """A signal of the task that shows each beam's returned intensity, if the policy is to know: 1 at 1 m, head on."""
    incidence: str = ""
    """A signal with the cosine between beam and surface, where intensity and dropout are to follow from it."""
    name: str = "lidar"
    """What its params begin with, as `lidar_noise_m`."""
    noise_m: Amount = 0.0
    """Spread of a range, at any distance."""
    noise_share: Amount = 0.0
    """Spread that grows with the range."""
    bias_m: float = 0.0
    """Added to every range."""
    step_m: Amount = 0.0
    """Smallest difference it can tell."""
    near_m: Amount = 0.0
    """Nearer than this nothing comes back."""
    far_m: Amount = 0.0
    """Farther than this nothing comes back; 0 for no end."""
    lost: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of beams that do not come back, wherever they meet something."""
    dark: Amount = 0.0
    """Intensity below which beams fade: one of this intensity comes back every other time; 0 for never."""
    sweep_s: Amount = 0.0
    """From the first beam of a scan to the last; what moves meanwhile is bent."""
    timing: Timing = field(default_factory=Timing)

    @property
    def params(self) -> tuple[Param, ...]:
        """What a belief may hold of it."""
        return params_of(self.name, self, self.timing)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals it changes; raises if the task has no such signal."""
        shown = [task.state_schema[name].name for name in (self.signal, self.intensity, self.incidence) if name]
        return (*shown[: 2 if self.intensity else 1], *self.timing.names(task))

    def start(self, task: Task, draw: Draw) -> Memory:
        """The scan before, none yet, and the scans under way."""
        size = task.state_schema[self.signal].size
        memory = {"before": np.full((len(draw.seeds), size), np.nan)}
        wide = 2 * size if self._knows else size
        return memory | self.timing.start(task, draw, self.name, wide)

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """The newest scan that has arrived, as it was told."""
        rows, after = columns[self.signal], dict(memory)
        now = rows.reshape(len(rows), -1).astype(np.float64)
        size = now.shape[1]
        swept = self._swept(now, memory["before"], draw, float(memory["dt_s"][0]))
        after["before"] = now
        parts = [swept]
        if self._knows:
            parts.append(columns[self.incidence].reshape(len(rows), -1).astype(np.float64))
        sample = self.timing.sample(np.concatenate(parts, axis=1), draw, after, self.name)
        ranges = sample.rows[:, :size]
        facing = np.abs(sample.rows[:, size:]) if self._knows else np.ones_like(ranges)
        with np.errstate(divide="ignore", invalid="ignore"):
            bright = np.where(ranges > 0, facing / np.maximum(ranges, 1e-3) ** 2, 0.0)
        told, lost = self._told(ranges, bright, draw, sample.number)
        shown = {**columns, self.signal: told.reshape(rows.shape).astype(np.float32)}
        if self.intensity:
            light = np.where(lost, 0.0, bright).reshape(columns[self.intensity].shape)
            shown[self.intensity] = light.astype(np.float32)
        return Sensed(self.timing.stamped(shown, sample.age_s), sample.memory)

    @property
    def _knows(self) -> bool:
        return bool(self.incidence)

    def _swept(self, now: Array, before: Array, draw: Draw, dt_s: float) -> Array:
        """Each beam's range at the instant at which it was sent; the last beam is sent now."""
        if still(draw, f"{self.name}_sweep_s", self.sweep_s):
            return now
        ago = dial(draw, f"{self.name}_sweep_s", self.sweep_s)[:, None] * np.linspace(1.0, 0.0, now.shape[1])
        share = np.minimum(ago / dt_s, 1.0)
        both = np.isfinite(before) & (before > 0) & (now > 0)
        return np.where(both, now + share * (np.where(both, before, 0.0) - now), now)

    def _told(self, ranges: Array, bright: Array, draw: Draw, number: Array) -> tuple[Array, Array]:
        """Ranges with noise and in steps, and which beams are lost."""
        tall = {
            key: dial(draw, f"{self.name}_{key}", float(getattr(self, key)))[:, None]
            for key in ("noise_m", "noise_share", "bias_m", "step_m", "near_m", "far_m", "lost", "dark")
        }
        spread = np.hypot(tall["noise_m"], tall["noise_share"] * ranges)
        noise = normal(draw.seeds, f"{self.name}/range", ranges.shape[1:], step=number)
        told = ranges + tall["bias_m"] + spread * noise
        step = np.where(tall["step_m"] > 0, tall["step_m"], 1.0)
        told = np.where(tall["step_m"] > 0, np.round(told / step) * step, told)
        chance = uniform(draw.seeds, f"{self.name}/lost", ranges.shape[1:], step=number)
        fades = tall["dark"] / np.maximum(tall["dark"] + bright, 1e-12)
        lost = (ranges <= 0) | (told < tall["near_m"]) | (chance < 1 - (1 - tall["lost"]) * (1 - fades))
        lost |= (tall["far_m"] > 0) & (told > tall["far_m"])
        return np.where(lost, 0.0, told), lost
