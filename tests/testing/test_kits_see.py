"""A kit that cannot fail proves nothing: each promise is broken once, and the kit says which."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import pytest

from simops.core.params import Params
from simops.core.protocols import Act, Memory, Sensed, Torque
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task, Term
from simops.sim.pendulum import Pendulum, PendulumSim
from simops.tasks.pendulum.task import pendulum
from simops.testing.engine import check_engine
from simops.testing.motor import check_motor
from simops.testing.policy import check_policy
from simops.testing.sensor import check_sensor
from simops.testing.task import check_task

TASK = replace(pendulum(), horizon_s=1.0, expert="")
QUICK = Pendulum(step_s=0.01)

# ---- engines: a sound simulation with one thing wrong


@final
class Faulty:
    """The pendulum, with one fault."""

    def __init__(self, sim: PendulumSim, fault: str) -> None:
        self.sim, self.fault, self.n, self.calls = sim, fault, sim.n, 0

    @property
    def diverged(self) -> Array:
        return np.zeros(self.n, bool) if self.fault == "never diverged" else self.sim.diverged

    @property
    def executed(self) -> Array:
        return self.sim.executed * (100.0 if self.fault == "limits" else 1.0)

    @property
    def busy_s(self) -> float:
        return self.sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        if self.fault == "params":
            params = Params.nominal(TASK.belief.params, len(params))
        if self.fault == "initial":
            initial = {}
        if self.fault == "reset all":
            self.sim.reset(np.arange(self.n), Params.nominal(TASK.belief.params, self.n), {})
        self.sim.reset(ids, params, initial)

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        if self.fault == "pushes all":
            wrench, ids = wrench[:1], np.arange(self.n)
        if self.fault != "no push":
            self.sim.push(ids, "bob" if self.fault == "any body" else body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        self.calls += 1
        if self.fault == "steps all" and ids is not None:
            every = np.zeros((self.n, *action.shape[1:]), action.dtype)
            every[ids] = action
            action, ids = every, None
        if self.fault == "writes" and self.n == 7:
            action *= 0.5
        if self.fault == "batch":
            action = action + np.float32(1e-6 * self.n)
        if self.fault == "neighbours":
            action = action + np.float32(1e-3) * np.float32(np.isnan(action).any())
        self.sim.step(action, ids)

    def read(self) -> Columns:
        read = dict(self.sim.read())
        if self.fault == "shape":
            read["angle"] = read["angle"][:, None]
        if self.fault == "names":
            read["extra"] = read["angle"]
        return read


@final
@dataclass(frozen=True)
class FaultyEngine:
    """Makes pendulums with one fault."""

    fault: str

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[Faulty]:
        with QUICK.open(task, n) as sim:
            yield Faulty(sim, self.fault)

    def version(self, task: Task) -> str:
        return f"{id(object())} {np.random.default_rng().random()}" if self.fault == "version" else QUICK.version(task)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("version", "version() of one engine and task differs"),
        ("shape", "angle has shape (7, 1), want (7,)"),
        ("names", "gives ['angle', 'extra', 'rate'], want ['angle', 'rate']"),
        ("writes", "step() writes into the action"),
        ("initial", "off the initial state it was given"),
        ("steps all", "step(action, ids) moves copies that are not in ids"),
        ("reset all", "reset() of some copies changes others"),
        ("batch", "1 episodes among 1 copies and the same among 7"),
        ("params", "change nothing in"),
        ("limits", "executed leaves the limits of torque"),
        ("pushes all", "a push on bob moves copies that are not pushed"),
        ("no push", "a push on bob changes nothing in"),
        ("any body", "push() on a body that is not there raises nothing"),
        ("never diverged", "an action that is not a number does not make the copy diverged"),
        ("neighbours", "in one copy changes another"),
    ],
)
def test_the_engine_kit_sees(fault: str, words: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_engine(FaultyEngine(fault), TASK)
    assert words in str(caught.value)


def test_the_engine_kit_compares_recipes_that_promise_the_same() -> None:
    check_engine(QUICK, TASK, also=(Pendulum(step_s=0.01),))
    with pytest.raises(AssertionError, match="after 1 steps: angle: bytes differ"):
        check_engine(QUICK, TASK, also=(Pendulum(step_s=0.005),))


# ---- tasks


def by_batch(columns: Columns) -> Array:
    return columns["angle"] - columns["angle"].mean()


def impure(draw: Draw) -> Columns:
    return {"angle": np.random.default_rng().random(len(draw.seeds))}


def crowded(draw: Draw) -> Columns:
    return {"angle": np.arange(len(draw.seeds)) * 0.1}


def stranger(draw: Draw) -> Columns:
    return {"speed": np.zeros(len(draw.seeds))}


def meddling(columns: Columns) -> Columns:
    heading = np.stack([columns["angle"], columns["angle"]], axis=1)
    columns["rate"][:] = 0.0
    return {"heading": heading}


def hopeless(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


def rate(columns: Columns) -> Array:
    return columns["rate"]


def one_flag(columns: Columns) -> Array:
    return np.asarray(np.any(columns["rate"] > 40.0))


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (replace(TASK, initial=impure), "initial() of the same draw twice"),
        (replace(TASK, initial=crowded), "initial() of some rows and of the same among others"),
        (replace(TASK, initial=stranger), "initial() gives 'speed'"),
        (replace(TASK, goal=stranger), "goal() gives ['speed'], want ()"),
        (replace(TASK, observe=meddling), "observe() writes into the columns"),
        (replace(TASK, reward=(Term("by_batch", 1.0, by_batch),)), "the reward of the log and the one given live"),
        (replace(TASK, reward=(Term("reward", 1.0, hopeless),)), "a reward term is called 'reward'"),
        (replace(TASK, reward=TASK.reward * 2), "two reward terms share a name"),
        (replace(TASK, success=rate), "success gives float32, want bool"),
        (replace(TASK, failure=one_flag), "failure gives shape () for 64 rows"),
        (replace(TASK, action_centre=(9.0,)), "the centre of the action is beyond its limits"),
        (replace(TASK, horizon_s=1.01), "is no whole number of steps"),
        (replace(TASK, success_margin=rate), "success_margin does not change its sign where success changes"),
        (replace(pendulum(), success=hopeless, success_margin=None), "pendulum_expert succeeds in 0 of 8 episodes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_task_kit_sees(task: Task, words: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_task(task, QUICK)
    assert words in str(caught.value)


# ---- motors, sensors and policies


@final
@dataclass(frozen=True)
class Fault:
    """Something sound but for one fault: gives rows back, and sums them up."""

    name: str = ""
    calls: list[int] = field(default_factory=list[int])

    def begun(self, n: int) -> Memory:
        return {"sum": np.zeros(1 if self.name == "one row" else n)}

    def through(self, rows: Array, memory: Memory) -> tuple[Array, Memory]:
        rows = rows.copy()
        self.calls.append(1)
        if self.name == "kept":
            rows += 1e-3 * len(self.calls)
        if self.name == "neighbours":
            rows += 1e-3 * len(rows)
        if self.name == "nan":
            rows[:1] = np.nan
        if self.name == "shape":
            rows = rows[:, :1].repeat(5, axis=1)
        if self.name == "forgets":
            return rows, {}
        if self.name == "writes":
            memory["sum"][:] += 1.0
        return rows, {"sum": memory["sum"] + rows[:, 0] if self.name != "one row" else memory["sum"]}


@final
@dataclass(frozen=True)
class BadMotor:
    fault: Fault

    def start(self, n: int, joints: int) -> Memory:
        del joints
        return self.fault.begun(n)

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        del velocity, dt_s
        torque, after = self.fault.through(command - position, memory)
        return Torque(-torque if self.fault.name == "sign" else torque, after)


@final
@dataclass(frozen=True)
class BadSensor:
    fault: Fault

    def names(self, task: Task) -> tuple[str, ...]:
        del task
        return ("nothing",) if self.fault.name == "unknown" else ("angle",)

    def start(self, task: Task, draw: Draw) -> Memory:
        del task
        return self.fault.begun(len(draw.seeds))

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        del draw
        angle, after = self.fault.through(columns["angle"][:, None], memory)
        shown = {**columns, "angle": angle[:, 0].astype(np.float64 if self.fault.name == "dtype" else np.float32)}
        if self.fault.name == "more":
            shown["rate"] = shown["rate"] + np.float32(1)
        return Sensed(shown, after)


@final
@dataclass(frozen=True)
class BadPolicy:
    fault: Fault

    @property
    def digest(self) -> str:
        return str(len(self.fault.calls)) if self.fault.name == "digest" else "bad"

    def start(self, task: Task, seeds: Array) -> Memory:
        del task
        return self.fault.begun(len(seeds))

    def act(self, observation: Array, memory: Memory) -> Act:
        action, after = self.fault.through(observation[:, :1], memory)
        return Act(action, after)


def motor_with(fault: Fault) -> None:
    check_motor(BadMotor(fault))


def sensor_with(fault: Fault) -> None:
    check_sensor(BadSensor(fault), TASK)


def policy_with(fault: Fault) -> None:
    check_policy(BadPolicy(fault), TASK)


SHARED = {
    "kept": "twice",
    "neighbours": "among 64",
    "nan": "finite",
    "forgets": "memory holds [], began with ['sum']",
    "one row": "want one row a copy",
    "writes": "writes into the memory",
}
CASES: tuple[tuple[Callable[[Fault], None], dict[str, str]], ...] = (
    (motor_with, {"shape": "torque has shape", "sign": "does not pull towards its command"}),
    (sensor_with, {"unknown": "which is no signal", "dtype": "want float32", "more": "that names() does not name"}),
    (policy_with, {"shape": "want (64, 1)", "digest": "digest changes"}),
)


@pytest.mark.parametrize(
    ("check", "fault", "words"),
    [(check, fault, words) for check, own in CASES for fault, words in {**SHARED, **own}.items()],
)
def test_the_other_kits_see(check: Callable[[Fault], None], fault: str, words: str) -> None:
    check(Fault())
    with pytest.raises(AssertionError) as caught:
        check(Fault(fault))
    assert words in str(caught.value)
