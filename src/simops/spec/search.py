"""The spec of `simops falsify` and `simops coverage`: which episodes there could be, and how they are gone through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, final

from simops.core.belief import Belief
from simops.core.errors import Problem, nearest
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.task import Task
from simops.spec.around import Around
from simops.spec.bounds import AtLeast, AtMost
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.randomize import randomize
from simops.spec.run import EXPERT, Randomization, Run, Scene


@final
@dataclass(frozen=True, kw_only=True)
class Search:
    """How long is searched, and what the map of failures is drawn over."""

    episodes: Annotated[int, AtLeast(16), AtMost(10_000_000)] = 1000
    """The budget."""
    side_by_side: Annotated[int, AtLeast(16), AtMost(4096)] = 50
    """Episodes that run together, and that the search learns from at once."""
    map: tuple[str, ...] = ()
    """One or two axes; the first two when left out."""
    cells: Annotated[int, AtLeast(2), AtMost(200)] = 16
    """Along each axis of the map."""
    evenly: bool = False
    """Draw evenly to the end and learn nothing: what a search is compared with."""
    same_seed: bool = False
    """Whether all that is not searched, as noise, is the same in every episode."""


@final
@dataclass(frozen=True, kw_only=True)
class Falsify:
    """One search for failures."""

    scene: Scene
    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What simulates."""
    policy: Literal["expert"] | Policy = EXPERT
    """What is to fail; `expert` is the one that the task names."""
    sensors: tuple[Sensor, ...] = ()
    """What stands between the state and what the policy is shown of it, in this order."""
    randomization: Randomization = field(default_factory=Randomization)
    """The params that are searched, from where to where; params left out keep the task's own belief."""
    around: Around = field(default_factory=Around)
    """What is searched besides."""
    search: Search = field(default_factory=Search)
    seed: Annotated[int, AtLeast(0)] = 0
    """Every random number of the search follows from it."""
    out: Path | None = field(default=None, repr=False)
    """Folder for what is found; chosen by the command when left out. No part of the recipe."""

    @property
    def belief(self) -> Belief:
        """What is searched of the params."""
        return randomize(self.scene.task.belief, self.randomization.groups).belief

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        yield from Run.spec_problems(known)
        scene, around = known.get("scene"), known.get("around")
        if isinstance(scene, Scene) and isinstance(around, Around):
            yield from _unknown(scene.task, around)


def _unknown(task: Task, around: Around) -> Iterator[Problem]:
    """Names that the task does not have, and signals of another size."""
    schema, params = task.state_schema, [param.name for param in task.belief.params]
    for path, name in (
        *((f"initial.{name}", name) for name in around.initial),
        *((f"dropouts.{i}.signal", one.signal) for i, one in enumerate(around.dropouts)),
    ):
        if name not in schema:
            what = f"{task.name} has no state or goal {name!r}"
            yield Problem(f"around.{path}", what, attempt=nearest(name, schema.names), fault="CFG-001")
    for name, extents in around.initial.items():
        if name in schema and len(extents) != schema[name].size:
            what = f"{name} has {schema[name].size} elements, not {len(extents)}"
            yield Problem(f"around.initial.{name}", what, fault="CFG-002")
    for name in around.fixed:
        if name not in params:
            what = f"{task.name} has no param {name!r}"
            yield Problem("around.fixed", what, attempt=nearest(name, params), fault="CFG-001")


def load_falsify(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Falsify]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Falsify, overrides=overrides)
