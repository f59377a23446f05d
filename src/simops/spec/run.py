"""The spec of `simops rollout`: what runs, over which world, how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, final

from simops.core.belief import Belief
from simops.core.errors import Problem
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.task import Task
from simops.spec.bounds import Above, AtLeast, AtMost
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.optics import Optics
from simops.spec.plugins import Plugin
from simops.spec.randomize import Spread, randomize

EXPERT = "expert"
"""The policy that stands for the task's own expert."""


@final
@dataclass(frozen=True, kw_only=True)
class Scene:
    """What is done, and by which robot."""

    robot: str = ""
    """Name of the robot; the task's own when left out, refused when it is another one."""
    task: Task
    """The task, by the name of a plugin or as `./file.py:Thing`."""


@final
@dataclass(frozen=True, kw_only=True)
class Randomization:
    """How the world varies from episode to episode; params left out keep the task's own belief."""

    visual: Mapping[str, Spread] = field(default_factory=dict[str, Spread])
    """What cameras see: textures, light, where the cameras are."""
    physics: Mapping[str, Spread] = field(default_factory=dict[str, Spread])
    """Masses, friction, gains, delays, and where things begin."""
    sensors: Mapping[str, Spread] = field(default_factory=dict[str, Spread])
    """What the sensors get wrong."""

    @property
    def groups(self) -> Mapping[str, Mapping[str, Spread]]:
        """The groups by name."""
        return {"visual": self.visual, "physics": self.physics, "sensors": self.sensors}


@final
@dataclass(frozen=True, kw_only=True)
class Camera:
    """A camera to record, the size of its pictures, and what they show."""

    name: str = ""
    """As the scene calls it; empty for the first of the scene."""
    width: Annotated[int, AtLeast(16), AtMost(4096)] = 320
    """Pixels."""
    height: Annotated[int, AtLeast(16), AtMost(4096)] = 240
    """Pixels."""
    kinds: tuple[Literal["rgb", "depth", "segmentation"], ...] = ("rgb",)
    """What is kept of every picture."""
    optics: Optics = field(default_factory=Optics)
    """What lens, shutter and pixels get wrong."""


@final
@dataclass(frozen=True, kw_only=True)
class Rollout:
    """How many episodes."""

    parallel_envs: Annotated[int, AtLeast(1), AtMost(1_000_000)] = 256
    """Copies of the scene that run side by side."""
    episodes_per_env: Annotated[int, AtLeast(1), AtMost(1_000_000)] = 1
    """Episodes that each copy runs."""
    cameras: tuple[Camera, ...] = ()
    """Cameras to record."""
    film_every: Annotated[int, AtLeast(1)] = 1
    """Cameras record one episode in so many."""
    film_hz: Annotated[float, Above(0.0)] = 10.0
    """Pictures a second; at most one a control step is taken."""

    @property
    def episodes(self) -> int:
        """All episodes together."""
        return self.parallel_envs * self.episodes_per_env


@final
@dataclass(frozen=True, kw_only=True)
class Run:
    """One pass of the factory."""

    scene: Scene
    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What simulates."""
    policy: Literal["expert"] | Policy = EXPERT
    """What acts; `expert` is the one that the task names."""
    sensors: tuple[Sensor, ...] = ()
    """What stands between the state and what the policy is shown of it, in this order."""
    randomization: Randomization = field(default_factory=Randomization)
    rollout: Rollout = field(default_factory=Rollout)
    seed: Annotated[int, AtLeast(0)] = 0
    """Every random number of the run follows from it."""
    out: Path | None = field(default=None, repr=False)
    """Folder for the dataset; chosen by the command when left out. No part of the recipe."""

    @property
    def belief(self) -> Belief:
        """What the run draws its worlds from."""
        return randomize(self.scene.task.belief, self.randomization.groups).belief

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        scene = known.get("scene")
        if not isinstance(scene, Scene):
            return
        yield from world_problems(scene, known.get("randomization"))
        if known.get("policy") == EXPERT and not scene.task.expert:
            what = f"{scene.task.name} has no expert"
            yield Problem("policy", what, attempt="naming a policy, as 'random'", fault="CFG-001")


def world_problems(scene: Scene, randomization: object) -> Iterator[Problem]:
    """What does not fit the task: the robot, and how its world varies as far as that could be read."""
    task, robot = scene.task, scene.task.scene.robot
    if scene.robot and scene.robot != robot:
        what = f"{task.name} is not for {scene.robot!r}"
        yield Problem("scene.robot", what, attempt=repr(robot) if robot else "leaving it out", fault="CFG-012")
    if isinstance(randomization, Randomization):
        for problem in randomize(task.belief, randomization.groups).problems:
            yield replace(problem, path=f"randomization.{problem.path}")


def load_run(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Run]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Run, overrides=overrides)
