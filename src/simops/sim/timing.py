"""When a reading is taken, when it arrives, and which one is shown.

A sensor reads at its own rate, in between control steps as well; each reading is under way for its own time, and some
never arrive. What is shown at a control step is the newest reading that has arrived by then, and how old it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, final

import numpy as np

from simops.core.chance import uniform
from simops.core.params import Param
from simops.core.protocols import Memory
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.sim.dial import Fixed, dial, settings, still, tall
from simops.spec.bounds import AtLeast, AtMost

_NEAR = 1e-6
"""Shares of a control step that make no difference."""


class Sample(NamedTuple):
    """The reading that is shown of each copy."""

    rows: Array
    """(n, size) the truth when it was taken."""
    number: Array
    """(n,) int64, which reading it is: draws for it are keyed by this, so that a reading shown twice is the same."""
    age_s: Array
    """(n,) since it was taken."""
    memory: Memory


@final
@dataclass(frozen=True, kw_only=True)
class Timing:
    """Rate, latency and loss of the readings of one sensor."""

    rate_hz: Annotated[float, AtLeast(0.0), Fixed()] = 0.0
    """Readings a second, evenly; 0 for one at every control step."""
    free_running: bool = False
    """Whether the first reading falls anywhere in the first period, drawn once an episode, or on its start."""
    delay_s: Annotated[float, AtLeast(0.0)] = 0.0
    """From taking a reading until it is shown; need not be whole control steps."""
    jitter_s: Annotated[float, AtLeast(0.0)] = 0.0
    """Each reading takes up to so much longer, evenly drawn; one may overtake another, which is then not shown."""
    dropout: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of readings that never arrive; the one before stays."""
    age: str = ""
    """A signal of the task that is shown how old the reading is [s], where the policy is to know."""
    longest_s: Annotated[float, AtLeast(0.0), Fixed()] = 0.0
    """The longest delay and jitter together that a belief may ask for; 0 for twice what stands here."""

    @property
    def reach_s(self) -> float:
        """How old a reading may be when it arrives."""
        return max(self.longest_s or 2 * (self.delay_s + self.jitter_s), self.delay_s + self.jitter_s)

    def params(self, name: str) -> tuple[Param, ...]:
        """What a belief may hold of it, for the sensor called `name`."""
        return settings(name, self, delay_s=self.reach_s, jitter_s=self.reach_s)

    def names(self, task: Task) -> tuple[str, ...]:
        """The signal that is shown the age, if one is; raises if the task has no such signal."""
        return (task.state_schema[self.age].name,) if self.age else ()

    def start(self, task: Task, draw: Draw, name: str, size: int, *, steps: int = 0) -> dict[str, Array]:
        """Memory of readings of `size` numbers, delayed by whole control `steps` besides."""
        n, dt_s = len(draw.seeds), task.control_dt_s
        prompt = not (self.rate_hz or self.reach_s or steps)
        if prompt and still(draw, f"{name}_dropout", self.dropout):
            return {"dt_s": np.full(n, dt_s)}
        period = self._period(dt_s)
        depth = math.ceil(self.reach_s / dt_s + steps + period - _NEAR) + 2
        return {
            "dt_s": np.full(n, dt_s),
            "seen": np.full((n, depth, size), np.nan),
            "held": np.full((n, size), np.nan),
            "number": np.full(n, np.iinfo(np.int64).min),
            "taken": np.full(n, np.nan),
        }

    def sample(self, rows: Array, draw: Draw, memory: Memory, name: str, *, steps: int = 0) -> Sample:
        """What is shown of `rows`, the truth of this control step, (n, size)."""
        if "seen" not in memory:
            return Sample(rows, draw.step.astype(np.int64), np.zeros(len(rows)), memory)
        dt_s = float(memory["dt_s"][0])
        seen = memory["seen"]
        begun = np.isnan(memory["taken"])  # before the episode it has always been so
        seen = np.where(begun[:, None, None], rows[:, None], np.concatenate([seen[:, 1:], rows[:, None]], axis=1))
        number, taken, fresh = self._newest(draw, dt_s, memory["number"], name, steps, seen.shape[1])
        number, taken = np.where(fresh, number, memory["number"]), np.where(fresh, taken, memory["taken"])
        held = np.where(fresh[:, None], _between(seen, draw.step - taken), memory["held"])
        after = {**memory, "seen": seen, "held": held, "number": number, "taken": taken}
        return Sample(held, number, (draw.step - taken) * dt_s, after)

    def stamped(self, shown: Columns, age_s: Array) -> Columns:
        """The columns, with the age of the reading among them where a signal is for it."""
        if not self.age:
            return shown
        rows = shown[self.age]
        return {**shown, self.age: np.broadcast_to(tall(age_s, rows), rows.shape).astype(np.float32)}

    def _period(self, dt_s: float) -> float:
        """Control steps between two readings."""
        return 1.0 / (self.rate_hz * dt_s) if self.rate_hz else 1.0

    def _newest(
        self, draw: Draw, dt_s: float, last: Array, name: str, steps: int, depth: int
    ) -> tuple[Array, Array, Array]:
        """Number and time in control steps of the newest reading that has arrived, and whether it was not shown yet."""
        seeds, period = draw.seeds, self._period(dt_s)
        first = uniform(seeds, f"{name}/phase") * period if self.free_running else np.zeros(len(seeds))
        newest = np.floor((draw.step - first) / period + _NEAR).astype(np.int64)
        delay = dial(draw, f"{name}_delay_s", self.delay_s) / dt_s + steps
        jitter = dial(draw, f"{name}_jitter_s", self.jitter_s) / dt_s
        loss = dial(draw, f"{name}_dropout", self.dropout)
        number, found = np.zeros(len(seeds), np.int64), np.zeros(len(seeds), bool)
        candidates = max(1, math.floor((depth - 2) / period + _NEAR) + 1)
        for back in range(candidates):
            which = newest - back
            arrived = draw.step - (first + which * period) >= delay - _NEAR
            if not still(draw, f"{name}_jitter_s", self.jitter_s):
                late = delay + jitter * uniform(seeds, f"{name}/jitter", step=which)
                arrived = draw.step - (first + which * period) >= late - _NEAR
            if not still(draw, f"{name}_dropout", self.dropout):
                arrived &= uniform(seeds, f"{name}/dropout", step=which) >= loss
            arrived |= (back == candidates - 1) & (last == np.iinfo(np.int64).min)  # something has to be shown
            number = np.where(arrived & ~found, which, number)
            found |= arrived
            if found.all():
                break
        return number, first + number * period, found & (number > last)


def params_of(name: str, recipe: object, timing: Timing) -> tuple[Param, ...]:
    """What a belief may hold of a sensor with this timing."""
    late = {param.name: param for param in timing.params(name)}
    return tuple(late.get(param.name, param) for param in settings(name, recipe))


def carried(memory: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """The part of a sensor's memory whose names begin so, without that."""
    return {key.removeprefix(prefix): rows for key, rows in memory.items() if key.startswith(prefix)}


def kept(memory: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """What `carried` undoes."""
    return {f"{prefix}{key}": rows for key, rows in memory.items()}


def _between(seen: Array, age: Array) -> Array:
    """The rows of `age` control steps ago, on the straight line between two of them."""
    depth = seen.shape[1]
    back = np.clip(age, 0, depth - 1)
    whole = np.floor(back + _NEAR)
    share = np.clip(back - whole, 0.0, 1.0)
    share = np.where(share < _NEAR, 0.0, share)[:, None]
    at = (depth - 1 - whole).astype(int)
    each = np.arange(len(seen))
    late, early = seen[each, at], seen[each, np.maximum(at - 1, 0)]
    return late + np.where(share > 0, (early - late) * share, 0.0)
