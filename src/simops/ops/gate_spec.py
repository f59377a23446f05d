"""From the spec of a gate to what runs: bundles are verified, names become policies, counts become scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import Problem, SpecError
from simops.core.protocols import Policy
from simops.core.scenario import Scenario, called
from simops.core.signal import Array
from simops.core.task import Task
from simops.data.files import digest
from simops.deploy import bundle
from simops.gate.suite import Suite, draw
from simops.ops import suite_text
from simops.ops.build import OUT, expert_of
from simops.ops.validate import Campaign, Order, Rival
from simops.spec.lock import lock
from simops.spec.run import EXPERT
from simops.spec.suite import Listed
from simops.spec.validate import Validate, load_validate


@final
@dataclass(frozen=True)
class Judged:
    """What is judged, and what is known of its training."""

    policy: Policy
    seeds: tuple[int, ...] = ()
    """Root seeds of the training."""


def load_order(
    path: Path,
    *,
    overrides: Sequence[str] = (),
    out: Path | None = None,
    candidate: Path | None = None,
    suite: Path | None = None,
) -> Order:
    """Read a spec and say what would be judged and where it would go; touches nothing.

    Args:
        path: The spec, or its lock.
        overrides: `key=value`.
        out: Folder; chosen from the spec's and the policy's digest when left out.
        candidate: Another bundle than the one the spec names.
        suite: A file of scenarios to take as it stands, instead of what the spec draws.
    """
    if candidate is not None:
        overrides = (*overrides, f"bundle={candidate}", "policy=null")
    loaded = load_validate(path, overrides=overrides)
    spec = loaded.value
    task = replace(spec.scene.task, belief=spec.belief)
    judged = _judged(spec, task)
    _ = judged.policy.start(task, _no_rows())
    scenarios = suite_text.read(suite, task) if suite is not None else _suite(spec, task)
    named = digest(f"{loaded.digest} {judged.policy.digest} {scenarios.digest}".encode())[:8]
    folder = out or spec.out or OUT / f"gate-{task.name}-{named}"
    return Order(
        policy=judged.policy,
        task=task,
        engine=spec.engine,
        suite=scenarios,
        rates={name: rate for name, rate in spec.suite.rates.items() if name in scenarios.categories},
        out=folder,
        good=expert_of(task.expert) if spec.good == EXPERT else spec.good,
        bad=spec.bad,
        alpha=spec.alpha,
        sensors=spec.sensors,
        champion=_rival(spec, task),
        campaign=Campaign(ledger=spec.campaign.ledger, candidates=spec.campaign.candidates) if spec.campaign else None,
        canary_episodes=spec.canary_episodes,
        trained_in=spec.trained_in if spec.gap_episodes else None,
        gap_episodes=spec.gap_episodes,
        remember=spec.remember,
        trained_seeds=judged.seeds,
        batch=spec.batch,
        timeout_s=spec.timeout_s,
        lock=lock(loaded),
    )


def _judged(spec: Validate, task: Task) -> Judged:
    if spec.bundle is not None:
        made = bundle.load(spec.bundle)
        seed = made.provenance.get("seed")
        return Judged(made, (seed,) if isinstance(seed, int) else ())
    if spec.policy is None:
        raise SpecError("spec", [Problem("bundle", "want either a bundle or a policy")])
    return Judged(expert_of(task.expert) if spec.policy == EXPERT else spec.policy)


def _rival(spec: Validate, task: Task) -> Rival | None:
    if spec.champion is None:
        return None
    policy = bundle.load(spec.champion.bundle)
    _ = policy.start(task, _no_rows())
    return Rival(policy=policy, margin=spec.champion.margin)


def _suite(spec: Validate, task: Task) -> Suite:
    listed: list[Scenario] = []
    if spec.suite.adversarial is not None:
        listed += [called(each, category="adversarial") for each in _read(spec.suite.adversarial, task)]
    if spec.suite.regression is not None:
        there = {each.hash for each in listed}
        file = spec.suite.regression.file
        first = file == spec.remember and not file.exists()  # nothing has failed yet
        read = () if first else _read(spec.suite.regression, task)
        past = [called(each, category="regression") for each in read]
        listed += [each for each in past if each.hash not in there]
    suite = draw(task, spec.suite, seed=spec.seed, listed=listed)
    if not suite.scenarios:
        raise SpecError("spec", [Problem("suite", "no kind of scenario has any", attempt="nominal: {scenarios: 400}")])
    return suite


def _read(listed: Listed, task: Task) -> tuple[Scenario, ...]:
    return suite_text.gather(listed.file, task)


def _no_rows() -> Array:
    return np.zeros(0, np.uint64)
