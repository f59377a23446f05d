"""The seams: what a plugin of each kind has to offer.

A plugin is its own configuration: a frozen dataclass whose fields a spec may set and whose
`repr` is its recipe. What happens over time is handed back as memory, not kept. Memory is
arrays with one row a copy, so that copies can be taken away or begun anew one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from simops.core.params import Param, Params
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task

Memory: TypeAlias = Mapping[str, Array]


class Sim(Protocol):
    """`n` copies of a scene, stepped together."""

    @property
    def n(self) -> int:
        """How many copies."""
        ...

    @property
    def diverged(self) -> Array:
        """(n,) whether a copy's physics broke down since its last reset."""
        ...

    @property
    def executed(self) -> Array:
        """(n, action size) what reached the motors at the end of the last step, after limits and delay."""
        ...

    @property
    def busy_s(self) -> float:
        """Wall-clock seconds spent inside the physics so far."""
        ...

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin copies `ids`, rising, anew at `params`; rows of `initial` are written over the scene's own state."""
        ...

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Let copies `ids` feel a wrench on a body from now on, until another is said or the copy begins anew.

        Args:
            ids: Which copies.
            body: Name of a body of the scene; raises if there is none.
            wrench: (len(ids), 6) force [N], then torque [N m], at the body's centre of mass, in world axes.
        """
        ...

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Hold `action`, one row for each of `ids`, rising, for one control period; `None` means all copies."""
        ...

    def read(self) -> Columns:
        """The state of all copies by signal name; valid until the next call."""
        ...


class Engine(Protocol):
    """A recipe for simulations."""

    def open(self, task: Task, n: int) -> AbstractContextManager[Sim]:
        """Make `n` copies of the task's scene."""
        ...

    def version(self, task: Task) -> str:
        """Name and version of the physics, and a digest of the scene it runs."""
        ...


class Torque(NamedTuple):
    """What a motor puts on its joints, and what it remembers."""

    torque_nm: Array
    memory: Memory


class Motor(Protocol):
    """The way from a command to a torque, inside the physics step."""

    def start(self, n: int, joints: int) -> Memory:
        """Memory of `n` copies with nothing behind them."""
        ...

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """Torque for one physics step; all arrays (n, joints)."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A motor with settings that a belief may hold; they live in its memory, so that every copy has its own."""

    @property
    def params(self) -> tuple[Param, ...]:
        """One param a setting, nominal as it is set."""
        ...

    def tune(self, memory: Memory, params: Params) -> Memory:
        """The memory of copies that begin now, with the settings that `params` name, a row a copy."""
        ...


class Sensed(NamedTuple):
    """What a sensor shows, and what it remembers."""

    columns: Columns
    memory: Memory


class Sensor(Protocol):
    """The way from the state to what the policy is shown of it."""

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals this sensor changes; raises if the task has no such signal."""
        ...

    def start(self, task: Task, draw: Draw) -> Memory:
        """Memory of copies that begin an episode now."""
        ...

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """The columns with this sensor's signals replaced."""
        ...


@runtime_checkable
class Variable(Protocol):
    """A sensor with settings that a belief may hold: a param of this name takes the setting's place."""

    @property
    def params(self) -> tuple[Param, ...]:
        """One param a setting, nominal as it is set."""
        ...


class Act(NamedTuple):
    """What a policy does, and what it remembers."""

    action: Array
    memory: Memory


class Policy(Protocol):
    """Observations to actions; memory is passed, not kept."""

    @property
    def digest(self) -> str:
        """Changes when, and only when, the policy would act differently."""
        ...

    def start(self, task: Task, seeds: Array) -> Memory:
        """Memory of copies that begin an episode now, one a seed; raises if the task's contract does not fit."""
        ...

    def act(self, observation: Array, memory: Memory) -> Act:
        """One action a row of `observation`, packed as the task's observation schema says."""
        ...


class Recorder(Protocol):
    """Somebody who watches an episode batch go by, for pictures."""

    def frame(self, sim: Sim, ids: Array, step: int) -> None:
        """Look at copies `ids` of `sim` at control step `step`."""
        ...
