"""What is counted while copies run: how episodes end, what they earn and cost, and by how much to scale that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from simops.core.env import Step
from simops.core.judge import DIVERGED, FAILURE, SUCCESS
from simops.core.signal import Array
from simops.core.task import Task


class Split(NamedTuple):
    """Where the seconds of a lap went."""

    physics_s: float
    collection_s: float
    """Around the physics: acting, sensing, scoring."""
    learning_s: float


@final
class Tally:
    """Episodes and rewards of one lap."""

    def __init__(self, task: Task) -> None:
        """Begin at nothing."""
        self._task = task
        self.ended = self.succeeded = self.failed = self.diverged = self.steps = 0
        self._length = self._earned = 0.0
        self._terms = {term.name: 0.0 for term in task.reward}

    def take(self, step: Step, earned: Array) -> None:
        """Count one step of every copy; `earned` is what the episodes that ended came to."""
        rows = len(step.reward)
        self.steps += rows
        self.ended += len(step.ended)
        self.succeeded += int((step.outcome == SUCCESS).sum())
        self.failed += int((step.outcome == FAILURE).sum())
        self.diverged += int((step.outcome == DIVERGED).sum())
        self._length += float(step.length.sum())
        self._earned += float(earned.sum())
        for name in self._terms:
            values = step.terms[name]
            self._terms[name] += float(values.sum()) if np.isfinite(values).all() else float(np.nansum(values))

    def figures(self) -> dict[str, float]:
        """What came out; nothing of episodes when none ended."""
        found = {f"term/{term.name}": term.weight * self._terms[term.name] / self.steps for term in self._task.reward}
        if self.ended:
            found |= {
                "reward": self._earned / self.ended,
                "success": self.succeeded / self.ended,
                "failure": self.failed / self.ended,
                "episode_s": self._length / self.ended * self._task.control_dt_s,
            }
        return {name: number for name, number in found.items() if math.isfinite(number)}


@final
class Pay:
    """Scales rewards so that returns have unit spread; learns by how much, a lap at a time."""

    def __init__(self, discount: float | None) -> None:
        """`None` leaves rewards as they are."""
        self._discount = discount
        self._ahead = np.zeros(0)
        self._seen: list[Array] = []
        self._count, self._mean, self._square = 0.0, 0.0, 1.0

    def begin(self, n: int) -> None:
        """All `n` copies begin anew."""
        self._ahead = np.zeros(n)

    def scaled(self, reward: Array, over: Array) -> Array:
        """The rewards to learn from, by what was learned until the last `close`."""
        if self._discount is None:
            return reward.astype(np.float32)
        self._ahead = self._discount * self._ahead + reward
        self._seen.append(self._ahead[np.isfinite(self._ahead)])
        self._ahead = np.where(over | ~np.isfinite(self._ahead), 0.0, self._ahead)
        return (reward / math.sqrt(self._square + 1e-8)).astype(np.float32)

    def close(self) -> None:
        """A lap is over."""
        rows = np.concatenate(self._seen) if self._seen else np.zeros(0)
        self._seen.clear()
        if not rows.size:
            return
        self._count += rows.size
        rate, off = rows.size / self._count, float(rows.mean()) - self._mean
        self._mean += rate * off
        self._square += rate * (float(rows.var()) - self._square + off * (float(rows.mean()) - self._mean))

    def tensors(self) -> dict[str, Tensor]:
        """What was learned, by name."""
        return {"pay.moments": torch.tensor([self._count, self._mean, self._square], dtype=torch.float64)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what `tensors` told."""
        self._count, self._mean, self._square = (float(number) for number in tensors["moments"])
