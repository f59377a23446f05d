"""Run scenarios: the ordinary loop, with what disturbs an episode wrapped around engine, sensors and task.

What a scenario becomes depends on the recipe and the scenario alone: not on those beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from simops.core.belief import Box, Joint
from simops.core.params import Change, Param, Params
from simops.core.protocols import Memory, Recorder, Sensed, Sim
from simops.core.rollout import Recipe, wave
from simops.core.scenario import Dropout, Latency, Payload, Push, Scenario, points
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.core.trajectory import Block

GIVEN = "given"
"""Ending of the param that says whether a goal is held."""


def staged(recipe: Recipe, scenarios: Sequence[Scenario]) -> Recipe:
    """The recipe, made ready for these scenarios: params for payloads and held goals, a sensor that can fail."""
    task = recipe.task
    lost = {one.signal for each in scenarios for one in each.disturbances if isinstance(one, Dropout)}
    goals = {name for each in scenarios for name in each.initial if name in task.goal_signals}
    loaded = {one.body for each in scenarios for one in each.disturbances if isinstance(one, Payload)}
    extra = (
        *(Param(_payload(body), 0.0, "kg", 0.0, 1e3, (Change("mass", (body,), "add"),)) for body in sorted(loaded)),
        *(Param(name, 0.0) for goal in sorted(goals) for name in _goal(task, goal)),
    )
    if extra:
        still = tuple(param.nominal for param in extra)
        task = replace(task, belief=Joint((recipe.belief or task.belief, Box(extra, still, still))))
    if goals:
        task = replace(task, goal=_Held(task, tuple(sorted(goals))))
    sensors = (*recipe.sensors, Lossy(tuple(sorted(lost)))) if lost else recipe.sensors
    return replace(recipe, task=task, belief=task.belief if extra else recipe.belief, sensors=sensors)


def perform(
    recipe: Recipe,
    sim: Sim,
    scenarios: Sequence[Scenario],
    *,
    numbers: Array | None = None,
    watch: Recorder | None = None,
) -> Block:
    """Run scenarios side by side, one a copy, by a recipe that `staged` made for them and perhaps for more.

    Args:
        recipe: What acts, in which task and engine.
        sim: Open for the staged task, with a copy for each scenario at least.
        scenarios: What to run.
        numbers: The episodes' numbers; 0, 1, … when left out.
        watch: Who looks on.
    """
    numbers = np.arange(len(scenarios)) if numbers is None else numbers
    seeds = np.array([each.seed for each in scenarios], np.uint64)
    draw = Draw(_points(recipe.task, scenarios), seeds, np.zeros(len(scenarios), np.int64))
    sensors = tuple(replace(s, scenarios=tuple(scenarios)) if isinstance(s, Lossy) else s for s in recipe.sensors)
    block = wave(
        replace(recipe, sensors=sensors), Disturbed(sim, recipe.task, scenarios), numbers, draw=draw, watch=watch
    )
    return replace(block, scenarios=tuple(each.hash for each in scenarios))


def run(recipe: Recipe, scenarios: Sequence[Scenario], *, batch: int = 256) -> list[Block]:
    """Run scenarios, at most `batch` of them at a time; episode i is scenario i."""
    recipe = staged(recipe, scenarios)
    found: list[Block] = []
    with recipe.engine.open(recipe.task, min(batch, max(1, len(scenarios)))) as sim:
        for start in range(0, len(scenarios), batch):
            some = scenarios[start : start + batch]
            found.append(perform(recipe, sim, some, numbers=np.arange(start, start + len(some))))
    return found


@final
class Disturbed:
    """Copies that are pushed and hear late, and begin where their scenarios say; each is one episode, reset once."""

    def __init__(self, sim: Sim, task: Task, scenarios: Sequence[Scenario]) -> None:
        """Stand before `sim`, whose first copies are these scenarios."""
        self._sim, self._task, self._scenarios = sim, task, tuple(scenarios)
        self._step = 0
        self._pushes = _schedule(scenarios, task.control_dt_s)
        self._late = _lags(scenarios, task)
        self._asked: list[Array] = []

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
        """What reached the motors at the end of the last step."""
        return self._sim.executed

    @property
    def busy_s(self) -> float:
        """Wall-clock seconds spent inside the physics so far."""
        return self._sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin anew, where the scenarios say otherwise there."""
        self._step = 0
        self._asked = []
        self._sim.reset(ids, params, initial)
        named = _named(self._task, self._scenarios)
        if named:
            # what the task leaves to the scene stays the scene's in the copies whose scenarios do not say it
            read = self._sim.read()
            initial = {**{name: read[name][ids] for name in named}, **initial}
            self._sim.reset(ids, params, _overridden(self._task, self._scenarios, initial, ids))
        for body in sorted({body for bodies in self._pushes.values() for body in bodies}):
            self._sim.push(ids, body, np.zeros((len(ids), 6)))  # raises now for a body that is not there

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Push as the engine behind does."""
        self._sim.push(ids, body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Push whom it is time to push, and hold the actions that arrive now."""
        for body, (pushed, wrench) in self._pushes.get(self._step, {}).items():
            self._sim.push(pushed, body, wrench)
        self._sim.step(self._arriving(action, ids), ids)
        self._step += 1

    def read(self) -> Columns:
        """The state of all copies by signal name."""
        return self._sim.read()

    def _arriving(self, action: Array, ids: Array | None) -> Array:
        if self._late is None:
            return action
        whole = action if ids is None else np.zeros((self.n, *action.shape[1:]), action.dtype)
        if ids is not None:
            whole[ids] = action
        self._asked = [*self._asked, whole.copy()][-1 - int(self._late.max()) :]
        lag = self._late[self._step] if self._step < len(self._late) else np.zeros(1, int)
        rows = np.arange(self.n) if ids is None else ids
        back = np.zeros(self.n, int)
        back[: len(self._scenarios)] = lag
        newest = len(self._asked) - 1
        return np.stack(self._asked)[np.maximum(newest - back[rows], 0), rows]


@final
@dataclass(frozen=True)
class Lossy:
    """A sensor that shows some signals no longer, when a scenario says so."""

    signals: tuple[str, ...]
    scenarios: tuple[Scenario, ...] = field(default=(), repr=False)
    """One for each row at the start."""

    def names(self, task: Task) -> tuple[str, ...]:
        """The signals that some scenario loses; raises if the task has no such signal."""
        return tuple(task.state_schema[name].name for name in self.signals)

    def start(self, task: Task, draw: Draw) -> Memory:
        """From and until which step each signal is lost, and what was read last."""
        memory: dict[str, Array] = {}
        for name in self.signals:
            lost = [
                [one for one in each.disturbances if isinstance(one, Dropout) and one.signal == name]
                for each in self.scenarios
            ]
            most = max((len(ones) for ones in lost), default=0)
            spans = np.zeros((len(draw.seeds), most, 3), np.int64)
            for row, ones in enumerate(lost):
                for i, one in enumerate(ones):
                    spans[row, i] = *_span(one.at_s, one.for_s, task.control_dt_s), one.shows == "zero"
            memory[f"{name}/spans"] = spans
            memory[f"{name}/last"] = np.zeros((len(draw.seeds), *task.state_schema[name].shape), np.float32)
        return memory

    def sense(self, columns: Columns, draw: Draw, memory: Memory) -> Sensed:
        """The reading, or what stands for it."""
        found, after = dict(columns), dict(memory)
        for name in self.signals:
            spans, reading = memory[f"{name}/spans"], columns[name].astype(np.float32)
            step = draw.step[:, None]
            hit = (spans[:, :, 0] <= step) & (step < spans[:, :, 1])
            lost, blank = hit.any(axis=1), (hit & (spans[:, :, 2] == 1)).any(axis=1)
            tall = (len(reading), *([1] * (reading.ndim - 1)))
            known = np.where(lost.reshape(tall), memory[f"{name}/last"], reading)
            found[name] = np.where(blank.reshape(tall), np.float32(0), known)
            after[f"{name}/last"] = known
        return Sensed(found, after)


@final
@dataclass(frozen=True)
class _Held:
    """A goal that params hold where they say so."""

    task: Task
    goals: tuple[str, ...]

    def __call__(self, draw: Draw) -> Columns:
        columns = dict(self.task.goal(draw))
        for goal in self.goals:
            given, *names = _goal(self.task, goal)
            held = np.stack([draw.params[name] for name in names], axis=1)
            usual = columns[goal]
            wanted = np.where(draw.params[given][:, None] > 0, held, usual.reshape(len(held), -1))
            columns[goal] = wanted.reshape(usual.shape).astype(np.float32)
        return columns


def _payload(body: str) -> str:
    return f"payload_on_{body}_kg"


def _goal(task: Task, name: str) -> tuple[str, ...]:
    """Names of the params that hold a goal: whether at all, then each number."""
    return (f"goal_{name}_{GIVEN}", *(f"goal_{scalar}" for scalar in task.goal_signals[name].scalars))


def _points(task: Task, scenarios: Sequence[Scenario]) -> Params:
    """Every param of the staged task for each scenario."""
    whole: list[Scenario] = []
    for each in scenarios:
        extra: dict[str, float] = defaultdict(float)
        for one in each.disturbances:
            if isinstance(one, Payload):
                extra[_payload(one.body)] += one.mass_kg
        for name, values in each.initial.items():
            if name in task.goal_signals:
                extra.update(zip(_goal(task, name), (1.0, *values), strict=True))
        whole.append(replace(each, params={**each.params, **extra}))
    return points(whole, task)


def _named(task: Task, scenarios: Sequence[Scenario]) -> set[str]:
    """The signals of the state that some scenario begins with."""
    return {name for each in scenarios for name in each.initial if name not in task.goal_signals}


def _overridden(task: Task, scenarios: Sequence[Scenario], initial: Columns, ids: Array) -> Columns:
    """The initial columns with the scenarios' own rows."""
    columns = dict(initial)
    for name in sorted(_named(task, scenarios)):
        columns[name] = np.array(columns[name], float)
        for row, copy in enumerate(ids):
            own = scenarios[int(copy)].initial
            if name in own:
                columns[name][row] = np.array(own[name]).reshape(columns[name].shape[1:]) + 0.0  # no zero is negative
    return columns


def _span(at_s: float, for_s: float, dt_s: float) -> tuple[int, int]:
    """First control step, and the one after the last; one step at least."""
    first = round(at_s / dt_s)
    return first, max(first + 1, round((at_s + for_s) / dt_s))


def _schedule(scenarios: Sequence[Scenario], dt_s: float) -> dict[int, dict[str, tuple[Array, Array]]]:
    """At which step which copies begin to feel which wrench on which body: the sum of the pushes under way."""
    felt: dict[tuple[str, int], list[tuple[int, int, Array]]] = defaultdict(list)
    for copy, each in enumerate(scenarios):
        for one in each.disturbances:
            if isinstance(one, Push):
                wrench = np.array([*one.force_n, *one.torque_nm], float)
                felt[one.body, copy].append((*_span(one.at_s, one.for_s, dt_s), wrench))
    found: dict[int, dict[str, list[tuple[int, Array]]]] = defaultdict(lambda: defaultdict(list))
    for (body, copy), pushes in felt.items():
        for step in sorted({edge for first, last, _ in pushes for edge in (first, last)}):
            total = sum((wrench for first, last, wrench in pushes if first <= step < last), np.zeros(6))
            found[step][body].append((copy, total))
    return {
        step: {body: (np.array([c for c, _ in rows]), np.stack([w for _, w in rows])) for body, rows in bodies.items()}
        for step, bodies in found.items()
    }


def _lags(scenarios: Sequence[Scenario], task: Task) -> Array | None:
    """By how many steps each copy's commands are late at each step, (steps, copies); None where nobody is late."""
    late = np.zeros((task.steps, len(scenarios)), int)
    for copy, each in enumerate(scenarios):
        for one in each.disturbances:
            if isinstance(one, Latency):
                first, last = _span(one.at_s, one.for_s, task.control_dt_s)
                late[first:last, copy] = np.maximum(late[first:last, copy], one.steps)
    return late if late.any() else None
