"""Copies of a scene, each in a world of its own, on their rows of a bank: what a worker process holds."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import SimOpsError
from simops.core.protocols import Memory, Motor
from simops.core.signal import Array
from simops.sim.bank import Bank
from simops.sim.binding import Model, mj
from simops.sim.forces import Forces
from simops.sim.readings import POSITION, VELOCITY
from simops.sim.walk import Parts, walk, within
from simops.sim.world import Load, Maker, World

HUGE = 1e10
"""A state beyond this is bad, as MuJoCo has it."""
OURS = frozenset({"issued", "loads", "failed", "actuator_delay"})
"""Fields of a bank that are no result of the physics."""
CHANGED = "model/"
"""Before the name of a model field that differs from copy to copy."""


@final
@dataclass(frozen=True)
class Plan:
    """What every copy of a simulation has in common, in plain values."""

    step_s: float
    substeps: int
    """Physics steps in a control period."""
    actuators: tuple[int, ...]
    """The one each element of the action drives."""
    stage: int
    """How much of what follows from the state is read: MuJoCo's stages."""
    sensors: tuple[int, ...]
    """Sensors that are read and follow from forces."""


@final
class Copies:
    """The copies of some rows."""

    def __init__(self, maker: Maker, bank: Bank, plan: Plan) -> None:
        """Nothing is built before its first reset."""
        self._maker, self._bank, self._plan = maker, bank, plan
        self._fields = tuple(name for name in bank.fields if name not in OURS and not name.startswith(CHANGED))
        self._changed = tuple(name for name in bank.fields if name.startswith(CHANGED))
        self._copies: dict[int, _Copy] = {}
        self._bodies = sorted(set(range(1, bank.model.nbody)))

    def reset(self, ids: Iterable[int]) -> None:
        """Begin these anew at the state, the params and the command their rows say."""
        for row in ids:
            self._guarded(row, begin=True)

    def step(self, ids: Iterable[int]) -> None:
        """One control period for each of these that is whole."""
        for row in ids:
            if not self._bank.bind("failed")[row]:
                self._guarded(row, begin=False)

    def _guarded(self, row: int, *, begin: bool) -> None:
        """Let an exception in a copy's physics mark that copy, not stop the others."""
        bank = self._bank
        try:
            with np.errstate(all="ignore"):
                if begin:
                    self._begin(row)
                else:
                    self._copies[row].step(bank, row)
                self._copies[row].show(bank, row, self._fields)
        except SimOpsError:
            raise
        except Exception:  # whatever a physics raises, as a solver that did not converge
            bank.bind("failed")[row] = True

    def _begin(self, row: int) -> None:
        bank = self._bank
        whole = not bank.bind("failed")[row]
        held = self._copies.get(row)
        point = b"".join(bank.bind(name)[row].tobytes() for name in self._changed)
        if held is None or held.point != point:
            held = self._copies[row] = _Copy(self._maker, self._own(row), self._plan, point)
        held.begin(bank, row, whole=whole)

    def _own(self, row: int) -> Model:
        """The row's own model: the scene's, with its params."""
        if not self._changed:
            return self._bank.model
        model = copying.copy(self._bank.model)
        for name in self._changed:
            field = name.removeprefix(CHANGED)
            source = model.opt if field.startswith("opt.") else model
            getattr(source, field.removeprefix("opt."))[:] = self._bank.bind(name)[row]
        mj.mj_setConst(model, mj.MjData(model))
        return model


@final
class _Copy:
    """One copy: its own model, the parts of it, the world made from those."""

    def __init__(self, maker: Maker, model: Model, plan: Plan, point: bytes) -> None:
        self.point = point
        self._maker, self._model, self._plan = maker, model, plan
        self._parts: Parts = walk(model)
        self._data = mj.MjData(model)
        self._world: World | None = None
        self._memory: Memory = {}
        self._control = np.zeros(model.nu)
        self._before = np.zeros(model.nv)
        self._forces = Forces(model, self._parts, plan.sensors)
        self._pushed = b""

    def begin(self, bank: Bank, row: int, *, whole: bool) -> None:
        data, plan = self._data, self._plan
        mj.mj_resetData(self._model, data)
        for name in ("qpos", "qvel"):
            getattr(data, name)[:] = bank.bind(name)[row]
        if self._model.nmocap:
            data.mocap_pos[:] = bank.bind("mocap_pos")[row]
        self._control = bank.bind("issued")[row, 0].copy()
        self._pushed = b""
        motor = self._maker.motor
        if motor is not None:
            self._memory = motor.start(1, len(plan.actuators))
            self._control[:] = 0.0
        if not whole:
            return
        mj.mj_normalizeQuat(self._model, data.qpos)
        if self._world is None:
            self._world = self._maker.build(self._parts, plan.step_s)
        self._world.begin(data.qpos.copy(), data.qvel.copy())

    def step(self, bank: Bank, row: int) -> None:
        world = self._world
        if world is None:
            return
        loads = bank.bind("loads")[row]
        if loads.tobytes() != self._pushed:
            self._pushed = loads.tobytes()
            world.load(self._loads(loads))
        if self._maker.motor is not None:
            self._step_motor(self._maker.motor, world, bank.bind("issued")[row, 0])
            return
        rows = _arriving(bank.bind("issued")[row], bank.bind("actuator_delay")[row], self._plan)
        if self._forces.accelerate:  # the last step stands alone, to see how the speed changes in it
            rows = [*rows[:-1], (rows[-1][0], rows[-1][1] - 1), (rows[-1][0], 1)]
        for control, steps in rows:
            self._control = control
            self._advance(world, steps)

    def show(self, bank: Bank, row: int, fields: Sequence[str]) -> None:
        """Write the state, and what follows from it, into the row."""
        model, data, stage = self._model, self._data, self._plan.stage
        if self._world is not None and not bank.bind("failed")[row]:
            self._world.look(data.qpos, data.qvel)
        whole = bool(np.all(np.abs(data.qpos) < HUGE) and np.all(np.abs(data.qvel) < HUGE))
        if not whole:
            bank.bind("failed")[row] = True
        else:
            if stage >= POSITION:
                mj.mj_kinematics(model, data)
                mj.mj_comPos(model, data)
                mj.mj_camlight(model, data)
                mj.mj_sensorPos(model, data)
            if stage >= VELOCITY:
                mj.mj_comVel(model, data)
                mj.mj_sensorVel(model, data)
            if self._world is not None:
                self._forces.show(data, self._control, self._world, self._acceleration(), self._pushing(bank, row))
        for name in fields:
            bank.bind(name)[row] = getattr(data, name)

    def _acceleration(self) -> Array:
        return (self._data.qvel - self._before) / self._plan.step_s

    def _pushing(self, bank: Bank, row: int) -> Array:
        return bank.bind("loads")[row]

    def _advance(self, world: World, steps: int) -> None:
        if steps == 1 and self._forces.accelerate:
            world.look(self._data.qpos, self._data.qvel)
            self._before = self._data.qvel.copy()
        if steps > 0:
            world.advance(self._control, steps)

    def _step_motor(self, motor: Motor, world: World, issued: Array) -> None:
        data, plan = self._data, self._plan
        chosen = list(plan.actuators)
        drives = [self._parts.drives[a] for a in chosen]
        positions, dofs = [drive.position for drive in drives], [drive.dof for drive in drives]
        for _ in range(plan.substeps):
            world.look(data.qpos, data.qvel)
            torque, self._memory = motor.torque(
                issued[None, chosen], data.qpos[None, positions], data.qvel[None, dofs], self._memory, dt_s=plan.step_s
            )
            self._control[chosen] = torque[0]
            self._advance(world, 1)

    def _loads(self, rows: Array) -> list[Load]:
        """What pushes each body at its centre of mass, as pushes on the links that the bodies are part of."""
        model, found = self._model, list[Load]()
        links = {link.body: i for i, link in enumerate(self._parts.links)}
        for body in np.flatnonzero(rows.any(axis=1)).tolist():
            root = int(model.body_weldid[body])
            if root in links:
                pose = within(model, body)
                found.append(Load(links[root], pose.position + pose.turn @ model.body_ipos[body], rows[body].copy()))
        return found


def _arriving(issued: Array, delay: Array, plan: Plan) -> list[tuple[Array, int]]:
    """The commands that reach the drives in this control period, newest first in `issued`, and for how many steps."""
    if len(issued) == 1:
        return [(issued[0], plan.substeps)]
    period_s = plan.step_s * plan.substeps
    since = np.arange(plan.substeps)[:, None] * plan.step_s
    age = np.clip(np.ceil((delay[None, :] - since) / period_s - 1e-9), 0, len(issued) - 1).astype(int)
    rows = issued[age, np.arange(issued.shape[1])]
    found: list[tuple[Array, int]] = []
    for row in rows:
        if found and np.array_equal(found[-1][0], row):
            found[-1] = (row, found[-1][1] + 1)
        else:
            found.append((row, 1))
    return found
