"""The spec of two worlds: one in which a policy works, and one in which it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, cast, final

from simops.core.belief import Belief
from simops.core.errors import Problem, nearest
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.task import Task
from simops.spec.bounds import AtLeast, AtMost
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.randomize import randomize
from simops.spec.run import EXPERT, Randomization, Run, Scene


@final
@dataclass(frozen=True, kw_only=True)
class Wires:
    """What is done between a policy and its world: element i there is `gain[i]` times element `order[i]` here."""

    observation_order: tuple[int, ...] = ()
    """Empty for each in its place."""
    observation_gain: tuple[float, ...] = ()
    """Empty for 1 each."""
    action_order: tuple[int, ...] = ()
    action_gain: tuple[float, ...] = ()
    action_offset: tuple[float, ...] = ()
    """Added last; empty for none."""


@final
@dataclass(frozen=True, kw_only=True)
class World:
    """Everything between a policy and what becomes of its actions."""

    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What simulates, with its motor and its solver's choices."""
    sensors: tuple[Sensor, ...] = ()
    randomization: Randomization = field(default_factory=Randomization)
    """Params, fixed or as ranges; those left out keep the task's own belief."""
    initial: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Signals of the state to begin with, instead of what the task draws."""
    delay_steps: Annotated[int, AtLeast(0), AtMost(100)] = 0
    """Control steps by which every command is late."""
    wires: Wires = field(default_factory=Wires)


@final
@dataclass(frozen=True, kw_only=True)
class Gap:
    """A policy, a world it works in, and one it fails in."""

    scene: Scene
    policy: Literal["expert"] | Policy = EXPERT
    works: World
    fails: World
    episodes: Annotated[int, AtLeast(8), AtMost(100_000)] = 64
    """Scenarios, each run in every mixture of the two worlds."""
    seed: Annotated[int, AtLeast(0)] = 0

    def belief(self, world: World) -> Belief:
        """What one of the worlds draws its numbers from."""
        return randomize(self.scene.task.belief, world.randomization.groups).belief

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the worlds, as far as they could be read."""
        yield from Run.spec_problems({key: known.get(key) for key in ("scene", "policy")})
        scene = known.get("scene")
        if not isinstance(scene, Scene):
            return
        for name in ("works", "fails"):
            world = known.get(name)
            if isinstance(world, World):
                for problem in _problems(scene.task, world):
                    yield replace(problem, path=f"{name}.{problem.path}")


def _problems(task: Task, world: World) -> Iterator[Problem]:
    for problem in randomize(task.belief, world.randomization.groups).problems:
        yield replace(problem, path=f"randomization.{problem.path}")
    for name, values in world.initial.items():
        if name not in task.state_schema:
            what = f"{task.name} has no state or goal {name!r}"
            yield Problem(f"initial.{name}", what, attempt=nearest(name, task.state_schema.names), fault="CFG-001")
        elif len(values) != task.state_schema[name].size:
            what = f"{name} has {task.state_schema[name].size} elements, not {len(values)}"
            yield Problem(f"initial.{name}", what, fault="CFG-002")
    sizes = {"observation": task.observation.size, "action": task.action.size}
    for key, given in vars(world.wires).items():
        size = sizes[key.partition("_")[0]]
        if given and len(given) != size:
            yield Problem(f"wires.{key}", f"has {len(given)} elements, want {size}", fault="CFG-002")
        elif key.endswith("order") and given and sorted(cast("Sequence[int]", given)) != list(range(size)):
            yield Problem(f"wires.{key}", f"is no order of 0 to {size - 1}", fault="CFG-002")


def load_gap(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Gap]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Gap, overrides=overrides)
