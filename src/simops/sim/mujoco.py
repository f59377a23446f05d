"""The training engine: MuJoCo's own batch, many simulations on a thread pool.

Results are the same bytes at any thread count, batch size and order. A copy whose physics broke
down (not a number, a full contact buffer, an error) is marked `diverged` until its next reset and
never comes back as a fresh one by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import final

import numpy as np

from simops.core.errors import EngineError, nearest
from simops.core.params import Params
from simops.core.protocols import Memory, Motor, Tunable
from simops.core.signal import Array, Columns, every_row
from simops.core.task import Task
from simops.sim.binding import Batch, Batched, Data, Index, Model, SimulationError, mj
from simops.sim.change import Changes, ids_of
from simops.sim.readings import NONE, Read, Write, reader, span, writer
from simops.sim.scene import Physics, actuators, compile_task, digest, first_action, joint_addresses, limits

HUGE = 1e10
"""MuJoCo calls a state beyond this bad."""


@final
@dataclass(frozen=True)
class Mujoco:
    """MuJoCo 4, batched on this machine's cores."""

    threads: int = field(default=0, repr=False)
    """Worker threads; 0 uses every core. No part of the recipe: the bytes are the same at any number."""
    physics: Physics = field(default_factory=Physics)
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[MujocoSim]:
        """Make `n` copies of the task's scene; MuJoCo counts its warnings meanwhile, and prints none."""
        with _quiet():
            yield MujocoSim(self, task, n)

    def version(self, task: Task) -> str:
        """MuJoCo's version and the digest of the scene."""
        return f"mujoco {mj.__version__} scene {digest(task)}"


@final
class MujocoSim:
    """`n` copies of one task's scene in MuJoCo."""

    def __init__(self, engine: Mujoco, task: Task, n: int) -> None:
        """Compile the scene and lay out the copies."""
        if n < 1:
            raise EngineError(f"{n} copies", attempt="at least one")
        self.n = n
        self.busy_s = 0.0
        self._task = task
        self._motor = engine.motor
        self._model = model = compile_task(task, engine.physics, direct=engine.motor is not None)
        self._substeps = round(task.control_dt_s / model.opt.timestep)
        self._batch = batch = Batch(model, n, engine.threads)
        self._actuators = actuators(model, task)
        self._driving: Index = span(self._actuators)
        self._changes = Changes(model, task.belief.params)
        self._ctrl = batch.bind("ctrl")
        self._qpos, self._qvel = batch.bind("qpos"), batch.bind("qvel")
        found = {reading.signal.name: reader(batch, reading) for reading in task.state}
        self._reads: dict[str, Read] = {name: read for name, (read, _) in found.items()}
        self._shapes = {reading.signal.name: (n, *reading.signal.shape) for reading in task.state}
        self._stage = max((stage for _, stage in found.values()), default=NONE)
        self._writes: dict[str, Write] = {}
        self._failed = np.zeros(n, bool)
        self._issued = np.zeros((self._pending() + 1, n, model.nu))
        self._limits = limits(model, task, None if engine.motor else self._actuators)
        self._memory: Memory = engine.motor.start(n, len(self._actuators)) if engine.motor else {}
        self._driven = joint_addresses(model, _driven(model, self._actuators) if engine.motor else None)

    @property
    def diverged(self) -> Array:
        """(n,) whether a copy's physics broke down since its last reset."""
        return self._failed

    @property
    def executed(self) -> Array:
        """What reached the motors at the end of the last step, after limits and delay."""
        if len(self._issued) == 1:
            return self._issued[0][:, self._actuators].reshape(self.n, *self._task.action.shape)
        delay = self._batch.expand("actuator_delay")[:, self._actuators]
        age = np.floor(delay / self._task.control_dt_s + 1e-9).astype(int)
        columns = np.array(self._actuators)[None, :]
        late = self._issued[age, np.arange(self.n)[:, None], columns]
        return late.reshape(self.n, *self._task.action.shape)

    @property
    def batch(self) -> Batched:
        """MuJoCo's own batch, to measure against; writing to it voids every promise made here."""
        return self._batch

    def model_of(self, copy: int) -> Model:
        """One copy's own model, with its params, to render or to inspect."""
        return self._batch.get_model(copy)

    def data_of(self, copy: int) -> Data:
        """One copy's state in a fresh MjData."""
        return self._batch.get_data(copy)

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin copies `ids` anew at `params`, with `initial` written over the scene's own state."""
        ids = np.asarray(ids, np.int32)
        started = time.perf_counter()
        batch = self._batch
        self._guarded(partial(batch.reset, ids, stage=NONE))
        batch.warning[ids] = 0
        self._failed[ids] = False
        if self._changes.fields:
            self._changes.write(batch.expand, ids, params)
            if self._changes.constants:
                self._guarded(partial(batch.set_const, ids))
        for name, rows in initial.items():
            if name != self._task.action.name:
                self._write(name)(ids, rows)
                self._failed[ids] |= ~np.all(np.abs(rows.reshape(len(ids), -1)) < HUGE, axis=1)
        first = np.zeros((len(ids), self._model.nu))
        first[:, self._actuators] = first_action(self._task, ids, initial, self._limits)
        self._ctrl[ids] = first
        self._issued[:, ids] = first
        if self._model.nhistory:
            self._fill_history(ids, first)
        if self._motor is not None:
            fresh = self._motor.start(len(ids), len(self._actuators))
            if isinstance(self._motor, Tunable):
                fresh = self._motor.tune(fresh, params)
            for name, rows in self._memory.items():
                rows[ids] = fresh[name]
        self._guarded(partial(batch.forward, ids))
        self.busy_s += time.perf_counter() - started

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Let copies `ids` feel a wrench at the body's centre of mass, in world axes, until told otherwise."""
        [number] = ids_of(self._model, "body", (body,))
        self._batch.bind("xfrc_applied")[ids, number] = wrench

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Hold `action` for one control period; copies that diverged stay as they are."""
        rows = slice(None) if ids is None else ids
        wanted = np.clip(action.reshape(len(action), -1), *self._limits)
        if len(self._issued) > 1:
            self._issued[1:, rows] = self._issued[:-1, rows]
        self._failed[rows] |= ~every_row(np.isfinite(wanted))  # whatever a motor would make of it
        if ids is None:
            self._issued[0][:, self._driving] = wanted
        else:
            self._issued[0][ids[:, None], self._actuators] = wanted
        started = time.perf_counter()
        if self._motor is None:
            self._ctrl[rows] = self._issued[0, rows]
            self._guarded(partial(self._batch.step, ids, self._substeps, self._stage))
        else:
            self._step_motor(self._motor, rows, ids)
        self.busy_s += time.perf_counter() - started
        if self._batch.warning.any():
            self._failed |= np.any(self._batch.warning[:, :, 1] > 0, axis=1)  # how often each warning came
        self._failed |= ~(every_row(np.isfinite(self._qpos)) & every_row(np.isfinite(self._qvel)))

    def read(self) -> Columns:
        """The state of all copies by signal name; valid until the next call."""
        return {name: read().reshape(self._shapes[name]) for name, read in self._reads.items()}

    def _step_motor(self, motor: Motor, rows: Index, ids: Array | None) -> None:
        command = self._issued[0, rows][:, self._actuators]
        positions, dofs = self._driven
        memory = {name: values[rows] for name, values in self._memory.items()}
        for substep in range(self._substeps):
            with np.errstate(over="ignore", invalid="ignore"):  # a copy may be breaking down
                torque, memory = motor.torque(
                    command,
                    self._qpos[rows][:, positions],
                    self._qvel[rows][:, dofs],
                    memory,
                    dt_s=self._model.opt.timestep,
                )
            full = np.zeros((len(command), self._model.nu))
            full[:, self._actuators] = torque
            self._ctrl[rows] = full
            stage = self._stage if substep == self._substeps - 1 else NONE
            self._guarded(partial(self._batch.step, ids, 1, stage))
        for name, values in memory.items():
            self._memory[name][rows] = values

    def _write(self, name: str) -> Write:
        if name not in self._writes:
            by_name = {reading.signal.name: reading for reading in self._task.state}
            if name not in by_name:
                raise EngineError(f"{self._task.name} begins with {name!r}, no state", attempt=nearest(name, by_name))
            self._writes[name] = writer(self._batch, by_name[name])
        return self._writes[name]

    def _pending(self) -> int:
        """Whole control periods a command may be under way."""
        return int(np.floor(self._changes.longest_delay_s / self._task.control_dt_s + 1e-9))

    def _fill_history(self, ids: Array, first: Array) -> None:
        """Let what was commanded before the episode be its first command.

        An actuator's history is two numbers of bookkeeping, then its times, then its values.
        """
        history = self._batch.bind("history")
        for actuator in range(self._model.nu):
            samples, start = (
                int(self._model.actuator_history[actuator, 0]),
                int(self._model.actuator_historyadr[actuator]),
            )
            if start >= 0:
                history[ids, start + 2 + samples : start + 2 + 2 * samples] = first[:, actuator, None]

    def _guarded(self, call: Callable[[], None]) -> None:
        """Let an error in some copies mark those, not stop the others."""
        try:
            call()
        except SimulationError as error:
            self._failed[error.ids] = True


@contextmanager
def _quiet() -> Generator[None]:
    """Keep MuJoCo from printing and from writing MUJOCO_LOG.TXT; its settings come back afterwards."""
    before, silent = mj.MjLogConfig.get(), mj.MjLogConfig.get()
    silent.logto_console = silent.logto_file = False
    silent.set()
    try:
        yield
    finally:
        before.set()


def _driven(model: Model, chosen: list[int]) -> tuple[str, ...]:
    """The joints that the actuators drive."""
    for actuator in chosen:
        if model.actuator_trntype[actuator] != mj.mjtTrn.mjTRN_JOINT:
            name = model.actuator(actuator).name
            raise EngineError(f"actuator {name!r} drives no single joint, so no motor can take its place")
    return tuple(model.joint(int(model.actuator_trnid[a, 0])).name for a in chosen)
