"""Small scenes written for a test, and tasks about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.params import Change, Param, Params
from simops.core.protocols import Engine, Sim
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Joint, Reading, Scene, Source, Task
from simops.sim.mujoco import Mujoco

ARM = {
    "mass": "1",
    "inertia": "0.01 0.02 0.02",
    "com": "0.15 0 0",
    "damping": "0.1",
    "armature": "0.01",
    "frictionloss": "0",
    "kp": "50",
    "kv": "2",
    "limit": "8",
    "delay": "0",
    "samples": "0",
    "block_mass": "1",
    "block_inertia": "0.002 0.002 0.002",
    "friction": "0.8",
    "solref": "0.02 1",
    "gravity": "9.81",
    "integrator": "implicitfast",
}
"""What the arm scene says unless told otherwise."""

_ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" integrator="{integrator}" gravity="0 0 -{gravity}"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" friction="{friction}" solref="{solref}"/>
    <body name="arm" pos="0 0 1">
      <inertial pos="{com}" mass="{mass}" diaginertia="{inertia}"/>
      <joint name="hinge" axis="0 1 0" damping="{damping}" armature="{armature}" frictionloss="{frictionloss}"/>
      <geom name="rod" type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" contype="0" conaffinity="0"/>
    </body>
    <body name="block" pos="1 0 0.05">
      <freejoint/>
      <inertial pos="0 0 0" mass="{block_mass}" diaginertia="{block_inertia}"/>
      <geom name="block" type="box" size="0.05 0.05 0.05" friction="{friction}" solref="{solref}"/>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="hinge" kp="{kp}" kv="{kv}" forcerange="-{limit} {limit}"
              nsample="{samples}" delay="{delay}"/>
  </actuator>
</mujoco>
"""

ARM_STATE: Mapping[str, tuple[int, Source]] = {
    "angle": (0, Joint(("hinge",))),
    "rate": (0, Joint(("hinge",), "velocity")),
    "torque": (0, Joint(("hinge",), "torque")),
    "block_position": (3, Body("block")),
    "block_velocity": (3, Body("block", "velocity")),
}
TARGET = Signal("target", (1,), "rad", labels=("servo",))


def nothing(draw: Draw) -> Columns:
    del draw
    return {}


def never(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


def task(
    scene: Path,
    state: Mapping[str, tuple[int, Source]] = ARM_STATE,
    *,
    action: Signal = TARGET,
    params: Sequence[Param] = (),
    control_dt_s: float = 0.01,
) -> Task:
    """A task that only looks; `state` is name to width (0 for a scalar) and source."""
    readings = tuple(Reading(Signal(name, (n,) if n else ()), source) for name, (n, source) in state.items())
    nominal = tuple(param.nominal for param in params)
    return Task(
        name="look",
        scene=Scene(str(scene)),
        state=readings,
        action=action,
        observation=Schema(tuple(reading.signal for reading in readings)),
        control_dt_s=control_dt_s,
        horizon_s=10.0,
        belief=Box(tuple(params), nominal, nominal),
        initial=nothing,
        failure=never,
        success=never,
    )


def written(folder: Path, text: str, name: str = "scene.xml") -> Path:
    """Write a scene file."""
    path = folder / name
    path.write_text(text)
    return path


def arm(folder: Path, name: str = "arm.xml", **words: str) -> Path:
    """A servo-driven arm and a free block on the floor, with some words of the scene replaced."""
    assert set(words) <= set(ARM)
    return written(folder, _ARM.format(**{**ARM, **words}), name)


def param(name: str, value: float, change: Change) -> Param:
    return Param(name, value, high=value if change.field == "delay" else np.inf, changes=(change,))


def watched(sim: Sim, actions: Array) -> dict[str, Array]:
    """(steps + 1, n, ...) columns of all copies from now on."""
    frames = [{name: np.array(rows) for name, rows in sim.read().items()}]
    for action in actions:
        sim.step(action)
        frames.append({name: np.array(rows) for name, rows in sim.read().items()})
    return {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}


def run(
    made: Task, actions: Array, *, initial: Columns | None = None, engine: Engine | None = None
) -> dict[str, Array]:
    """Columns over time of one copy at the task's nominal params."""
    with (engine or Mujoco(threads=1)).open(made, 1) as sim:
        sim.reset(np.arange(1), Params.nominal(made.belief.params, 1), initial or {})
        return {name: rows[:, 0] for name, rows in watched(sim, actions).items()}
