"""Throws of one free body: what contact is learned from, and what an engine offers that it can be learned in.

A throw is a body that flies, strikes and comes to rest, with nobody touching it. Its poses are recorded; its first row
is the whole initial condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, final, runtime_checkable

import numpy as np

from simops.core.errors import DataError
from simops.core.params import Param, Params
from simops.core.signal import Array, Columns
from simops.core.task import Task

STATE = ("position", "quaternion", "velocity", "angular_velocity")
"""Of a throw: metres in the world, world from body with w first, in the world, in the body."""
SIZES = (3, 4, 3, 3)
SHORTEST = 8
"""Rows of a throw that can be learned from."""


@final
@dataclass(frozen=True)
class Throws:
    """Recorded throws, padded to the longest with NaN."""

    names: tuple[str, ...]
    rows: Array
    """(n,) how many rows each has."""
    columns: Columns
    """The four of `STATE`, (n, most rows, size)."""
    dt_s: float

    def __len__(self) -> int:
        return len(self.names)

    def some(self, ids: Array) -> Throws:
        """Some of them, by number."""
        most = int(self.rows[ids].max())
        columns = {name: cells[ids, :most] for name, cells in self.columns.items()}
        return Throws(tuple(self.names[int(i)] for i in ids), self.rows[ids], columns, self.dt_s)

    @classmethod
    def of(cls, names: Sequence[str], each: Sequence[Columns], dt_s: float) -> Throws:
        """Gather throws; raises for those that are too short or hold what is no number."""
        rows = np.array([len(one["position"]) for one in each], np.int64)
        for name, one, many in zip(names, each, rows.tolist(), strict=True):
            if many < SHORTEST:
                raise DataError(
                    f"{many} rows are no throw", where=name, attempt=f"at least {SHORTEST}", fault="LRN-004"
                )
            for column in STATE:
                if not np.all(np.isfinite(one[column])):
                    raise DataError(f"{column} holds what is no number", where=name, fault="LRN-001")
        if not len(rows):
            raise DataError("no throw to learn from", fault="LRN-004")
        columns: dict[str, Array] = {}
        for column, size in zip(STATE, SIZES, strict=True):
            columns[column] = np.full((len(rows), int(rows.max()), size), np.nan)
            for i, one in enumerate(each):
                columns[column][i, : rows[i]] = one[column]
        return cls(tuple(names), rows, columns, dt_s)


class Missed(NamedTuple):
    """How far each throw was from its recording, over all its rows."""

    way_m: Array
    """(n,) mean distance between the positions; the length of the room where a simulation broke down."""
    turn_rad: Array
    """(n,) mean angle between the orientations."""


def missed(position: Array, quaternion: Array, throws: Throws) -> Missed:
    """Compare poses, padded as the throws are, with what was recorded."""
    way = np.linalg.norm(position - throws.columns["position"], axis=2)
    size = np.linalg.norm(quaternion, axis=2) * np.linalg.norm(throws.columns["quaternion"], axis=2)
    alike = np.abs((quaternion * throws.columns["quaternion"]).sum(axis=2))
    with np.errstate(invalid="ignore", divide="ignore"):
        angle = 2.0 * np.arccos(np.minimum(alike / size, 1.0))
    inside = np.arange(int(throws.rows.max())) < throws.rows[:, None]
    lost = 10.0, np.pi
    means = [
        np.where(inside, np.nan_to_num(cells, nan=worst, posinf=worst), 0.0).sum(axis=1) / throws.rows
        for cells, worst in zip((way, angle), lost, strict=True)
    ]
    return Missed(*means)


@runtime_checkable
class Thrower(Protocol):
    """An engine whose law of contact can be learned: its settings are params, and it throws many at once."""

    @property
    def settings(self) -> tuple[Param, ...]:
        """What may be learned of it, nominal as it is set."""
        ...

    def at(self, values: Mapping[str, float]) -> Self:
        """The same engine with some settings changed."""
        ...

    def throw(self, task: Task, begun: Columns, rows: Array, params: Params | None = None) -> Mapping[str, Array]:
        """`position` and `quaternion` of throws that begin as told, (n, most rows, size); NaN beyond their end."""
        ...
