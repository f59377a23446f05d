"""`n` copies of a task's scene in an engine that has one world for each copy: all of `Sim` but the physics."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import final

import numpy as np

from simops.core.errors import EngineError, nearest
from simops.core.params import Params
from simops.core.signal import Array, Columns, every_row
from simops.core.task import Sensor, Task
from simops.sim.bank import Row, Wish
from simops.sim.binding import Model, mj
from simops.sim.change import Changes, ids_of, nominal
from simops.sim.copies import CHANGED, HUGE, Plan
from simops.sim.parallel import Crew, held
from simops.sim.readings import NONE, VELOCITY, Read, Write, reader, writer
from simops.sim.scene import Physics, actuators, compile_task, first_action, limits
from simops.sim.walk import walk
from simops.sim.world import Maker


@contextmanager
def opened(maker: Maker, task: Task, n: int, step_s: float) -> Generator[PerCopySim]:
    """Make `n` copies that go on by physics steps of `step_s`, or a little less where the control period asks it."""
    if n < 1:
        raise EngineError(f"{n} copies", attempt="at least one")
    periods = max(1, int(np.ceil(task.control_dt_s / step_s - 1e-9)))
    physics = Physics(step_s=task.control_dt_s / periods)
    model = compile_task(task, physics, direct=maker.motor is not None)
    with ExitStack() as stack:
        yield PerCopySim(maker, task, n, model, stack)


@final
class PerCopySim:
    """`n` copies, each in a world of its own."""

    def __init__(self, maker: Maker, task: Task, n: int, model: Model, stack: ExitStack) -> None:
        """Lay out the copies; raises for what the engine would lose."""
        self.n = n
        self.busy_s = 0.0
        self._task, self._model, self._motor = task, model, maker.motor
        self._step_s = float(model.opt.timestep)
        self._actuators = actuators(model, task)
        self._changes = Changes(model, task.belief.params)
        self._limits = limits(model, task, None if maker.motor else self._actuators)
        maker.build(walk(model), self._step_s)
        fields, stage = self._wished(n)
        plan = Plan(
            step_s=self._step_s,
            substeps=round(task.control_dt_s / self._step_s),
            actuators=tuple(self._actuators),
            stage=stage,
            sensors=_forces(model, task),
        )
        self._crew: Crew = held(maker, model, n, fields, plan, stack)
        self._bank = bank = self._crew.bank
        self._begun = {name: nominal(model, name.removeprefix(CHANGED)) for name in bank.fields if CHANGED in name}
        self._issued, self._failed = bank.bind("issued"), bank.bind("failed")
        self._loads = bank.bind("loads")
        self._reads: dict[str, Read] = {r.signal.name: reader(bank, r)[0] for r in task.state}
        self._shapes = {r.signal.name: (n, *r.signal.shape) for r in task.state}
        self._writes: dict[str, Write] = {}
        self._everyone = np.arange(n)

    @property
    def diverged(self) -> Array:
        """(n,) whether a copy's physics broke down since its last reset."""
        return self._failed

    @property
    def executed(self) -> Array:
        """What reached the motors at the end of the last step, after limits and delay."""
        shape = (self.n, *self._task.action.shape)
        if self._issued.shape[1] == 1:
            return self._issued[:, 0, self._actuators].reshape(shape)
        delay = self._bank.bind("actuator_delay")[:, self._actuators]
        age = np.floor(delay / self._task.control_dt_s + 1e-9).astype(int)
        late = self._issued[self._everyone[:, None], age, np.array(self._actuators)[None, :]]
        return late.reshape(shape)

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin copies `ids` anew at `params`, with `initial` written over the scene's own state."""
        ids = np.asarray(ids, np.int64)
        started = time.perf_counter()
        bank, model = self._bank, self._model
        self._failed[ids] = False
        self._loads[ids] = 0.0
        begun = mj.MjData(model)
        for name in ("qpos", "qvel", "mocap_pos"):
            bank.bind(name)[ids] = getattr(begun, name)
        for name, values in self._begun.items():
            bank.bind(name)[ids] = values
        bank.bind("actuator_delay")[ids] = model.actuator_delay
        self._changes.write(self._expand, ids, params)
        for name, rows in initial.items():
            if name != self._task.action.name:
                self._write(name)(ids, rows)
                self._failed[ids] |= ~np.all(np.abs(rows.reshape(len(ids), -1)) < HUGE, axis=1)
        first = np.zeros((len(ids), model.nu))
        first[:, self._actuators] = first_action(self._task, ids, initial, self._limits)
        self._issued[ids] = first[:, None]
        self._crew.reset(ids)
        self.busy_s += time.perf_counter() - started

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Push on a body's centre of mass, (len(ids), 6) force then torque in the world, until told otherwise."""
        [number] = ids_of(self._model, "body", (body,))
        self._loads[ids, number] = wrench

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Hold `action` for one control period; copies that diverged stay as they are."""
        ids = self._everyone if ids is None else np.asarray(ids, np.int64)
        wanted = np.clip(action.reshape(len(action), -1).astype(np.float64), *self._limits)
        self._failed[ids] |= ~every_row(np.isfinite(wanted))
        self._issued[ids, 1:] = self._issued[ids, :-1]
        self._issued[ids[:, None], 0, self._actuators] = wanted
        started = time.perf_counter()
        self._crew.step(ids)
        self.busy_s += time.perf_counter() - started

    def read(self) -> Columns:
        """The state of all copies by signal name; valid until the next call."""
        return {name: read().reshape(self._shapes[name]) for name, read in self._reads.items()}

    def _wished(self, n: int) -> tuple[dict[str, Row], int]:
        """The fields of the bank, and how much must be computed for those that are read."""
        model, task = self._model, self._task
        wish = Wish(model, n, mj.MjData(model))
        stage = max((reader(wish, reading)[1] for reading in task.state), default=NONE)
        for name in ("qpos", "qvel", "mocap_pos"):
            wish.bind(name)
        changed = {f: Row(nominal(model, f).shape) for f in self._changes.fields if f != "actuator_delay"}
        late = max(self._changes.longest_delay_s, float(np.max(model.actuator_delay, initial=0.0)))
        pending = int(np.ceil(late / task.control_dt_s - 1e-9))
        ours = {
            "issued": Row((pending + 1, model.nu)),
            "actuator_delay": Row((model.nu,)),
            "loads": Row((model.nbody, 6)),
            "failed": Row((), "bool"),
        }
        if _forces(model, task):
            stage = max(stage, VELOCITY)
        return {**wish.fields, **{CHANGED + f: row for f, row in sorted(changed.items())}, **ours}, stage

    def _expand(self, field: str) -> Array:
        return self._bank.bind(field if field == "actuator_delay" else CHANGED + field)

    def _write(self, name: str) -> Write:
        if name not in self._writes:
            by_name = {reading.signal.name: reading for reading in self._task.state}
            if name not in by_name:
                raise EngineError(f"{self._task.name} begins with {name!r}, no state", attempt=nearest(name, by_name))
            self._writes[name] = writer(self._bank, by_name[name])
        return self._writes[name]


def _forces(model: Model, task: Task) -> tuple[int, ...]:
    """Sensors that are read and follow from forces or accelerations."""
    named = [name for source in task.sources.values() if isinstance(source, Sensor) for name in source.names]
    every = {model.sensor(i).name: i for i in range(model.nsensor)}
    return tuple(every[name] for name in named if int(model.sensor_needstage[every[name]]) > VELOCITY)
