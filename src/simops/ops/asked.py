"""What a policy is asked: watched in episodes, made up, or made to break arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import numpy as np

from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.protocols import Act, Engine, Memory, Policy
from simops.core.rollout import rollout
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import shown

if TYPE_CHECKING:
    from simops.data.store import Dataset

GOLDEN_STEPS, GOLDEN_ROWS = 24, 4


@final
@dataclass(frozen=True, eq=False)
class Watched:
    """A policy and what it was asked: every observation and memory, in order."""

    policy: Policy
    seen: list[tuple[Array, Memory]]

    @property
    def digest(self) -> str:
        """The policy's own."""
        return self.policy.digest

    def start(self, task: Task, seeds: Array) -> Memory:
        """The policy's own."""
        return self.policy.start(task, seeds)

    def act(self, observation: Array, memory: Memory) -> Act:
        """The policy's own answer."""
        self.seen.append((observation.copy(), {name: rows.copy() for name, rows in memory.items()}))
        return self.policy.act(observation, memory)


def observed(policy: Policy, task: Task, engine: Engine, *, n: int, seed: int = 0) -> list[tuple[Array, Memory]]:
    """What `policy` is asked, step by step, in `n` episodes side by side; fewer rows as they end."""
    watched = Watched(policy, [])
    rollout(watched, task, engine, n=n, seed=seed, batch=n)
    return watched.seen


def sequences(seen: Sequence[tuple[Array, Memory]], *, steps: int = GOLDEN_STEPS, rows: int = GOLDEN_ROWS) -> Array:
    """The first steps of some episodes that lasted long enough, (steps, rows, size)."""
    rows = min(rows, len(seen[0][0]))
    whole = [observation[:rows] for observation, _ in seen[:steps] if len(observation) == len(seen[0][0])]
    return np.stack(whole)


def recorded(dataset: Dataset, contract: Contract, *, episodes: int = 64) -> list[Array]:
    """What was shown in the first episodes of a dataset, (steps, 1, size) each; raises for another robot's."""
    theirs = dataset.header.schema
    names = [shown(name) if shown(name) in theirs else name for name in contract.observation.names]
    for name, signal in zip(names, contract.observation.signals, strict=True):
        if name not in theirs or theirs[name].as_dict() != replace(signal, name=name).as_dict():
            raise DataError(
                f"the dataset has no {signal.name} as the policy reads it", where=str(dataset.path), fault="DAT-008"
            )
    found: list[Array] = []
    for block in dataset.blocks():
        for one in block:
            columns = {mine: one[name][:-1] for name, mine in zip(names, contract.observation.names, strict=True)}
            found.append(contract.observation.pack(columns)[:, None])
            if len(found) == episodes:
                return found
    return found


def invented(contract: Contract, *, steps: int = GOLDEN_STEPS, rows: int = GOLDEN_ROWS, seed: int = 0) -> Array:
    """Observations made up where there is no simulation to take them from; within limits, where a signal has any."""
    rng = np.random.default_rng(seed)
    parts: list[Array] = []
    for signal in contract.observation.signals:
        low = np.array(signal.low or (-2.0,) * signal.size)
        high = np.array(signal.high or (2.0,) * signal.size)
        drawn: Array = rng.uniform(np.maximum(low, -1e3), np.minimum(high, 1e3), (steps, rows, signal.size))
        parts.append(drawn)
    return np.concatenate(parts, axis=-1).astype(np.float32)


def stressed(contract: Contract, observations: Array, rows: int) -> Array:
    """Observations to compare on: the given ones, up to ten times as wild ones, limits, and what breaks arithmetic."""
    rng = np.random.default_rng(0)
    picked = observations[rng.integers(0, len(observations), rows)].astype(np.float64)
    spread = observations.std(axis=0) + 1e-3
    wild = picked + spread * rng.normal(size=picked.shape) * rng.choice((0.0, 1.0, 10.0), (rows, 1))
    out: Array = wild.astype(np.float32)
    signals = contract.observation.signals
    low: Array = np.concatenate([np.array(s.low or (-10.0,) * s.size) for s in signals])
    high: Array = np.concatenate([np.array(s.high or (10.0,) * s.size) for s in signals])
    extremes = (low, high, 0.0, -0.0, 1e-42, -1e-42, 1e-38, 1e6, -1e6, 3e38, -3e38)
    for i, value in enumerate(extremes):
        out[i] = value
        some: Array = np.less(rng.random(contract.observation.size), 0.2)
        out[len(extremes) + i] = np.where(some, value, out[len(extremes) + i])
    return out
