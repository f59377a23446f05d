"""The step that turns a turn's failures into patches, and what is done with those."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from simops.core.errors import SimOpsError
from simops.core.patch import Patch
from simops.core.scenario import Scenario
from simops.core.simulator import Simulator
from simops.core.training import reweighted
from simops.deploy.bundle import load as load_bundle
from simops.ops import learn, logbook, stages, train
from simops.ops.counterfactual import Ground
from simops.ops.diagnose import diagnose
from simops.ops.prescribe import prescribe
from simops.ops.stages import Bench
from simops.ops.steps import Done, Step
from simops.spec import patched
from simops.spec.crank import Crank, load_crank


class Applied(NamedTuple):
    """What became of a turn's patches."""

    text: str
    """Of the spec, for the next turn."""
    done: tuple[Patch, ...]
    waiting: tuple[Patch, ...]
    """Beyond the bounds declared, in each other's way, or not to be applied without asking."""


def diagnosed(
    bench: Bench, turn: int, simulator: Simulator, policy: Done, bundle: Done, gate: Done, tried: Done | None
) -> Step:
    """What failed, made small, what it comes from, and what to change."""

    def work(folder: Path) -> Mapping[str, Any]:
        del folder
        ground = ground_of(bench.spec, simulator, policy, bundle, gate, tried)
        found = diagnose(ground)
        patches = prescribe(bench.loaded, bench.text, found.cause, found.why, found.evidence, found.clusters)
        return {**found.body(), "patches": [patch.body() for patch in patches]}

    inputs = {
        "policy": str(bundle.said["bundle"]),
        "simulator": learn.digest(simulator),
        "gate": gate.digest,
        "trials": "" if tried is None else tried.digest,
        "spec": bench.loaded.digest,
    }
    return Step(stage="diagnose", turn=turn, inputs=inputs, work=work, about="what failed, and why")


def ground_of(spec: Crank, simulator: Simulator, policy: Done, bundle: Done, gate: Done, tried: Done | None) -> Ground:
    """What is diagnosed."""
    failures: list[Mapping[str, Any]] = json.loads((gate.folder / "failures.json").read_text(encoding="utf-8"))
    return Ground(
        policy=load_bundle(bundle.folder / stages.BUNDLE),
        task=reweighted(spec.task, spec.reward),
        simulator=simulator,
        trained_in=stages.drawn_from(spec, simulator),
        judge=spec.validation.engine,
        sensors=spec.sensors,
        failed=tuple(Scenario.of(one) for one in failures),
        trials=() if tried is None else tuple(logbook.read(tried.folder / stages.LOG)),
        metrics=policy.folder / train.METRICS,
        window_s=spec.learning.window_s,
    )


def decide(bench: Bench, root: Path, patches: Sequence[Patch]) -> Applied:
    """Apply what may be applied without asking, one after the other as long as the spec holds."""
    text, done, waiting = bench.text, list[Patch](), list[Patch]()
    for patch in patches:
        if bench.spec.patches.autonomy != "auto" or not patch.within:
            waiting.append(patch)
            continue
        try:
            after = patched.patched(text, [patch])
            _ = load_crank(after, root=root)
        except SimOpsError:
            waiting.append(replace(patch, within=False))
            continue
        text = after
        done.append(patch)
    return Applied(text, tuple(done), tuple(waiting))
