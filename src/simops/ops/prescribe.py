"""From a cause to patches: typed changes of the spec, each with its reason, and whether anybody has to be asked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from simops.core.failure import Evidence, Failure
from simops.core.patch import Cause, Edit, Level, Patch
from simops.spec import patched
from simops.spec.believe import Normal
from simops.spec.crank import Crank
from simops.spec.load import Loaded
from simops.spec.randomize import Spread
from simops.spec.ranges import Range

NARROW = 32
"""A layer with fewer neurons is widened before anything else is tried."""
MOST_SCENARIOS = 12
"""Worlds that a spec holds; the oldest make room."""


def prescribe(
    loaded: Loaded[Crank], text: str, cause: Cause, why: str, found: Evidence, clusters: Sequence[Failure]
) -> list[Patch]:
    """What to change for a cause; nothing where nothing in the spec is wrong."""
    spec = loaded.value
    said: list[tuple[Level, Mapping[str, object]]] = []
    match cause:
        case "capacity":
            said += _larger(loaded.plain, found)
            said += _injected(text, clusters)
        case "range":
            said += _wider(spec, clusters)
            said += _injected(text, clusters)
        case "reward":
            said += _reweighted(spec)
        case "simulator":
            floor: dict[str, object] = {"learning.floor": round(min(0.2, max(0.02, 1.5 * spec.learning.floor)), 4)}
            said.append(("simulator", floor))
        case "contract" | "unknown":
            pass
    patches = [_patch(spec, text, level, changes, cause, why, found, clusters) for level, changes in said]
    return [patch for patch in patches if patch.edits]


def inside(spec: Crank, edits: Sequence[Edit]) -> bool:
    """Whether every number that an edit sets stays within what the spec declares for its key."""
    for edit in edits:
        bound = spec.patches.within.get(edit.path)
        if bound is None or not all(bound.low <= n <= bound.high for n in _numbers(json.loads(edit.after or "null"))):
            return False
    return bool(edits)


def _larger(plain: Mapping[str, Any], found: Evidence) -> list[tuple[Level, Mapping[str, object]]]:
    """More laps while more laps help; otherwise a wider network."""
    trainer: dict[str, Any] = plain["trainer"]
    laps: int = trainer.get("laps", 0)
    part = next((name for name in ("actor", "student") if "hidden" in (trainer.get(name) or {})), "")
    hidden: list[int] = trainer[part]["hidden"] if part else []
    learns = found.rising is None or found.rising > 0.0 or found.trained > 0.3
    if laps and learns and min(hidden, default=NARROW) >= NARROW:
        return [("capacity", {"trainer.laps": math.ceil(1.5 * laps)})]
    if hidden:
        return [("capacity", {f"trainer.{part}.hidden": [max(NARROW, 2 * width) for width in hidden]})]
    return [("capacity", {"trainer.laps": math.ceil(1.5 * laps)})] if laps else []


def _injected(text: str, clusters: Sequence[Failure]) -> list[tuple[Level, Mapping[str, object]]]:
    """The smallest of what failed, to be trained in, as often as it stands for others."""
    before: list[Any] = json.loads(patched.value(text, "scenarios") or "[]")
    fresh = [
        {
            "weight": float(len(one.alike)),
            "params": {name: round(one.scenario.params[name], 6) for name in one.left},
            **({"initial": {n: list(v) for n, v in one.scenario.initial.items()}} if one.scenario.initial else {}),
        }
        for one in clusters
        if one.source == "gate" and one.left
    ]
    return [("scenario", {"scenarios": [*before, *fresh][-MOST_SCENARIOS:]})] if fresh else []


def _wider(spec: Crank, clusters: Sequence[Failure]) -> list[tuple[Level, Mapping[str, object]]]:
    """Ranges of the randomization that reach what failed."""
    names = {name for one in clusters for name in one.left}
    changes: dict[str, object] = {}
    for key, spread in spec.randomization.physics.items():
        for name in names:
            if not key.startswith(name):
                continue
            values = [one.scenario.params[name] for one in clusters if name in one.left]
            low, high = _ends(spread)
            low, high = min(low, *values), max(high, *values)
            air = 0.1 * (high - low)
            changes[f"randomization.physics.{key}"] = [round(low - air if low > 0 else low, 6), round(high + air, 6)]
    return [("randomization", changes)] if changes else []


def _reweighted(spec: Crank) -> list[tuple[Level, Mapping[str, object]]]:
    """Terms that were made to weigh otherwise than the task has them, half the way back; else the heaviest cost."""
    own = {term.name: term.weight for term in spec.scene.task.reward}
    changed = {name: weight for name, weight in spec.reward.items() if name in own and weight != own[name]}
    if not changed:
        return []
    worst = max(changed, key=lambda name: abs(changed[name] - own[name]) / max(abs(own[name]), 1e-9))
    return [("reward", {f"reward.{worst}": own[worst]})]


def _patch(
    spec: Crank,
    text: str,
    level: Level,
    changes: Mapping[str, object],
    cause: Cause,
    why: str,
    found: Evidence,
    clusters: Sequence[Failure],
) -> Patch:
    edits = tuple(
        Edit(path, json.dumps(after, sort_keys=True), before)
        for path, after in changes.items()
        if (before := patched.value(text, path)) != json.dumps(after, sort_keys=True)
    )
    return Patch(
        level=level,
        edits=edits,
        reason=why,
        cause=cause,
        evidence=found.numbers(),
        scenarios=tuple(one.scenario.hash for one in clusters),
        within=inside(spec, edits),
    )


def _ends(spread: Spread) -> tuple[float, float]:
    match spread:
        case Range():
            return spread.low, spread.high
        case Normal():
            return spread.mean - 2 * spread.std, spread.mean + 2 * spread.std
        case number:
            return float(number), float(number)


def _numbers(said: Any) -> list[float]:  # noqa: ANN401 (JSON's own types)
    if isinstance(said, bool) or said is None or isinstance(said, str):
        return []
    if isinstance(said, int | float):
        return [float(said)]
    parts = cast("dict[str, Any]", said).values() if isinstance(said, dict) else cast("list[Any]", said)
    return [number for part in parts for number in _numbers(part)]
