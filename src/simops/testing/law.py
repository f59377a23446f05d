"""What a conformance kit is made of: a requirement in words, a comparison to the bit, and a case to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import chance
from simops.core.policy import Random
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Draw, Task

BATCHES = (1, 7, 64)
"""Rows that stand side by side in checks of row independence."""


def require(held: object, words: str) -> None:
    """Raise AssertionError with `words` unless `held`."""
    if not held:
        raise AssertionError(words)


def same(one: Array, other: Array, words: str) -> None:
    """Require the same bytes: also the same dtype, shape and not-a-numbers."""
    require(one.dtype == other.dtype, f"{words}: {one.dtype} and {other.dtype}")
    require(one.shape == other.shape, f"{words}: shapes {one.shape} and {other.shape}")
    if np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes():
        return
    differ = np.flatnonzero(~np.isclose(one, other, rtol=0, atol=0, equal_nan=True))
    at = f"{len(differ)} of {one.size} elements, first at {differ[:1]}" if differ.size else "a sign or a payload"
    raise AssertionError(f"{words}: bytes differ in {at}")


def same_columns(one: Columns, other: Columns, words: str) -> None:
    """Require the same names with the same bytes under each."""
    require(set(one) == set(other), f"{words}: {sorted(one)} and {sorted(other)}")
    for name in one:
        same(one[name], other[name], f"{words}: {name}")


def fits(columns: Columns, signal: Signal, rows: int, words: str) -> None:
    """Require a column of this signal's shape with so many finite rows of floats."""
    require(signal.name in columns, f"{words} lacks {signal.name!r}")
    found = columns[signal.name]
    want = (rows, *signal.shape)
    require(found.shape == want, f"{words}: {signal.name} has shape {found.shape}, want {want}")
    require(found.dtype.kind in "fiub", f"{words}: {signal.name} is {found.dtype}, want numbers")
    require(np.all(np.isfinite(found)), f"{words}: {signal.name} is not finite")


def rows_of(columns: Mapping[str, Array], ids: Array) -> dict[str, Array]:
    """Some rows of every column."""
    return {name: rows[ids] for name, rows in columns.items()}


def copied(columns: Columns) -> dict[str, Array]:
    """The columns in arrays of their own."""
    return {name: np.array(rows) for name, rows in columns.items()}


def draw_of(task: Task, n: int) -> Draw:
    """What the first `n` episodes of the kit's own realm draw."""
    seeds = chance.seeds(0, np.arange(n), realm="kit")
    return Draw(task.belief.sample(seeds), seeds, np.zeros(n, np.int64))


def invented(schema: Schema, n: int, step: int = 0) -> dict[str, Array]:
    """Columns that fit a schema: inside limits where a signal has them, of order 1 where not."""
    seeds = chance.seeds(1, np.arange(n), realm="kit")
    found: dict[str, Array] = {}
    for signal in schema.signals:
        rows = chance.normal(seeds, f"kit/{signal.name}", signal.shape, step=step)
        if signal.low and signal.high:
            share = chance.uniform(seeds, f"kit/{signal.name}", signal.shape, step=step)
            low, high = (np.array(side).reshape(signal.shape) for side in (signal.low, signal.high))
            rows = low + (high - low) * share
        found[signal.name] = rows.astype(np.float32)
    return found


@final
@dataclass(frozen=True)
class Case:
    """Some episodes' beginnings and random actions for their first steps."""

    draw: Draw
    initial: Columns
    actions: Array
    """(steps, n, ...)."""

    @classmethod
    def of(cls, task: Task, n: int, steps: int) -> Case:
        """The kit's first `n` episodes of a task."""
        draw = draw_of(task, n)
        policy = Random()
        memory = policy.start(task, draw.seeds)
        actions: list[Array] = []
        for _ in range(steps):
            action, memory = policy.act(np.empty((n, 0)), memory)
            actions.append(action.astype(np.float32))
        return cls(draw, copied(task.initial(draw)), np.stack(actions))

    def rows(self, ids: Array) -> Case:
        """Some of the episodes."""
        draw = Draw(self.draw.params.rows(ids), self.draw.seeds[ids], self.draw.step[ids])
        return Case(draw, rows_of(self.initial, ids), self.actions[:, ids])
