"""A rig: what stood on the bench while it was recorded, as a task that replays can be made of.

The scene says what moves, the engine's motor says by which law commands became torques, and the rig says which
recorded signal is which. Where a controller was in the loop, the command is its reference and the motor is its law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.belief import Belief, Box
from simops.core.errors import DataError, SignalError, nearest
from simops.core.params import Param
from simops.core.recording import Recording, Series
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Draw, Joint, Reading, Scene, Task

POSITION, VELOCITY, EFFORT = "position", "velocity", "effort"


@final
@dataclass(frozen=True, kw_only=True)
class Rig:
    """Joints of a scene, and the recorded signals that tell of them."""

    name: str
    scene: Scene
    joints: tuple[str, ...]
    """Joints of the scene, in the order of the recorded elements where those have no such labels."""
    command: str
    """The recorded signal that drives the motors: a torque, or the reference of a controller in the loop."""
    position: str = POSITION
    velocity: str = ""
    """Empty where none was recorded: it follows from the positions."""
    effort: str = ""
    """What the motors put out, where that was recorded and shall be predicted, too."""
    dt_s: float
    """Grid of the replay: commands change and states are compared at its points."""
    params: tuple[Param, ...] = ()
    """What may be learned, each with what was thought of it before: anything between its bounds."""
    unit: str = "rad"
    """Of the positions: `rad` or `m`."""
    limit: float = 1e9
    """Largest command either way."""

    def __post_init__(self) -> None:
        if not self.joints:
            raise SignalError("a rig needs joints", where=self.name)
        if self.dt_s <= 0:
            raise SignalError(f"a grid of {self.dt_s} s", where=self.name, attempt="as the rows came, as 0.002")

    @property
    def prior(self) -> Belief:
        """What was thought before anything was recorded."""
        return Box(self.params, tuple(p.low for p in self.params), tuple(p.high for p in self.params))

    def task(self, belief: Belief | None = None) -> Task:
        """The rig as a task, with worlds drawn from `belief`, or from what was thought before."""
        shape, rad = (len(self.joints),), self.unit
        torque = "N m" if rad == "rad" else "N"
        readings = [
            Reading(Signal(POSITION, shape, rad, labels=self.joints), Joint(self.joints)),
            Reading(Signal(VELOCITY, shape, f"{rad}/s", labels=self.joints), Joint(self.joints, "velocity")),
        ]
        if self.effort:
            readings.append(Reading(Signal(EFFORT, shape, torque, labels=self.joints), Joint(self.joints, "torque")))
        ends = (self.limit,) * len(self.joints)
        return Task(
            name=self.name,
            scene=self.scene,
            state=tuple(readings),
            action=Signal("command", shape, labels=self.joints, low=tuple(-e for e in ends), high=ends),
            observation=Schema((readings[0].signal, readings[1].signal)),
            control_dt_s=self.dt_s,
            horizon_s=3600.0,
            belief=belief or self.prior,
            initial=_nothing,
            failure=_never,
            success=_never,
        )

    def series(self, recording: Recording, name: str) -> Series:
        """A recorded signal, one column a joint of the rig, its rows in order of time."""
        found = recording.named(name).ordered()
        if len(found.labels) != len(self.joints) and not set(self.joints) <= set(found.labels):
            what = f"{name} of {recording.name} has {len(found.labels)} elements, the rig {len(self.joints)} joints"
            raise DataError(what, where=self.name, attempt="a recording of this rig", fault="LRN-005")
        if set(self.joints) <= set(found.labels):
            order = [found.labels.index(joint) for joint in self.joints]
            return Series(found.signal, found.time_s, found.values[:, order], found.stream)
        if found.signal.labels:
            strange = next(label for label in found.labels if label not in self.joints)
            what = f"{name} of {recording.name} tells of {strange!r}, which the rig does not have"
            attempt = nearest(strange, self.joints) or ", ".join(self.joints)
            raise DataError(what, where=self.name, attempt=attempt, fault="LRN-005")
        return found


def _nothing(_: Draw) -> Columns:
    return {}


def _never(columns: Columns) -> Array:
    return np.zeros(len(next(iter(columns.values()))), bool)
