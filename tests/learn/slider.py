"""A slider whose numbers are known, recorded by the engine itself: what is planted must be found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simops.core.params import Change, Param, Params
from simops.core.recording import Recording, Stream
from simops.core.rig import Rig
from simops.core.signal import Array, Schema, Signal
from simops.core.task import Scene
from simops.sim.mujoco import Mujoco
from simops.sim.servo import Servo

SCENE = """\
<mujoco model="slider">
  <option timestep="0.004" gravity="0 0 0"/>
  <worldbody>
    <body name="car">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="2" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor name="slide" joint="slide"/></actuator>
</mujoco>
"""
SPEC = """\
rig:
  name: slider
  scene: scene.xml
  joints: [slide]
  command: force
  velocity: velocity
  dt_s: 0.02
  unit: m
  params:
    mass: {field: mass, of: [car], low: 0.5, high: 6, nominal: 2, unit: kg}
    motor_viscous: {low: 0, high: 8}
    motor_coulomb: {low: 0, high: 4}
engine: {use: mujoco, motor: {use: servo, viscous: 1.0, coulomb: 0.2}}
split: {held: 0.4}
learner: {use: physical, ahead_s: 0.3, judged_s: 0.5, most: 48, fit: {starts: 2, iterations: 6}}
"""
TRUE = {"mass": 3.0, "motor_viscous": 2.5, "motor_coulomb": 1.2}
ENGINE = Mujoco(threads=1, motor=Servo(viscous=1.0, coulomb=0.2))


def rig(folder: Path, *extra: Param) -> Rig:
    """The slider as a rig; writes its scene."""
    (folder / "scene.xml").write_text(SCENE)
    params = (
        Param("mass", 2.0, "kg", 0.5, 6.0, (Change("mass", ("car",)),)),
        Param("motor_viscous", 1.0, low=0.0, high=8.0),
        Param("motor_coulomb", 0.2, low=0.0, high=4.0),
        *extra,
    )
    scene = Scene(str(folder / "scene.xml"), "slider")
    return Rig(
        name="slider", scene=scene, joints=("slide",), command="force", velocity="velocity", dt_s=0.02, params=params,
        unit="m",
    )  # fmt: skip


def recorded(
    one: Rig,
    *,
    runs: int = 8,
    seconds: float = 4.0,
    noise: float = 1e-4,
    seed: int = 0,
    push: float = 12.0,
    engine: Mujoco = ENGINE,
) -> list[Recording]:
    """Pushes of changing strength; what was read is noisy."""
    steps = round(seconds / one.dt_s)
    draw = np.random.default_rng(seed)
    time_s = np.arange(steps + 1) * one.dt_s
    force = np.repeat(draw.uniform(-push, push, (steps // 10 + 1, runs)), 10, axis=0)[: steps + 1]
    names = tuple(p.name for p in one.params)
    values = np.array([[TRUE.get(name, 0.0) for name in names]])
    if engine is not ENGINE:  # a motor of its own says for itself what it is like
        names, values = names[:1], values[:, :1]
    found = [np.empty((steps + 1, runs)) for _ in range(2)]
    with engine.open(one.task(), runs) as sim:
        sim.reset(np.arange(runs), Params(names, np.repeat(values, runs, axis=0)), {})
        for step in range(steps + 1):
            read = sim.read()
            for kept, name in zip(found, ("position", "velocity"), strict=True):
                kept[step] = read[name][:, 0]
            sim.step(force[step][:, None])
    size = (noise, 20 * noise)
    noisy = [kept + s * draw.standard_normal(kept.shape) for kept, s in zip(found, size, strict=True)]
    return [_recording(f"run_{i}", time_s, force[:, i], noisy[0][:, i], noisy[1][:, i]) for i in range(runs)]


def _recording(name: str, time_s: Array, force: Array, position: Array, velocity: Array) -> Recording:
    signals = tuple(
        Signal(what, (1,), unit, dtype="float64", labels=("slide",))
        for what, unit in (("force", "N"), ("position", "m"), ("velocity", "m/s"))
    )
    columns = {"force": force[:, None], "position": position[:, None], "velocity": velocity[:, None]}
    stream = Stream("rows", time_s, Schema(signals), columns)
    return Recording(name=name, session=name, streams=(stream,), robot="slider")
