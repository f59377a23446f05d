"""The spec of `simops validate`: what is judged, in which engine, in which scenarios, and how strictly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, final

from simops.core.belief import Belief
from simops.core.errors import Problem
from simops.core.protocols import Engine, Policy, Sensor
from simops.spec.bounds import Above, AtLeast, AtMost, Below
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.randomize import randomize
from simops.spec.run import EXPERT, Randomization, Scene, world_problems
from simops.spec.suite import SuiteSpec, suite_problems


@final
@dataclass(frozen=True, kw_only=True)
class ChampionSpec:
    """What a candidate must not be worse than."""

    bundle: Path
    margin: Annotated[float, Above(0.0), Below(1.0)] = 0.05
    """By how much a candidate's success rate may be lower, in every kind of scenario."""


@final
@dataclass(frozen=True, kw_only=True)
class CampaignSpec:
    """Candidates of one search for a policy share one probability of letting a bad one through."""

    ledger: Path
    """A file that only grows, the same for all candidates."""
    candidates: Annotated[int, AtLeast(0), AtMost(10_000)] = 0
    """How many there will be at most; at 0 any number, and each later one needs more evidence."""


@final
@dataclass(frozen=True, kw_only=True)
class Validate:
    """One gate."""

    scene: Scene
    bundle: Path | None = None
    """Folder of the exported policy that is judged; from the folder the command runs in."""
    policy: Literal["expert"] | Policy | None = None
    """A policy by name instead, as `expert`: judged alike, but no bundle, so never promoted."""
    engine: Annotated[Engine, Plugin("engine", default="drake")]
    """What simulates: not the engine that trained."""
    sensors: tuple[Sensor, ...] = ()
    """What stands between the state and what the policy is shown of it, in this order."""
    randomization: Randomization = field(default_factory=Randomization)
    suite: SuiteSpec = field(default_factory=SuiteSpec)
    alpha: Annotated[float, Above(0.0), Below(0.5)] = 0.05
    """Probability, at most, of letting a policy through that is not as asked."""
    good: Literal["expert"] | Policy = EXPERT
    """A policy that is known for good: a gate in which it does not come out so is broken."""
    bad: Annotated[Policy, Plugin("policy", default="zero")]
    """One that is known for bad."""
    canary_episodes: Annotated[int, AtLeast(8), AtMost(1000)] = 40
    """At most, of each of the two."""
    trained_in: Annotated[Engine, Plugin("engine", default="mujoco")]
    """The engine that trained, in which the same scenarios run once more to say how far the two are apart."""
    gap_episodes: Annotated[int, AtLeast(0), AtMost(10_000)] = 32
    """At most, of each kind of scenario; none at 0."""
    champion: ChampionSpec | None = None
    campaign: CampaignSpec | None = None
    remember: Path | None = None
    """A suite that grows by every scenario that fails; as `suite.regression.file` later gates ask them again."""
    batch: Annotated[int, AtLeast(1), AtMost(4096)] = field(default=32, repr=False)
    """Episodes that run side by side."""
    timeout_s: Annotated[float, Above(0.0)] = field(default=600.0, repr=False)
    """Wall-clock seconds an episode may take."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Every scenario follows from it, in a namespace that no training uses."""
    out: Path | None = field(default=None, repr=False)
    """Folder for episodes, verdict and report; chosen by the command when left out. No part of the recipe."""

    @property
    def belief(self) -> Belief:
        """What the scenarios are drawn from."""
        return randomize(self.scene.task.belief, self.randomization.groups).belief

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        scene, suite = known.get("scene"), known.get("suite")
        if "bundle" in known and (known.get("bundle") is None) == (known.get("policy") is None):
            yield Problem("bundle", "want either a bundle or a policy", attempt="bundle: out/<task>/bundle")
        if not isinstance(scene, Scene):
            return
        task = scene.task
        yield from world_problems(scene, known.get("randomization"))
        for name in ("policy", "good"):
            if known.get(name) == EXPERT and not task.expert:
                attempt = "naming a policy that can do the task"
                yield Problem(name, f"{task.name} has no expert", attempt=attempt, fault="CFG-001")
        if isinstance(suite, SuiteSpec):
            for problem in suite_problems(suite, task):
                yield replace(problem, path=f"suite.{problem.path}")


def load_validate(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Validate]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Validate, overrides=overrides)
