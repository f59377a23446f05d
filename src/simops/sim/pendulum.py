"""A pendulum by its equation of motion: no physics engine, so it is the test double for everything."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import EngineError
from simops.core.params import Params
from simops.core.signal import Array, Columns
from simops.core.task import Joint, Task

BOB = "bob"
"""The one body. It swings about the world's y axis, and along -z when the angle is 0."""
_HUGE = 1e10
_CHANGES = {"mass": "mass_kg", "damping": "damping_nms_rad", "gravity": "gravity_m_s2"}


@final
@dataclass(frozen=True)
class Pendulum:
    """A point mass on a massless rod: m l² θ̈ = τ − b θ̇ − m g l sin θ, by fourth-order Runge-Kutta."""

    mass_kg: float = 1.0
    length_m: float = 1.0
    damping_nms_rad: float = 0.05
    gravity_m_s2: float = 9.81
    step_s: float = 1e-3
    """Integration step [s]."""

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[PendulumSim]:
        """Make `n` pendulums; raises for a task that is not about one driven hinge."""
        yield PendulumSim(self, task, n)

    def version(self, task: Task) -> str:
        """The equation's name and this recipe's digest."""
        return f"pendulum equation scene {hashlib.sha256(f'{self!r}{task.name}'.encode()).hexdigest()}"


@final
class PendulumSim:
    """`n` pendulums side by side."""

    def __init__(self, engine: Pendulum, task: Task, n: int) -> None:
        """Find the one angle, the one rate and the one torque of the task."""
        self.n = n
        self.busy_s = 0.0
        self._engine, self._task = engine, task
        self._angle, self._rate = (_hinge(task, what) for what in ("position", "velocity"))
        if task.action.size != 1 or {self._angle, self._rate} != {r.signal.name for r in task.state}:
            raise EngineError(f"{task.name} is not about one driven hinge", attempt="an engine for whole scenes")
        self._fields = _fields(task)
        self._substeps = max(1, round(task.control_dt_s / engine.step_s))
        self._state = np.zeros((2, n))
        self._numbers = {name: np.full(n, getattr(engine, name)) for name in _CHANGES.values()}
        self._executed = np.zeros((n, *task.action.shape))
        self._wrench = np.zeros((n, 6))
        self._failed = np.zeros(n, bool)

    @property
    def diverged(self) -> Array:
        """(n,) whether a pendulum left the sensible numbers since its last reset."""
        return self._failed

    @property
    def executed(self) -> Array:
        """The torque within its limits."""
        return self._executed

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin anew: hanging still unless `initial` says otherwise."""
        self._failed[ids] = False
        self._state[:, ids] = 0.0
        self._wrench[ids] = 0.0
        for name, number in self._numbers.items():
            number[ids] = getattr(self._engine, name)
        for param, name in self._fields.items():
            if param in params:
                self._numbers[name][ids] = params[param]
        for row, name in enumerate((self._angle, self._rate)):
            if name in initial:
                self._state[row, ids] = initial[name].reshape(len(ids))

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Let copies `ids` feel a wrench on the bob until told otherwise; only what turns the hinge does anything."""
        if body != BOB:
            raise EngineError(f"a pendulum has no body {body!r}", attempt=repr(BOB))
        self._wrench[ids] = wrench

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Hold the torque for one control period."""
        started = time.perf_counter()
        rows = np.arange(self.n) if ids is None else ids
        torque = self._task.action.clip(action.astype(np.float64))
        self._executed[rows] = torque
        numbers = {name: number[rows] for name, number in self._numbers.items()}
        state, driven = self._state[:, rows], torque.reshape(len(rows))
        pushed = self._wrench[rows].T if self._wrench.any() else None
        h = self._task.control_dt_s / self._substeps
        with np.errstate(invalid="ignore", over="ignore"):
            for _ in range(self._substeps):
                k1 = self._slope(state, driven, pushed, numbers)
                k2 = self._slope(state + h / 2 * k1, driven, pushed, numbers)
                k3 = self._slope(state + h / 2 * k2, driven, pushed, numbers)
                k4 = self._slope(state + h * k3, driven, pushed, numbers)
                state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        self._state[:, rows] = state
        self._failed[rows] |= ~np.all(np.abs(state) < _HUGE, axis=0)
        self.busy_s += time.perf_counter() - started

    def read(self) -> Columns:
        """Angle and rate of all pendulums."""
        shapes = {reading.signal.name: (self.n, *reading.signal.shape) for reading in self._task.state}
        return {
            self._angle: self._state[0].reshape(shapes[self._angle]),
            self._rate: self._state[1].reshape(shapes[self._rate]),
        }

    def _slope(self, state: Array, driven: Array, pushed: Array | None, numbers: Mapping[str, Array]) -> Array:
        mass, length = numbers["mass_kg"], self._engine.length_m
        torque = driven
        if pushed is not None:
            along = pushed[2] * np.sin(state[0]) - pushed[0] * np.cos(state[0])
            torque = driven + length * along + pushed[4]
        pull = mass * numbers["gravity_m_s2"] * length * np.sin(state[0])
        return np.stack([state[1], (torque - numbers["damping_nms_rad"] * state[1] - pull) / (mass * length**2)])


def _hinge(task: Task, what: str) -> str:
    for name, source in task.sources.items():
        if isinstance(source, Joint) and source.what == what and len(source.names) == 1:
            return name
    raise EngineError(f"{task.name} has no single joint {what} in its state", attempt="an engine for whole scenes")


def _fields(task: Task) -> dict[str, str]:
    found: dict[str, str] = {}
    for param in task.belief.params:
        for change in param.changes:
            if change.field not in _CHANGES or change.how != "set":
                raise EngineError(f"a pendulum has no {change.field} to {change.how}", where=param.name)
            found[param.name] = _CHANGES[change.field]
    return found
