"""What a sensor of one or more axes gets wrong, from the quantity itself to the number it hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from simops.core.chance import normal
from simops.core.signal import Array
from simops.core.task import Draw
from simops.sim import drift
from simops.sim.dial import dial, still, tall
from simops.spec.bounds import AtLeast

Amount = Annotated[float, AtLeast(0.0)]


@final
@dataclass(frozen=True, kw_only=True)
class Axes:
    """Noise, bias, scale, misalignment, range and resolution of the elements of one signal."""

    signal: str = ""
    """The signal of the state that it measures; empty for none."""
    white: Amount = 0.0
    """Density of white noise [unit/√Hz]; each reading's spread is this times the root of the readings a second."""
    instability: Amount = 0.0
    """Bias instability [unit]: the bias wanders so that the Allan deviation has a plateau at 0.664 of it."""
    walk: Amount = 0.0
    """Density of the random walk of the bias [unit/s/√Hz]."""
    bias_std: Amount = 0.0
    """Spread of a bias drawn once an episode [unit]."""
    scale_std: Amount = 0.0
    """Spread of each axis's scale about 1, drawn once an episode."""
    cross_std: Amount = 0.0
    """Spread of what each axis picks up of every other, drawn once an episode: misalignment [rad], or cross-talk."""
    limit: Amount = 0.0
    """Largest reading either way [unit]; 0 for no limit."""
    step: Amount = 0.0
    """Smallest difference it can tell [unit]; 0 for any."""

    def start(self, draw: Draw, name: str, size: int) -> dict[str, Array]:
        """What stays for an episode, and what wanders during it."""
        n = len(draw.seeds)
        spread = dial(draw, f"{name}_bias_std", self.bias_std)[:, None]
        memory = {"bias": normal(draw.seeds, f"{name}/bias", (size,)) * spread}
        if not (self._fixed(draw, name, "scale_std") and self._fixed(draw, name, "cross_std")):
            mixing = np.tile(np.eye(size), (n, 1, 1))
            drawn = normal(draw.seeds, f"{name}/mixing", (size, size))
            own = tall(dial(draw, f"{name}_scale_std", self.scale_std), drawn)
            cross = tall(dial(draw, f"{name}_cross_std", self.cross_std), drawn)
            memory["mixing"] = mixing + drawn * np.where(np.eye(size, dtype=bool), own, cross)
        if not self._fixed(draw, name, "walk"):
            memory["walk"] = np.zeros((n, size))
        if not self._fixed(draw, name, "instability"):
            memory["flicker"] = drift.begun(draw.seeds, name, size)
        return memory

    def feel(self, rows: Array, draw: Draw, memory: dict[str, Array], name: str, dt_s: float) -> Array:
        """The quantity as the element feels it, noise aside, (n, size); what wanders goes on in `memory`."""
        felt = rows
        if "mixing" in memory:
            felt = np.zeros_like(rows)
            for i in range(rows.shape[1]):  # term by term: same bytes for any number of copies
                felt = felt + memory["mixing"][:, :, i] * rows[:, i : i + 1]
        felt = felt + memory["bias"]
        if "walk" in memory:
            felt = felt + memory["walk"]
            each = dial(draw, f"{name}_walk", self.walk)[:, None] * np.sqrt(dt_s)
            memory["walk"] = memory["walk"] + each * normal(draw.seeds, f"{name}/walk", rows.shape[1:], step=draw.step)
        if "flicker" in memory:
            each = dial(draw, f"{name}_instability", self.instability)[:, None] * drift.share()
            felt = felt + each * memory["flicker"].sum(axis=2)
            memory["flicker"] = drift.wandered(memory["flicker"], draw.seeds, name, step=draw.step, dt_s=dt_s)
        return felt

    def noise(self, draw: Draw, number: Array, name: str, size: int, rate_hz: float) -> Array:
        """Fresh noise of readings of these numbers, (n, size)."""
        if self._fixed(draw, name, "white"):
            return np.zeros((len(draw.seeds), size))
        spread = dial(draw, f"{name}_white", self.white)[:, None] * np.sqrt(rate_hz)
        return normal(draw.seeds, f"{name}/white", (size,), step=number) * spread

    def told(self, rows: Array, draw: Draw, name: str) -> Array:
        """The number that is handed on: within range, in whole steps."""
        shown = rows
        if not self._fixed(draw, name, "limit"):
            limit = dial(draw, f"{name}_limit", self.limit)[:, None]
            shown = np.where(limit > 0, np.clip(shown, -limit, limit), shown)
        if not self._fixed(draw, name, "step"):
            step = dial(draw, f"{name}_step", self.step)[:, None]
            shown = np.where(step > 0, np.round(shown / np.where(step > 0, step, 1.0)) * step, shown)
        return shown

    def _fixed(self, draw: Draw, name: str, field: str) -> bool:
        return still(draw, f"{name}_{field}", float(getattr(self, field)))
