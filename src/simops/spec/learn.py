"""The spec of `simops learn`: what was recorded of which rig, what to learn, and what is kept back to judge by.

rig:
  scene: scene.xml
  joints: [slide]
  command: effort
  dt_s: 0.001
  params:
    carriage: {field: mass, of: [carriage], low: 20, high: 300, nominal: 90, unit: kg}
    motor_coulomb: {low: 0, high: 60}
engine: {use: mujoco, motor: {use: servo}}
recordings: {path: data/emps.parquet, map: emps}
split: {block_s: 2}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, cast, final

from simops.core.errors import Problem, SignalError, nearest
from simops.core.learning import Learner
from simops.core.params import Change, Field, Param
from simops.core.protocols import Engine, Motor, Sensor, Tunable
from simops.core.rig import Rig
from simops.core.task import Scene as Drawn
from simops.core.task import Task
from simops.spec.bounds import Above, AtLeast, Below
from simops.spec.load import Loaded
from simops.spec.lock import load_file
from simops.spec.plugins import Plugin
from simops.spec.run import Scene


@final
@dataclass(frozen=True, kw_only=True)
class Unknown:
    """One number to learn, and what was thought of it before: anything from `low` to `high`."""

    low: float
    high: float
    nominal: float | None = None
    """What the simulator as it comes has; that of the motor's own setting, or the middle, when left out."""
    unit: str = ""
    field: Field | Literal[""] = ""
    """What it changes in the scene; left out for a setting of the motor, as `motor_viscous_elbow`."""
    of: tuple[str, ...] = ()
    """Names of what it changes; all of them when left out."""
    how: Literal["set", "scale", "add"] = "set"


@final
@dataclass(frozen=True, kw_only=True)
class Bench:
    """A rig of one's own: a scene, and which recorded signal is which."""

    scene: Path
    """An MJCF or URDF file, from the folder of the spec."""
    joints: tuple[str, ...]
    """Joints of the scene, in the order of the recorded elements where those have no such labels."""
    command: str = "command"
    """The recorded signal that drives the motors: a torque, or the reference of a controller in the loop."""
    position: str = "position"
    velocity: str = ""
    """Empty where none was recorded."""
    effort: str = ""
    """What the motors put out, where that was recorded and shall be predicted, too."""
    dt_s: Annotated[float, Above(0.0)]
    """Grid of the replay."""
    params: Mapping[str, Unknown] = field(default_factory=dict[str, Unknown])
    """What may be learned, by name."""
    unit: Literal["rad", "m"] = "rad"
    """Of the positions."""
    name: str = ""
    """The scene's when left out."""


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """Where recordings lie."""

    path: Path | None = None
    """Recordings or trajectories that simops keeps, or files that an importer reads; from the folder of the spec."""
    map: str = ""
    """A map of columns, for tables: one that is shipped, or a YAML file."""
    format: str = ""
    """The importer; found by looking when left out."""
    names: tuple[str, ...] = ()
    """Only recordings with one of these names; all of them when left out."""
    trusted: bool = False
    """Learn even where the data doctor says that joints are swapped, or that a sign or a unit is wrong."""


@final
@dataclass(frozen=True, kw_only=True)
class Splitting:
    """What is kept back to judge by; never single rows."""

    held: Annotated[float, Above(0.0), Below(1.0)] = 0.25
    """Share of the sessions, about."""
    by: Literal["session", "name", "robot", ""] = ""
    """Session where there are several, else name, when left out."""
    names: tuple[str, ...] = ()
    """Sessions, names or robots to keep back, instead of a share."""
    block_s: Annotated[float, AtLeast(0.0)] = 0.0
    """Recordings are cut into blocks of this length, each a session: for one long recording; 0 leaves them whole."""
    salt: str = ""
    """Another one gives another split."""


@final
@dataclass(frozen=True, kw_only=True)
class Learn:
    """One lesson for a simulator."""

    scene: Scene | None = None
    """A task of ours; or else `rig`."""
    rig: Bench | None = None
    engine: Annotated[Engine, Plugin("engine", default="mujoco")]
    """What simulates, with the motor as it comes."""
    sensors: tuple[Sensor, ...] = ()
    recordings: Source = field(default_factory=Source)
    split: Splitting = field(default_factory=Splitting)
    learner: Annotated[Learner, Plugin("learner", default="physical")]
    """What learns."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Every random number follows from it."""
    out: Path | None = field(default=None, repr=False)
    """Folder for the candidate and its report; chosen by the command when left out. No part of the recipe."""

    @classmethod
    def spec_problems(cls, known: Mapping[str, object]) -> Iterator[Problem]:
        """What is wrong between the parts, as far as they could be read."""
        scene, rig, engine = known.get("scene"), known.get("rig"), known.get("engine")
        if (scene is None) == (rig is None):
            yield Problem("rig", "wants either a rig or a scene with a task", attempt="rig:, or scene: {task: ...}")
        if isinstance(rig, Bench):
            motor = motor_of(cast("Engine", engine)) if engine is not None else None
            for name, unknown in rig.params.items():
                try:
                    _ = _param(name, unknown, motor)
                except SignalError as error:
                    yield Problem(f"rig.params.{name}", error.what, attempt=error.attempt, fault="CFG-005")


def rig_of(bench: Bench, engine: Engine, *, folder: Path) -> Rig:
    """The rig of a spec that lies in `folder`."""
    motor = motor_of(engine)
    return Rig(
        name=bench.name or bench.scene.stem,
        scene=Drawn(str(folder / bench.scene), robot=bench.name or bench.scene.stem),
        joints=bench.joints,
        command=bench.command,
        position=bench.position,
        velocity=bench.velocity,
        effort=bench.effort,
        dt_s=bench.dt_s,
        params=tuple(_param(name, unknown, motor) for name, unknown in bench.params.items()),
        unit=bench.unit,
    )


def motor_of(engine: Engine) -> Motor | None:
    """The motor of an engine that has one."""
    return cast("Motor | None", getattr(engine, "motor", None))


def task_of(learn: Learn, *, folder: Path) -> tuple[Task, Rig | None]:
    """What is learned about, as a task, and as a rig where it is one."""
    if learn.rig is None:
        scene = cast("Scene", learn.scene)
        return scene.task, None
    rig = rig_of(learn.rig, learn.engine, folder=folder)
    return rig.task(), rig


def load_learn(path: Path, *, overrides: Sequence[str] = ()) -> Loaded[Learn]:
    """Load a spec, or its lock, as `spec.lock.load_file` does."""
    return load_file(path, Learn, overrides=overrides)


def _param(name: str, unknown: Unknown, motor: Motor | None) -> Param:
    if not math.isfinite(unknown.low) or not math.isfinite(unknown.high) or unknown.low >= unknown.high:
        raise SignalError(f"{name} from {unknown.low:g} to {unknown.high:g} is no range", attempt="low below high")
    changes = (Change(unknown.field, unknown.of, unknown.how),) if unknown.field else ()
    nominal = unknown.nominal
    if not changes:
        settings = {p.name: p for p in motor.params} if isinstance(motor, Tunable) else {}
        if name not in settings:
            attempt = nearest(name, settings) or (", ".join(settings) if settings else "engine: {motor: {use: servo}}")
            raise SignalError(
                f"{name} changes nothing: it has no field, and is no setting of the motor", attempt=attempt
            )
        nominal = settings[name].nominal if nominal is None else nominal
    if nominal is None:
        nominal = (unknown.low + unknown.high) / 2
    return replace(
        Param(name, nominal, unknown.unit, changes=changes),
        low=min(unknown.low, nominal),
        high=max(unknown.high, nominal),
    )
