"""What led to a breakdown: the last states of a copy and every action of its episode, to be run again."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from simops.core.params import Params
from simops.core.policy import Tape
from simops.core.protocols import Engine
from simops.core.rollout import Recipe, wave
from simops.core.signal import Array
from simops.core.task import Draw, Task
from simops.core.training import Course, Dump
from simops.core.trajectory import Trajectory
from simops.learn.checkpoint import Saved, pack, tensor_of

LAST_STEPS = 100
"""States that are kept of every copy."""


class Ended(NamedTuple):
    """An episode that broke down."""

    copy: int
    episode: int
    length: int
    draw: Draw
    """One row."""


@final
class Ring:
    """The recent past of every copy, written over again and again."""

    def __init__(self, task: Task, n: int) -> None:
        """Make room."""
        self._actions = np.zeros((task.steps, n, task.action.size), np.float32)
        self._states = np.zeros((min(LAST_STEPS, task.steps), n, task.state_schema.size), np.float32)
        self._step = 0

    def note(self, state: Array, action: Array) -> None:
        """Remember where all copies are and what they do."""
        self._actions[self._step % len(self._actions)] = action.reshape(action.shape[0], -1)
        self._states[self._step % len(self._states)] = state
        self._step += 1

    def dump(self, course: Course, ended: Ended) -> Dump:
        """Write one copy's past down; the last step noted is the one that it broke in."""
        actions = self._past(self._actions, ended.copy, ended.length)
        states = self._past(self._states, ended.copy, min(ended.length, len(self._states)))
        tensors = {
            "actions": tensor_of(actions),
            "states": tensor_of(states),
            "params": tensor_of(ended.draw.params.values[0].copy()),
        }
        body = {
            "task": course.task.name,
            "engine": repr(course.engine),
            "seed": course.seed,
            "episode": ended.episode,
            "length": ended.length,
            "params": list(ended.draw.params.names),
            "state": list(course.task.state_schema.names),
            "fault": "TRN-001",
        }
        return Dump(f"episode-{ended.episode:08d}", pack(tensors, body))

    def _past(self, ring: Array, copy: int, length: int) -> Array:
        at = np.arange(self._step - length, self._step) % len(ring)
        return ring[at, copy].copy()


def replay(saved: Saved, task: Task, engine: Engine) -> Trajectory:
    """Run an episode that broke down again: same seed, same params, same actions."""
    actions = saved.tensors["actions"].numpy().reshape(-1, *task.action.shape)
    recipe = Recipe(policy=Tape(actions), task=task, engine=engine, seed=int(saved.said("seed")))
    params = Params(tuple(saved.said("params")), saved.tensors["params"].numpy()[None])
    with engine.open(task, 1) as sim:
        [again] = wave(recipe, sim, np.array([int(saved.said("episode"))]), params=params)
    return again
