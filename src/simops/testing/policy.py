"""Conformance kit for policies: a digest that stands, rows that stand alone, and memory that is passed, not kept."""

from __future__ import annotations

import numpy as np

from simops.core import chance
from simops.core.protocols import Memory, Policy
from simops.core.signal import Array
from simops.core.task import Task
from simops.testing.law import BATCHES, copied, invented, require, rows_of, same, same_columns

STEPS = 12


def check_policy(policy: Policy, task: Task) -> None:
    """Raise AssertionError where `policy` breaks a promise at `task`, on observations made up for it."""
    digest = policy.digest
    require(digest.strip(), "digest is empty")
    n = max(BATCHES)
    seeds = chance.seeds(3, np.arange(n), realm="kit")
    observations = [task.observation.pack(invented(task.observation, n, step)) for step in range(STEPS)]
    whole = _acted(policy, task, policy.start(task, seeds), observations)
    for one, other in zip(whole, _acted(policy, task, policy.start(task, seeds), observations), strict=True):
        same(one, other, "the same observations twice")
    for rows in BATCHES:
        part = [observation[:rows] for observation in observations]
        found = _acted(policy, task, policy.start(task, seeds[:rows]), part)
        for one, other in zip(found, whole, strict=True):
            same(one, other[:rows], f"actions of {rows} rows and of the same among {n}")
    _rows_can_be_dropped(policy, task, seeds, observations, whole)
    require(policy.digest == digest, "digest changes when the policy acts")


def _acted(policy: Policy, task: Task, memory: Memory, observations: list[Array]) -> list[Array]:
    """The action of every step."""
    names = set(memory)
    found: list[Array] = []
    for observation in observations:
        n = len(observation)
        for name, rows in memory.items():
            require(rows.shape[:1] == (n,), f"memory {name!r} has shape {rows.shape}, want one row a copy")
        seen, remembered = observation.copy(), copied(memory)
        action, after = policy.act(observation, memory)
        same(observation, seen, "act() writes into the observation it was given")
        same_columns(memory, remembered, "act() writes into the memory it was given")
        want = (n, *task.action.shape)
        require(action.shape == want, f"act() gives shape {action.shape}, want {want}")
        require(np.all(np.isfinite(action.astype(np.float32))), "act() gives an action that is not finite")
        require(set(after) == names, f"memory holds {sorted(after)}, began with {sorted(names)}")
        found.append(action.astype(np.float32))
        memory = after
    return found


def _rows_can_be_dropped(
    policy: Policy, task: Task, seeds: Array, observations: list[Array], whole: list[Array]
) -> None:
    half = STEPS // 2
    memory = policy.start(task, seeds)
    for observation in observations[:half]:
        memory = policy.act(observation, memory).memory
    kept = np.arange(0, len(seeds), 3)
    rest = [observation[kept] for observation in observations[half:]]
    for step, action in enumerate(_acted(policy, task, rows_of(memory, kept), rest)):
        same(action, whole[half + step][kept], "after taking some rows of the memory away, the others")
