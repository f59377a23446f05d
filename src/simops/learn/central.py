"""What to say of a throw that small things decide: many roll-outs that differ by what is not known, and one of them.

A cube on an edge falls to one side or the other, and a fit cannot tell which. The roll-out that is nearest to all the
others is still one way that the law goes from the recorded first row, so it keeps every promise of a contact; the
median of all of them is nearer to the recording on the average, and is no motion that any law makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.throwing import Thrower, Throws
from simops.learn.contact import predict

CORNERS = tuple(f"corners_m_{i}" for i in range(24))


@final
@dataclass(frozen=True, kw_only=True)
class Unknown:
    """What differs from draw to draw."""

    draws: int = 16
    """Roll-outs of every throw; the first is the law's own."""
    corner_m: float = 0.0015
    """Standard deviation of where a corner touches."""
    way_m: float = 0.0105
    turn_rad: float = 0.244
    """Distances that count the same."""
    seed: int = 0


class Several(NamedTuple):
    """Roll-outs of every throw, (draws, throws, rows, size)."""

    position: Array
    quaternion: Array


def several(
    thrower: Thrower, task: Task, throws: Throws, values: dict[str, float], unknown: Unknown, *, lengths: float = 1.0
) -> Several:
    """Roll every throw out at each draw; draw 0 is the law as it is."""
    seeds = chance.seeds(unknown.seed, np.arange(unknown.draws), realm="central")
    off = unknown.corner_m * chance.normal(seeds, "corners", (len(CORNERS),))
    off[0] = 0.0
    paths = [
        predict(thrower, task, throws, values | _moved(values, row), lengths=lengths) for row in off
    ]  # fmt: skip
    return Several(np.stack([p["position"] for p in paths]), np.stack([p["quaternion"] for p in paths]))


def _moved(values: dict[str, float], row: Array) -> dict[str, float]:
    return {name: values.get(name, 0.0) + float(step) for name, step in zip(CORNERS, row, strict=True)}


def most_central(found: Several, throws: Throws, unknown: Unknown) -> Array:
    """(throws,) which draw is nearest to all the others, over all rows."""
    chosen = np.zeros(len(throws), np.int64)
    for i, rows in enumerate(throws.rows.tolist()):
        place, turn = found.position[:, i, :rows], found.quaternion[:, i, :rows]
        way = np.linalg.norm(place[:, None] - place[None], axis=3).mean(axis=2)
        alike = np.abs(np.einsum("ark,brk->abr", turn, turn)).clip(0.0, 1.0)
        angle = 2.0 * np.arccos(alike).mean(axis=2)
        chosen[i] = int((way / unknown.way_m + angle / unknown.turn_rad).mean(axis=1).argmin())
    return chosen


def medians(found: Several, sweeps: int = 10) -> Several:
    """(throws, rows, size): the point and the orientation with the least mean distance to the draws, row by row."""
    place = found.position.mean(axis=0)
    turn = _mean(found.quaternion, np.ones(found.quaternion.shape[:3]))
    for _ in range(sweeps):
        near = 1.0 / np.maximum(np.linalg.norm(found.position - place, axis=3), 1e-3)
        place = (near[..., None] * found.position).sum(axis=0) / near.sum(axis=0)[..., None]
        alike = np.abs((found.quaternion * turn).sum(axis=3)).clip(0.0, 1.0)
        turn = _mean(found.quaternion, 1.0 / np.maximum(2.0 * np.arccos(alike), 0.03))
    return Several(place, turn)


def _mean(quaternions: Array, weights: Array) -> Array:
    """The orientation nearest to all, whichever their signs."""
    square = np.einsum("dtr,dtrk,dtrl->trkl", weights, quaternions, quaternions)
    whole = np.isfinite(square).all(axis=(2, 3))
    vectors = np.linalg.eigh(np.where(whole[..., None, None], square, np.eye(4)))[1][..., -1]
    return np.where(whole[..., None], vectors, np.nan)
