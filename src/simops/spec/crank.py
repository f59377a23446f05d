"""The spec of `simops crank`: what is trained and how, what judges it, which robot it is tried on, who decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, cast, final

from simops.core.belief import Box, Joint
from simops.core.errors import Problem
from simops.core.params import Change, Field, Param
from simops.core.protocols import Engine, Sensor
from simops.core.robot import Guard
from simops.core.task import Task
from simops.core.training import Trainer
from simops.spec.bounds import Above, AtLeast, AtMost, Below
from simops.spec.load import Loaded, load
from simops.spec.plugins import Plugin, installed_plugins
from simops.spec.ranges import Range
from simops.spec.run import Randomization, Scene
from simops.spec.train import Train

Autonomy = Literal["propose", "auto"]


@final
@dataclass(frozen=True, kw_only=True)
class Unknown:
    """A number that the world may have and the task says nothing of: learned, as the task's own params are."""

    name: str
    field: Field
    """What it changes."""
    of: tuple[str, ...] = ()
    """Names of what it changes; all of them when left out."""
    how: Literal["set", "scale", "add"] = "set"
    unit: str = ""
    nominal: float = 0.0
    """Where it is before anything was learned."""
    range: Range
    """What makes physical sense."""

    @property
    def param(self) -> Param:
        """As a task has it."""
        change = Change(self.field, self.of, self.how)
        return Param(self.name, self.nominal, self.unit, self.range.low, self.range.high, (change,))


@final
@dataclass(frozen=True, kw_only=True)
class Learning:
    """How the simulator learns."""

    params: tuple[str, ...] = ()
    """What to learn; every param that changes the physics when left out."""
    window_s: Annotated[float, Above(0.0)] = 0.2
    """How far ahead it has to predict."""
    most: Annotated[int, AtLeast(8)] = 160
    """Stretches of the log that are replayed at every point."""
    widen: Annotated[float, AtLeast(1.0)] = 2.0
    """Spreads that worlds are drawn within, where the log leaves one: nothing is as sure as it says."""
    floor: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.03
    """Share of a learned number by which worlds vary at least."""


@final
@dataclass(frozen=True, kw_only=True)
class Validation:
    """Where a policy has to show what it can, before it comes near a robot."""

    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """Another one than trains, or the same with finer steps."""
    rate: Annotated[float, Above(0.0), Below(1.0)] = 0.8
    """Success rate to be exceeded, of every category."""
    episodes: Annotated[int, AtLeast(8), AtMost(100_000)] = 96
    """The most of a category."""
    alpha: Annotated[float, Above(0.0), Below(0.5)] = 0.05
    """Probability, at most, of letting through what is not as asked."""


@final
@dataclass(frozen=True, kw_only=True)
class Trials:
    """How often the robot is asked, each turn."""

    episodes: Annotated[int, AtLeast(1), AtMost(10_000)] = 24
    """Of the candidate, and as many of the champion beside it."""
    most: Annotated[int, AtLeast(0), AtMost(10_000)] = 240
    """Of each, in a turn: so far they go on while it looks as if that were enough to show the candidate better."""
    explore: Annotated[int, AtLeast(0), AtMost(10_000)] = 4
    """Once, of slow random commands within the limits: what to learn from before a policy is fit to be tried."""
    hold_steps: Annotated[int, AtLeast(1)] = 10
    """Control steps that such a command is held."""
    held_out: Annotated[float, Above(0.0), Below(1.0)] = 0.34
    """Share of every turn's trials that is never learned from."""
    places: Annotated[int, AtLeast(1)] = 32
    """Robots side by side; one where there is one."""


@final
@dataclass(frozen=True, kw_only=True)
class Guards:
    """What the robot may be asked for and may get to, whatever the policy thinks."""

    rate: Annotated[float, Above(0.0)] = 2.0
    """Largest change of an action in one control step, in widths of its limits."""
    margin: Annotated[float, AtLeast(0.0)] = 0.0
    """How far beyond its limits a signal of the state may get, in widths of those."""

    @property
    def guard(self) -> Guard:
        """As a trial has it."""
        return Guard(rate=self.rate, margin=self.margin)


@final
@dataclass(frozen=True, kw_only=True)
class RealityAt:
    """The robot, or what stands in for one."""

    path: Path
    """File of a sealed reality, beside the spec; only the process that runs it reads it."""
    seed: Annotated[int, AtLeast(0)] | None = None
    """Which reality of the file's family; the file's own when left out."""


@final
@dataclass(frozen=True, kw_only=True)
class Injected:
    """A world that failed, to be trained in again and again."""

    weight: Annotated[float, Above(0.0)] = 1.0
    """How often, beside the other injected ones."""
    params: Mapping[str, float] = field(default_factory=dict[str, float])
    """A point; what is left out is drawn as ever."""
    initial: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Signals of the state to begin with; what is left out begins as the task has it."""


@final
@dataclass(frozen=True, kw_only=True)
class Patches:
    """Who decides what is changed between turns."""

    autonomy: Autonomy = "propose"
    """`auto` applies what stays within the bounds below; everything else waits for somebody to apply it."""
    within: Mapping[str, Range] = field(default_factory=dict[str, Range])
    """Key path to what its number, or every number in it, may become; a key that is not here is not touched."""


@final
@dataclass(frozen=True, kw_only=True)
class Hardened:
    """When it is enough."""

    success: Annotated[float, Above(0.0), AtMost(1.0)] = 0.95
    """Share of a turn's trials that has to succeed."""
    gain: Annotated[float, AtLeast(0.0)] = 0.02
    """A turn that gains less than this, twice in a row, is the last."""


@final
@dataclass(frozen=True, kw_only=True)
class Crank:
    """One crank."""

    scene: Scene
    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What trains."""
    trainer: Annotated[Trainer, Plugin("trainer", default="ppo")]
    """What learns."""
    validation: Validation
    reward: Mapping[str, float] = field(default_factory=dict[str, float])
    """Weights of reward terms, by name; terms left out keep the task's own."""
    sensors: tuple[Sensor, ...] = ()
    """What stands between the state and what the policy is shown of it, in training."""
    randomization: Randomization = field(default_factory=Randomization)
    scenarios: tuple[Injected, ...] = ()
    """Worlds that failed before."""
    injected: Annotated[float, AtLeast(0.0), Below(1.0)] = 0.2
    """Share of the training's episodes that begin in one of them, where there are any."""
    goes_on: bool = True
    """Whether a turn's training begins with the networks of the turn before, where the trainer can."""
    unknowns: tuple[Unknown, ...] = ()
    """What else the simulator may learn, beside the task's params."""
    learning: Learning = field(default_factory=Learning)
    reality: RealityAt | None = None
    """Without one, candidates are made and validated, and nothing is tried or learned."""
    trials: Trials = field(default_factory=Trials)
    guard: Guards = field(default_factory=Guards)
    patches: Patches = field(default_factory=Patches)
    hardened: Hardened = field(default_factory=Hardened)
    seed: Annotated[int, AtLeast(0)] = 0
    """Every random number follows from it."""
    out: Path | None = field(default=None, repr=False)
    """Folder of the run; chosen by the command when left out. No part of the recipe."""

    @property
    def task(self) -> Task:
        """The task, with what may be unknown besides among its params; those are nominal until they are learned."""
        task = self.scene.task
        params = tuple(one.param for one in self.unknowns)
        if not params:
            return task
        still = tuple(param.nominal for param in params)
        return replace(task, belief=Joint((task.belief, Box(params, still, still))))

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        yield from Train.spec_problems(known)
        scene, unknowns = known.get("scene"), known.get("unknowns")
        if not isinstance(scene, Scene) or not isinstance(unknowns, tuple):
            return
        taken = {param.name for param in scene.task.belief.params}
        for i, one in enumerate(cast("tuple[Unknown, ...]", unknowns)):
            if one.name in taken:
                yield Problem(f"unknowns[{i}].name", f"{one.name} is a param already", fault="CFG-003")
            taken.add(one.name)
            if not one.range.low <= one.nominal <= one.range.high:
                what = f"nominal {one.nominal:g} is outside {one.range}"
                yield Problem(f"unknowns[{i}].nominal", what, fault="CFG-005")


def load_crank(path: Path | str, *, overrides: Sequence[str] = (), root: Path | None = None) -> Loaded[Crank]:
    """Load a spec from a file, or from text as if it lay in `root`, with code files of its project."""
    folder = root or (path.parent if isinstance(path, Path) else Path())
    return load(path, Crank, plugins=installed_plugins(folder), overrides=overrides)
