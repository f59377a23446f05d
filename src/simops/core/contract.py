"""What a policy reads, remembers and writes, and how often: compared at every border before anything moves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast, final

import numpy as np

from simops.core.errors import SignalError
from simops.core.signal import Array, Schema, Signal
from simops.core.task import Task


@final
@dataclass(frozen=True)
class Slot:
    """One array that a policy remembers from step to step: a recurrent state, a history, a counter."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    def zeros(self, n: int) -> Array:
        """As every episode begins."""
        return np.zeros((n, *self.shape), self.dtype)


class Difference(NamedTuple):
    """One thing two contracts disagree about."""

    what: str
    mine: str
    theirs: str


@final
@dataclass(frozen=True, kw_only=True)
class Contract:
    """The border between a policy and whatever it drives."""

    task: str
    robot: str
    observation: Schema
    action: Signal
    """In physical units, with limits and the names of the joints it drives."""
    control_dt_s: float
    memory: tuple[Slot, ...] = ()

    @classmethod
    def of(cls, task: Task, *, memory: tuple[Slot, ...] = ()) -> Contract:
        """What a task asks of a policy."""
        return cls(
            task=task.name,
            robot=task.scene.robot,
            observation=task.observation,
            action=task.action,
            control_dt_s=task.control_dt_s,
            memory=memory,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        return hashlib.sha256(json.dumps(self.body(), sort_keys=True).encode()).hexdigest()

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types."""
        return {
            "task": self.task,
            "robot": self.robot,
            "observation": [signal.as_dict() for signal in self.observation.signals],
            "action": self.action.as_dict(),
            "control_dt_s": self.control_dt_s,
            "memory": [{"name": s.name, "shape": list(s.shape), "dtype": s.dtype} for s in self.memory],
        }

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Contract:
        """Read what `body` said."""
        try:
            [action] = Schema.parse(json.dumps([body["action"]])).signals
            return cls(
                task=body["task"],
                robot=body["robot"],
                observation=Schema.parse(json.dumps(body["observation"])),
                action=action,
                control_dt_s=float(body["control_dt_s"]),
                memory=tuple(Slot(s["name"], tuple(s["shape"]), s["dtype"]) for s in body["memory"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SignalError(f"this is no contract: {type(error).__name__} {error}") from error

    def differences(self, other: Contract) -> tuple[Difference, ...]:
        """Everything in which a policy for `other` would misunderstand this side; memory is the policy's own."""
        found: list[Difference] = []
        for name in ("robot", "task", "control_dt_s"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(Difference(name, str(mine), str(theirs)))
        if self.observation.names != other.observation.names:
            names = (", ".join(side.observation.names) for side in (self, other))
            found.append(Difference("observation", *names))
        for mine, theirs in zip(self._signals(), other._signals(), strict=False):
            found.extend(_between(mine, theirs))
        return tuple(found)

    def _signals(self) -> tuple[Signal, ...]:
        return (*self.observation.signals, self.action)


def _between(mine: Signal, theirs: Signal) -> list[Difference]:
    ours, others = mine.as_dict(), theirs.as_dict()
    return [
        Difference(f"{mine.name}.{key}", _short(ours[key]), _short(others[key]))
        for key in ours
        if ours[key] != others[key] and (mine.name == theirs.name or key != "name")
    ]


def _short(value: object) -> str:
    return ", ".join(str(v) for v in cast("list[object]", value)) if isinstance(value, list) else str(value)
