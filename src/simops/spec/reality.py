"""A sealed reality, written down: which engine, which hidden numbers, which effects, and the seed that draws them.

A file of this kind describes a family of realities; the seed picks one. Only the process that runs it reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.belief import Box
from simops.core.errors import Problem
from simops.core.params import Change, Field, Param, Params
from simops.core.protocols import Engine
from simops.core.task import Task
from simops.spec.bounds import AtLeast, AtMost
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.ranges import Range
from simops.spec.run import Scene

NONE = Range(0.0, 0.0)
ANY = Range(1e9, 1e9)


@final
@dataclass(frozen=True, kw_only=True)
class Hidden:
    """One number of the scene that nobody outside knows."""

    name: str
    field: Field
    """What it changes."""
    of: tuple[str, ...] = ()
    """Names of what it changes; all of them when left out."""
    how: Literal["set", "scale", "add"] = "set"
    range: Range
    """Where it is drawn from, once a reality."""


@final
@dataclass(frozen=True, kw_only=True)
class Effects:
    """What the training simulator does not know of; each is drawn once a reality."""

    delay_s: Range = NONE
    """Between what is asked and what arrives."""
    jitter_s: Range = NONE
    """Spread of a further delay that is another one for every command."""
    lost: Range = NONE
    """Share of the commands that never arrive."""
    backlash: Range = NONE
    """Play between a command and what it moves, in the command's unit."""
    stick: Range = NONE
    """Change of a command below which nothing moves, in the command's unit: stick, then slip."""
    weakness: Range = NONE
    """Share of the torque, or of the way to a target, that is lost at any speed."""
    no_load_rad_s: Range = ANY
    """Speed at which no torque is left in the direction of motion."""
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    """Signal to the spread of its readings' noise, in its unit."""
    bias: Mapping[str, float] = field(default_factory=dict[str, float])
    """Signal to the spread of an offset that stays for the reality's whole life."""
    dropout: Range = NONE
    """Share of the readings that repeat the one before."""


@final
@dataclass(frozen=True, kw_only=True)
class Servo:
    """Where a torque comes from: what a limit of it means for a command."""

    kp: Annotated[float, AtLeast(0.0)] = 0.0
    """Stiffness of position servos; 0 where the action is a torque itself."""
    kd: Annotated[float, AtLeast(0.0)] = 0.0
    stall: Annotated[float, AtLeast(0.0)] = 0.0
    """Torque at standstill; 0 for the limit of the action."""
    position: str = ""
    """The state signal that holds the driven joints' angles; empty where no limit of torque applies."""
    velocity: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class World:
    """A family of realities, and which of them."""

    scene: Scene
    engine: Annotated[Engine, Plugin("engine")]
    """What simulates it: another one than the trainer's."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Which reality of the family; the same seed is the same robot."""
    hidden: tuple[Hidden, ...] = ()
    effects: Effects = field(default_factory=Effects)
    servo: Servo = field(default_factory=Servo)
    ticks: Annotated[int, AtLeast(1), AtMost(100)] = 4
    """How often within a control period the effects act."""
    trials: Annotated[int, AtLeast(1)] = 100_000
    """Trials that the robot stands before it has to be repaired."""

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the task and the rest, as far as they could be read."""
        scene, effects = known.get("scene"), known.get("effects")
        if isinstance(scene, Scene) and isinstance(effects, Effects):
            for what in ("noise", "bias"):
                for name in getattr(effects, what):
                    if name not in scene.task.state_schema:
                        yield Problem(f"effects.{what}.{name}", f"{scene.task.name} has no such signal")


class Drawn(NamedTuple):
    """One reality of the family."""

    task: Task
    """The task with the hidden numbers as its belief, which is certain."""
    params: Params
    """(1, numbers)."""
    effects: Mapping[str, float]
    """The scalar effects by name."""


def drawn(world: World, task: Task) -> Drawn:
    """Pick the reality of the seed; `task` may be the world's own with another horizon."""
    seeds = chance.seeds(world.seed, np.zeros(1, np.int64), realm="reality")
    params, values = list[Param](), list[float]()
    for one in world.hidden:
        value = float(chance.between(seeds, f"hidden/{one.name}", one.range.low, one.range.high)[0])
        change = Change(one.field, one.of, one.how)
        params.append(Param(one.name, value, low=value, high=value, changes=(change,)))
        values.append(value)
    taken = {each.name for each in params}
    own = [param for param in task.belief.params if param.name not in taken and not param.changes]
    params += [Param(param.name, param.nominal) for param in own]
    values += [param.nominal for param in own]
    effects = {
        each.name: float(chance.between(seeds, f"effect/{each.name}", span.low, span.high)[0])
        for each in fields(world.effects)
        if isinstance(span := getattr(world.effects, each.name), Range)
    }
    fixed = Box(tuple(params), tuple(values), tuple(values))
    names = tuple(param.name for param in params)
    return Drawn(replace(task, belief=fixed), Params(names, np.array([values], float)), effects)


def load_world(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[World]:
    """Read the file of a sealed reality; only the process that runs it may."""
    return load_file(path, World, overrides=overrides)
