"""Trajectories: the only currency between training, validation, gate, robot and identification.

An episode of L steps has L + 1 rows. Row t holds the state and what the policy was shown; the
action it then asked for, the action that reached the motors, and the reward that followed are in
the same row. The last row has a state and no action: its action, executed and reward are NaN.
When the physics broke down the last row is all NaN, for there is no honest number to put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, final

import numpy as np

from simops.core.params import Params
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Task

Outcome: TypeAlias = Literal["success", "failure", "timeout", "diverged"]
OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "timeout", "diverged")
Origin: TypeAlias = Literal["sim", "sealed", "robot", "recorded"]
"""Where numbers come from; `recorded` is hardware that was measured before and elsewhere."""


@final
@dataclass(frozen=True)
class Provenance:
    """Enough to run it again."""

    engine: str
    """The engine's recipe."""
    simulator: str
    """Version of the physics and digest of the scene."""
    task: str
    policy: str
    """The policy's digest."""
    seed: int
    """The root every episode's seed is derived from."""
    realm: str = "train"
    """Namespace of the seeds: what trains and what judges never share one."""
    sensors: tuple[str, ...] = ()
    origin: Origin = "sim"
    packages: tuple[str, ...] = ()
    """As `mujoco 4.0.0`."""


@final
@dataclass(frozen=True)
class Trajectory:
    """One episode: named columns over time, how it ended, where it came from, at which params."""

    schema: Schema
    columns: Columns
    outcome: Outcome
    provenance: Provenance
    params: Mapping[str, float]
    episode: int
    """Its number under the provenance's root seed."""
    seed: int
    scenario: str = ""
    """Hash of the scenario it ran; empty where the root seed and the episode's number say everything."""

    def __getitem__(self, name: str) -> Array:
        _ = self.schema[name]
        return self.columns[name]

    def __len__(self) -> int:
        """Steps taken: one less than rows."""
        return len(next(iter(self.columns.values()))) - 1


@final
@dataclass(frozen=True)
class Block:
    """Many episodes of one schema end to end: how a batch of trajectories travels."""

    schema: Schema
    rows: Array
    """(sum of lengths + 1, schema.size) float32, packed, episode after episode."""
    episodes: Array
    """(n,) int64 numbers under the root seed."""
    seeds: Array
    """(n,) uint64."""
    lengths: Array
    """(n,) int64 steps taken; each episode has one row more."""
    outcomes: Array
    """(n,) int8, indices into OUTCOMES."""
    params: Params
    scores: Mapping[str, Array]
    """Sum over the episode of `reward` and of each of its terms, (n,) float64."""
    provenance: Provenance
    scenarios: tuple[str, ...] = ()
    """Hash of the scenario each episode ran; empty where none did."""

    def __len__(self) -> int:
        return len(self.episodes)

    @cached_property
    def starts(self) -> Array:
        """(n,) first row of each episode."""
        return np.concatenate([[0], np.cumsum(self.lengths + 1)[:-1]]).astype(np.int64)

    def __iter__(self) -> Iterator[Trajectory]:
        for i in range(len(self)):
            yield self.trajectory(i)

    def trajectory(self, i: int) -> Trajectory:
        """The i-th episode on its own; its columns are views."""
        start = int(self.starts[i])
        rows = self.rows[start : start + int(self.lengths[i]) + 1]
        return Trajectory(
            schema=self.schema,
            columns=self.schema.unpack(rows),
            outcome=OUTCOMES[int(self.outcomes[i])],
            provenance=self.provenance,
            params=self.params.at(i),
            episode=int(self.episodes[i]),
            seed=int(self.seeds[i]),
            scenario=self.scenarios[i] if self.scenarios else "",
        )


def shown(name: str) -> str:
    """Column name of an observation that differs from the state of that name."""
    return f"shown_{name}"


def recorded(task: Task, sensed: frozenset[str]) -> Schema:
    """What a trajectory of this task holds: state, goal, what the policy was shown, actions, reward.

    An observation that is a state or goal signal no sensor touched is not stored twice.
    """
    state = task.state_schema
    extra = tuple(
        replace(signal, name=shown(signal.name))
        for signal in task.observation.signals
        if signal.name not in state or signal.name in sensed
    )
    action = task.action
    acted = (replace(action, name="action"), replace(action, name="executed"))
    return Schema((*state.signals, *extra, *acted, Signal("reward")))


def scored(task: Task, trajectory: Trajectory) -> Columns:
    """Rows as the task's scores want them: the state after each step beside the action and the goal it was for."""
    action = trajectory.columns["action"]
    steps = len(trajectory)
    columns = {reading.signal.name: trajectory.columns[reading.signal.name][1:] for reading in task.state}
    columns |= {name: trajectory.columns[name][:-1] for name in task.goal_signals.names}
    columns["action"] = action[:-1]
    columns["previous_action"] = np.concatenate([action[:1], action[: steps - 1]])
    columns["time_s"] = (np.arange(1, steps + 1) * task.control_dt_s).astype(np.float32)
    return columns
