"""Policies that need nothing learned: a recording, nothing at all, and chance."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import final

import numpy as np

from simops.core.chance import uniform
from simops.core.errors import SignalError
from simops.core.protocols import Act, Memory
from simops.core.signal import Array
from simops.core.task import Task


@final
@dataclass(frozen=True, eq=False)
class Tape:
    """A recording as a policy: plays its actions back, then holds the last one."""

    actions: Array
    """(steps, ...) for every copy, or (copies, steps, ...) for one recording each."""
    per_copy: bool = False

    @property
    def digest(self) -> str:
        """SHA-256 of the recorded actions."""
        actions = np.ascontiguousarray(self.actions)
        head = f"{actions.dtype}{actions.shape}{self.per_copy}"
        return hashlib.sha256(head.encode() + actions.tobytes()).hexdigest()

    def start(self, task: Task, seeds: Array) -> Memory:
        """Rewind; raises if the recording is not of this task's action."""
        lead = 2 if self.per_copy else 1
        if self.actions.shape[lead:] != task.action.shape or self.actions.shape[lead - 1] == 0:
            raise SignalError(
                f"a tape of shape {self.actions.shape} does not drive {task.action.name}",
                attempt=f"rows of shape {task.action.shape}",
            )
        if self.per_copy and len(self.actions) != len(seeds):
            raise SignalError(f"{len(self.actions)} recordings for {len(seeds)} copies")
        return {"step": np.zeros(len(seeds), np.int64), "copy": np.arange(len(seeds))}

    def act(self, observation: Array, memory: Memory) -> Act:
        """The recorded action of this step, whatever is observed."""
        del observation
        steps = self.actions.shape[1 if self.per_copy else 0]
        at = np.minimum(memory["step"], steps - 1)
        action = self.actions[memory["copy"], at] if self.per_copy else self.actions[at]
        return Act(action, {"step": memory["step"] + 1, "copy": memory["copy"]})


@final
@dataclass(frozen=True)
class Zero:
    """Does nothing: the centre of the action, always."""

    digest: str = field(default="zero", init=False)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Remember the centre."""
        return {"centre": np.tile(centre_and_scale(task)[0], (len(seeds), 1)).reshape(len(seeds), *task.action.shape)}

    def act(self, observation: Array, memory: Memory) -> Act:
        """The centre."""
        del observation
        return Act(memory["centre"], memory)


@final
@dataclass(frozen=True)
class Random:
    """Draws every action uniformly from the limits."""

    hold_steps: int = 1
    """Control steps before the next draw."""

    @property
    def digest(self) -> str:
        """Its recipe."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Remember seeds and limits."""
        centre, scale = centre_and_scale(task)
        n = len(seeds)
        return {
            "seed": seeds,
            "step": np.zeros(n, np.int64),
            "centre": np.tile(centre, (n, 1)).reshape(n, *task.action.shape),
            "scale": np.tile(scale, (n, 1)).reshape(n, *task.action.shape),
        }

    def act(self, observation: Array, memory: Memory) -> Act:
        """A pure function of each copy's seed and step."""
        del observation
        shape = memory["centre"].shape[1:]
        draw = uniform(memory["seed"], "policy/random", shape, step=memory["step"] // self.hold_steps)
        action = memory["centre"] + memory["scale"] * (2.0 * draw - 1.0)
        return Act(action, {**memory, "step": memory["step"] + 1})


def centre_and_scale(task: Task) -> tuple[Array, Array]:
    """What raw outputs of 0 and 1 mean, (action size,) each: as the task says, or from the limits."""
    low = np.array(task.action.low or (-1.0,) * task.action.size)
    high = np.array(task.action.high or (1.0,) * task.action.size)
    centre = np.array(task.action_centre) if task.action_centre else (low + high) / 2
    scale = np.array(task.action_scale) if task.action_scale else (high - low) / 2
    return centre, scale
