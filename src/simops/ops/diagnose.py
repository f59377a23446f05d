"""The failure compiler: failures in, the smallest of each kind, what they come from, and patches out.

    found = diagnose(ground)
    patches = prescribe(spec, text, found.cause, found.why, found.evidence, found.clusters)

A verdict on a cause is a first guess by counterfactual replays, not a proof; a patch is judged by what it does next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from simops.core.failure import Evidence, Failure, attribute
from simops.core.patch import Cause
from simops.core.scenario import Scenario
from simops.gate.cluster import clusters, kind, left
from simops.gate.shrink import shrink
from simops.ops.counterfactual import Ground, begun, covered, evidence, played

MOST_SHRUNK = 12
"""Failures that are made small, the first of them; the others are only counted."""


@final
@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was found."""

    cause: Cause
    why: str
    evidence: Evidence
    clusters: tuple[Failure, ...]
    """One for all failures that are alike, the most frequent first."""

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types."""
        return {
            "cause": self.cause,
            "why": self.why,
            "evidence": self.evidence.numbers(),
            "wire": self.evidence.wire,
            "clusters": [one.body() for one in self.clusters],
        }


def diagnose(ground: Ground) -> Diagnosis:
    """Shrink, classify, cluster and attribute what failed."""
    found = evidence(ground)
    cause, why = attribute(found)
    return Diagnosis(cause=cause, why=why, evidence=found, clusters=tuple(clusters(failures(ground))))


def failures(ground: Ground) -> list[Failure]:
    """The gate's failures made small, and the trials that failed as the scenarios that are most like them."""
    return [*_of_gate(ground), *_of_trials(ground)]


def _of_gate(ground: Ground) -> list[Failure]:
    some = ground.failed[:MOST_SHRUNK]
    if not some:
        return []
    physical = {param.name for param in ground.task.belief.params if param.changes}
    centre = {name: value for name, value in ground.centre.items() if name in physical}

    def fails(scenarios: Sequence[Scenario]) -> list[bool]:
        return [not good for good in played(ground, scenarios, ground.judge).success.tolist()]

    small = shrink(fails, some, centre)
    return [
        replace(failure, alike=(first.hash,))
        for first, failure in zip(some, _kinds(ground, small, centre, "gate"), strict=True)
    ]


def _of_trials(ground: Ground) -> list[Failure]:
    lost = [one for one in ground.trials if one.outcome != "success"][:MOST_SHRUNK]
    if not lost:
        return []
    like = [begun(ground, one) for one in lost]
    kinds = _kinds(ground, like, ground.centre, "trial")
    return [replace(one, alike=(f"trial {t.episode}",)) for one, t in zip(kinds, lost, strict=True)]


def _kinds(ground: Ground, small: Sequence[Scenario], centre: Mapping[str, float], source: str) -> list[Failure]:
    """Small scenarios with what kind they are of; a trial that the simulator does not fail in is a dynamic one."""
    engine = ground.judge if source == "gate" else ground.simulator.engine
    there = played(ground, small, engine)
    sensed = played(ground, small, engine, honest=True).success if ground.sensors else np.zeros(len(small), bool)
    ended = [trajectory for block in there.blocks for trajectory in block]
    found: list[Failure] = []
    for i, one in enumerate(small):
        off = left(one, centre)
        kinds = kind(one, off, ground.task, outside=not covered(ground, one), sensed=bool(sensed[i]), ended=ended[i])
        if source == "trial" and bool(there.success[i]):
            kinds = "dynamic"
        found.append(Failure(kind=kinds, scenario=one, left=off, source="gate" if source == "gate" else "trial"))
    return found
