"""Deployment code under test: from raw readings to an observation, and from an action to a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import chance
from simops.core.policy import centre_and_scale
from simops.core.protocols import Engine
from simops.core.signal import Array, Columns, Schema
from simops.core.task import Draw, Task
from simops.ops.explain import links, name
from simops.ops.mismatch import Mismatch
from simops.ops.probe import nominal, read, scattered


@final
@dataclass(frozen=True)
class Adapter:
    """The two functions that somebody wrote around a policy."""

    observe: Callable[[Columns], Array]
    """State, goal, `previous_action` and `time_s` to packed rows for the policy."""
    command: Callable[[Array], Array]
    """The policy's actions to what is sent."""


def faithful(task: Task) -> Adapter:
    """The adapter that is right: the task's own observation, and actions as they are."""

    def observe(columns: Columns) -> Array:
        return task.observation.pack({**columns, **task.observe(columns)})

    def command(action: Array) -> Array:
        return action

    return Adapter(observe, command)


def examine(adapter: Adapter, task: Task, engine: Engine, *, seed: int = 0) -> list[Mismatch]:
    """Compare with the task's own, on states from all over the place."""
    columns = states(task, engine, seed=seed)
    want, got = faithful(task).observe(columns), np.asarray(adapter.observe(columns))
    if got.shape != want.shape:
        what = f"observations have shape {got.shape[1:]}, want {want.shape[1:]}"
        return [Mismatch("shape", "adapter", ("observation",), what, "pack with task.observation.pack(columns)")]
    found = _turned(task, columns, got, want)
    if not found:
        found = name(links(want, got), task.observation, "adapter", want=want, got=got)
    return found + _commands(adapter, task, seed)


def states(task: Task, engine: Engine, *, rows: int = 64, seed: int = 0) -> Mapping[str, Array]:
    """Columns as a policy's observation is made of: states, goals, earlier actions, time."""
    initial = scattered(task, engine, rows=rows, seed=seed)
    seeds = chance.seeds(seed, np.arange(rows), realm="adapter")
    goal = task.goal(Draw(nominal(task, rows), seeds, np.zeros(rows, np.int64)))
    state = task.state_schema.unpack(task.state_schema.pack({**read(engine, task, initial), **goal}))
    time_s = (1 + np.arange(rows)) * np.float32(task.control_dt_s)
    return {**state, "previous_action": _scattered_actions(task, rows, seed), "time_s": time_s.astype(np.float32)}


def _turned(task: Task, columns: Columns, got: Array, want: Array) -> list[Mismatch]:
    """Whether what is computed from a quaternion is right for another order of its elements."""
    if np.allclose(got, want, atol=1e-5):
        return []
    for signal in task.state_schema.signals:
        if set(signal.labels) != {"w", "x", "y", "z"}:
            continue
        turns = columns[signal.name]
        for what, taken in (
            ("x, y, z, w is given where w, x, y, z is meant", turns[:, [1, 2, 3, 0]]),
            ("w, x, y, z is taken for x, y, z, w", turns[:, [3, 0, 1, 2]]),
            ("its inverse is taken for it", turns * np.array([1, -1, -1, -1], turns.dtype)),
        ):
            if np.allclose(got, faithful(task).observe({**columns, signal.name: taken}), atol=1e-5):
                return [Mismatch("quaternion", "adapter", (signal.name,), f"{signal.name}: {what}")]
    return []


def _commands(adapter: Adapter, task: Task, seed: int) -> list[Mismatch]:
    if task.action.size == 0:
        return []
    want = _scattered_actions(task, 64, seed + 1)
    got = np.asarray(adapter.command(want)).reshape(len(want), -1).astype(np.float64)
    flat = want.reshape(len(want), -1).astype(np.float64)
    centre, scale = centre_and_scale(task)
    slack = 1e-4 * float(np.abs(scale).max())
    names, trivial = (task.action.name,), bool(np.allclose(centre, 0) and np.allclose(scale, 1))
    if not trivial and np.abs(got - (centre + scale * flat)).max() <= slack:
        return [Mismatch("action_scale_doubled", "adapter", names, "centre and scale are applied to actions again")]
    if not trivial and np.abs(got - (flat - centre) / scale).max() <= slack / float(np.abs(scale).min()):
        return [Mismatch("action_scale_missing", "adapter", names, "centre and scale are taken out of actions")]
    return name(links(flat, got), Schema((task.action,)), "adapter", want=flat, got=got)


def _scattered_actions(task: Task, rows: int, seed: int) -> Array:
    centre, scale = centre_and_scale(task)
    noise = chance.normal(chance.seeds(seed, np.arange(rows), realm="adapter/action"), "action", (task.action.size,))
    actions = task.action.clip(centre + 0.5 * scale * np.clip(noise, -2, 2))
    return actions.reshape(rows, *task.action.shape).astype(np.float32)
