"""A patch: a typed change to a spec, with the reason for it and the evidence; reviewed as a diff before it counts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, final, get_args

from simops.core.errors import DataError, nearest

Level: TypeAlias = Literal["reward", "randomization", "scenario", "capacity", "simulator"]
LEVELS: tuple[Level, ...] = get_args(Level)
Cause: TypeAlias = Literal["simulator", "contract", "range", "capacity", "reward", "unknown"]
"""What a failure comes from: a simulator that is not the world, a border that is wired wrongly, a training that never
saw such a world, a network or a training too small, a reward that asks for something else."""
CAUSES: tuple[Cause, ...] = get_args(Cause)
FORMAT = 1


@final
@dataclass(frozen=True)
class Edit:
    """One value of a spec that becomes another."""

    path: str
    """Key path, as `trainer.laps`; a list is replaced whole."""
    after: str
    """As JSON; empty to take the key away."""
    before: str = ""
    """As JSON; empty where the key was not there."""


@final
@dataclass(frozen=True, kw_only=True)
class Patch:
    """What to change, why, and what says so."""

    level: Level
    edits: tuple[Edit, ...]
    reason: str
    """A sentence."""
    cause: Cause = "unknown"
    evidence: Mapping[str, float] = field(default_factory=dict[str, float])
    scenarios: tuple[str, ...] = ()
    """Hashes of the failures it is about."""
    within: bool = False
    """Whether it stays within the bounds that the spec declares, so that nobody has to be asked."""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise DataError(f"no patch is at the level {self.level!r}", attempt=nearest(self.level, LEVELS))

    @property
    def digest(self) -> str:
        """SHA-256 of what it changes and why."""
        return hashlib.sha256(json.dumps(self.body(), sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """What a person calls it by."""
        return f"{self.level}-{self.digest[:8]}"

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types."""
        return {
            "format": FORMAT,
            "level": self.level,
            "cause": self.cause,
            "reason": self.reason,
            "within": self.within,
            "evidence": {name: float(value) for name, value in sorted(self.evidence.items())},
            "scenarios": list(self.scenarios),
            "edits": [{"path": one.path, "before": one.before, "after": one.after} for one in self.edits],
        }

    @classmethod
    def of(cls, body: Mapping[str, Any], where: str = "") -> Patch:
        """Read what `body` said; refuse what a newer simops wrote, and what nobody wrote."""
        if body.get("format") != FORMAT:
            raise DataError(f"a patch of format {body.get('format')}", where=where, attempt="the simops that wrote it")
        try:
            return cls(
                level=body["level"],
                cause=body["cause"],
                reason=str(body["reason"]),
                within=bool(body["within"]),
                evidence={str(name): float(value) for name, value in body["evidence"].items()},
                scenarios=tuple(str(one) for one in body["scenarios"]),
                edits=tuple(Edit(str(e["path"]), str(e["after"]), str(e["before"])) for e in body["edits"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this is no patch: {error}", where=where, fault="CRK-002") from None


def contradictions(patches: Sequence[Patch]) -> list[tuple[str, Patch, Patch]]:
    """Keys that two patches want to be different things: the key and the two."""
    found: list[tuple[str, Patch, Patch]] = []
    wanted: dict[str, tuple[str, Patch]] = {}
    for patch in patches:
        for edit in patch.edits:
            for path, (after, other) in wanted.items():
                under = path.startswith(f"{edit.path}.") or edit.path.startswith(f"{path}.")
                if under or (path == edit.path and after != edit.after):
                    found.append((edit.path, other, patch))
            wanted.setdefault(edit.path, (edit.after, patch))
    return found
