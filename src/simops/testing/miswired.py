"""An engine behind wrong wires: right physics, and readings or commands that are not what their names say.

For planting faults on purpose: whoever promises to notice them is tested against this.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from simops.core.params import Params
from simops.core.protocols import Engine, Sim
from simops.core.signal import Array, Columns
from simops.core.task import Task


@final
@dataclass(frozen=True)
class Wiring:
    """What comes out of wires: element i is `gain[i]` times element `order[i]`, plus `offset[i]`."""

    order: tuple[int, ...] = ()
    """Empty for each in its place."""
    gain: tuple[float, ...] = ()
    """Empty for 1 each."""
    offset: tuple[float, ...] = ()
    """Empty for 0 each."""

    @classmethod
    def swap(cls, size: int, a: int, b: int) -> Wiring:
        """Two of `size` elements change places."""
        order = list(range(size))
        order[a], order[b] = b, a
        return cls(order=tuple(order))

    @classmethod
    def flip(cls, size: int, *which: int) -> Wiring:
        """Some of `size` elements change sign."""
        return cls(gain=tuple(-1.0 if i in which else 1.0 for i in range(size)))

    @classmethod
    def shift(cls, size: int, which: int, by: float) -> Wiring:
        """One of `size` elements is off by a constant."""
        return cls(offset=tuple(by if i == which else 0.0 for i in range(size)))

    @classmethod
    def scale(cls, size: int, by: float) -> Wiring:
        """All of `size` elements are in another unit."""
        return cls(gain=(by,) * size)

    def through(self, rows: Array) -> Array:
        """Rows at the other end."""
        flat = rows.reshape(len(rows), -1)
        out = flat[:, self.order] if self.order else flat.copy()
        if self.gain:
            out = out * np.array(self.gain, out.dtype)
        if self.offset:
            out = out + np.array(self.offset, out.dtype)
        return out.reshape(rows.shape)

    def back(self, rows: Array) -> Array:
        """Rows at this end, from rows at the other."""
        flat = rows.reshape(len(rows), -1)
        if self.offset:
            flat = flat - np.array(self.offset, flat.dtype)
        if self.gain:
            flat = flat / np.array(self.gain, flat.dtype)
        out = flat.copy()
        if self.order:
            out[:, self.order] = flat
        return out.reshape(rows.shape)


@final
@dataclass(frozen=True)
class Miswired:
    """`engine`, with commands and readings going through wires."""

    engine: Engine
    command: Wiring = field(default_factory=Wiring)
    readings: Mapping[str, Wiring] = field(default_factory=lambda: {})
    """By signal name."""
    exchanged: tuple[tuple[str, str], ...] = ()
    """Pairs of signals of one size, each read in place of the other."""
    pace: float = 1.0
    """Control periods of the task that pass in one step."""
    fixed: tuple[tuple[str, float], ...] = ()
    """Params that are these, whatever a reset says: a world that is not as believed."""

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[MiswiredSim]:
        """Make `n` copies of the task's scene, behind wires."""
        paced = task if self.pace == 1.0 else replace(task, control_dt_s=task.control_dt_s * self.pace)
        with self.engine.open(paced, n) as sim:
            yield MiswiredSim(self, sim)

    def version(self, task: Task) -> str:
        """That of the engine behind."""
        return self.engine.version(task)


@final
class MiswiredSim:
    """Copies behind wires."""

    def __init__(self, engine: Miswired, sim: Sim) -> None:
        """Stand before `sim`."""
        self._wires, self._sim = engine, sim

    @property
    def n(self) -> int:
        """How many copies."""
        return self._sim.n

    @property
    def diverged(self) -> Array:
        """Whether a copy's physics broke down since its last reset."""
        return self._sim.diverged

    @property
    def executed(self) -> Array:
        """What reached the motors, as seen from this end of the wires."""
        return self._wires.command.back(self._sim.executed)

    @property
    def busy_s(self) -> float:
        """Wall-clock seconds spent inside the physics so far."""
        return self._sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin anew; the world is put as told, for no wires lead there."""
        values = params.values.copy()
        for name, value in self._wires.fixed:
            values[:, params.names.index(name)] = value
        self._sim.reset(ids, replace(params, values=values), initial)

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Push as the engine behind does; no wires lead there."""
        self._sim.push(ids, body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Hold what comes out of the wires for one control period."""
        self._sim.step(self._wires.command.through(action), ids)

    def read(self) -> Columns:
        """What comes out of the wires."""
        true = self._sim.read()
        seen = {name: self._wires.readings.get(name, Wiring()).through(rows) for name, rows in true.items()}
        for a, b in self._wires.exchanged:
            seen[a], seen[b] = seen[b].reshape(seen[a].shape), seen[a].reshape(seen[b].shape)
        return seen
