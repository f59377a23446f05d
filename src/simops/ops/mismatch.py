"""What can lie between a policy and what it drives: each kind with its code and the way to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

Kind: TypeAlias = Literal[
    "robot",
    "task",
    "signals",
    "permutation",
    "names",
    "sign",
    "offset",
    "scale",
    "units",
    "quaternion",
    "frame",
    "normaliser_missing",
    "normaliser_doubled",
    "action_scale_missing",
    "action_scale_doubled",
    "history",
    "memory",
    "rate",
    "limits",
    "shape",
    "dead",
    "answers",
    "damage",
]
Level: TypeAlias = Literal["bundle", "contract", "golden", "adapter", "readings", "commands", "pace"]

FAULT: Mapping[Kind, str] = {
    "robot": "EXP-003",
    "task": "EXP-003",
    "signals": "EXP-003",
    "permutation": "EXP-003",
    "names": "EXP-003",
    "sign": "EXP-003",
    "offset": "EXP-003",
    "scale": "EXP-002",
    "units": "EXP-002",
    "quaternion": "EXP-004",
    "frame": "EXP-004",
    "normaliser_missing": "EXP-001",
    "normaliser_doubled": "EXP-001",
    "action_scale_missing": "EXP-002",
    "action_scale_doubled": "EXP-002",
    "history": "EXP-008",
    "memory": "EXP-007",
    "rate": "EXP-009",
    "limits": "EXP-003",
    "shape": "EXP-008",
    "dead": "EXP-003",
    "answers": "EXP-005",
    "damage": "EXP-011",
}
FIX: Mapping[Kind, str] = {
    "robot": "take the bundle that was trained for this robot",
    "task": "take the bundle that was trained for this task, or name the task it was trained for",
    "signals": "pack the observation by name: task.observation.pack(columns)",
    "permutation": "map elements by name, not by place",
    "names": "give both sides the same names, or map one to the other",
    "sign": "flip these elements once, where driver and policy meet; compare the joint axes of both descriptions",
    "offset": "add the constant back where driver and policy meet; compare the zero positions of both descriptions",
    "scale": "remove the factor; everything that crosses the border is in the unit its signal names",
    "units": "convert once, where driver and policy meet: everything inside is SI, angles are radians",
    "quaternion": "reorder: quaternions are w, x, y, z here",
    "frame": "turn the vector into the frame its signal names before the policy sees it",
    "normaliser_missing": "export again with the normaliser of the checkpoint inside the graph",
    "normaliser_doubled": "feed raw observations: the normaliser is inside the graph",
    "action_scale_missing": "export again with centre and scale inside the graph, or apply them once outside",
    "action_scale_doubled": "send actions as they come out: centre and scale are inside the graph",
    "history": "stack the oldest first and the newest last, as many as in training",
    "memory": "hand what the policy remembers back to it at every step, and begin every episode from zeros",
    "rate": "ask the policy at the rate it was trained for",
    "limits": "one description is stale: compare the limits, and train again if the robot's have changed",
    "shape": "take the bundle that was trained for this shape",
    "dead": "check the wire, the actuator's name and its mode",
    "answers": "export again from the checkpoint, with the runtime that the provenance names",
    "damage": "export it again, or take the previous bundle",
}


@final
@dataclass(frozen=True)
class Mismatch:
    """One thing that is not as both sides believe."""

    kind: Kind
    level: Level
    """Where it was noticed."""
    where: tuple[str, ...]
    """Names of the signals or elements it is about."""
    what: str
    """A sentence."""
    fix: str = ""
    """What to do; that of the kind when left out."""

    @property
    def fault(self) -> str:
        """The catalogue's code."""
        return FAULT[self.kind]

    def __str__(self) -> str:
        return f"{self.fault} {self.kind}: {self.what}\n  fix: {self.fix or FIX[self.kind]}"
