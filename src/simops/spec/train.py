"""The spec of `simops train`: what is learned, from which world, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, cast, final

from simops.core.belief import Belief
from simops.core.errors import Problem
from simops.core.protocols import Engine, Sensor
from simops.core.training import Course, Trainer, reweighted, unknown_terms
from simops.spec.bounds import AtLeast, AtMost
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.randomize import randomize
from simops.spec.run import Randomization, Scene, world_problems


@final
@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How often the trained policy is tried, over the task's own world, with no noise in its actions."""

    episodes: Annotated[int, AtLeast(0), AtMost(1_000_000)] = 256
    """None at 0."""


@final
@dataclass(frozen=True, kw_only=True)
class Train:
    """One training."""

    scene: Scene
    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What simulates."""
    trainer: Annotated[Trainer, Plugin("trainer", default="ppo")]
    """What learns."""
    reward: Mapping[str, float] = field(default_factory=dict[str, float])
    """Weights of reward terms, by name; terms left out keep the task's own."""
    sensors: tuple[Sensor, ...] = ()
    """What stands between the state and what the policy is shown of it, in this order."""
    randomization: Randomization = field(default_factory=Randomization)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: Annotated[int, AtLeast(0)] = 0
    """Every random number of the training follows from it."""
    out: Path | None = field(default=None, repr=False)
    """Folder for checkpoints and curves; chosen by the command when left out. No part of the recipe."""

    @property
    def belief(self) -> Belief:
        """What the training draws its worlds from."""
        return randomize(self.scene.task.belief, self.randomization.groups).belief

    @property
    def course(self) -> Course:
        """What is learned from."""
        task = reweighted(self.scene.task, self.reward)
        return Course(task=task, engine=self.engine, sensors=self.sensors, belief=self.belief, seed=self.seed)

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        scene, reward = known.get("scene"), known.get("reward")
        if not isinstance(scene, Scene):
            return
        task = scene.task
        yield from world_problems(scene, known.get("randomization"))
        if not task.reward:
            yield Problem("scene.task", f"{task.name} has no reward to learn from", fault="CFG-012")
        if isinstance(reward, Mapping):
            for problem in unknown_terms(task, cast("Mapping[str, float]", reward)):
                yield replace(problem, path=f"reward.{problem.path}")


def load_train(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Train]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Train, overrides=overrides)
