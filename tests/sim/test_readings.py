"""What is read is what MuJoCo says of that very state, computed afresh by its own functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import EngineError, SceneError
from simops.core.params import Params
from simops.core.signal import Array, Signal
from simops.core.task import Body, Joint, Marker, Sensor, Site, Source
from simops.sim.binding import Data, Model, mj
from simops.sim.mujoco import Mujoco, MujocoSim
from tests.sim.rig import task, written

SCENE = """
<mujoco>
  <compiler angle="radian"/>
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <body name="goal" mocap="true" pos="0.1 0.2 0.3"/>
    <body name="upper" pos="0 0 1" euler="0.2 0.1 0">
      <joint name="shoulder" axis="0 1 0" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="1"/>
      <body name="lower" pos="0.3 0 0" euler="0 0 0.4">
        <joint name="elbow" axis="0 0 1" damping="0.2"/>
        <geom type="capsule" fromto="0 0 0 0.2 0.1 0" size="0.02" mass="0.5"/>
        <site name="tip" pos="0.2 0.1 0" euler="0.3 0.5 0.7"/>
      </body>
    </body>
    <body name="crate" pos="1 0 2" euler="0.1 0.2 0.3">
      <freejoint/>
      <geom type="box" size="0.1 0.05 0.02" mass="0.7"/>
      <site name="imu" pos="0.05 0.01 0" euler="0 0.4 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="shoulder" gear="2"/>
    <motor name="turn" joint="elbow"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <jointvel name="elbow_speed" joint="elbow"/>
    <framepos name="tip_place" objtype="site" objname="tip"/>
    <accelerometer name="felt" site="imu"/>
  </sensor>
</mujoco>
"""

STATE: dict[str, tuple[int, Source]] = {
    "angles": (2, Joint(("elbow", "shoulder"))),
    "rates": (2, Joint(("elbow", "shoulder"), "velocity")),
    "torques": (2, Joint(("elbow", "shoulder"), "torque")),
    **{f"{body}_at": (3, Body(body)) for body in ("upper", "lower", "crate")},
    **{f"{body}_turn": (4, Body(body, "quaternion")) for body in ("upper", "lower", "crate")},
    **{f"{body}_speed": (3, Body(body, "velocity")) for body in ("upper", "lower", "crate")},
    **{f"{body}_spin": (3, Body(body, "angular_velocity")) for body in ("upper", "lower", "crate")},
    "tip_at": (3, Site("tip")),
    "tip_turn": (4, Site("tip", "quaternion")),
    "imu_turn": (4, Site("imu", "quaternion")),
    "sensed": (7, Sensor(("gyro", "elbow_speed", "tip_place"))),
    "goal": (3, Marker("goal")),
}
PUSHES = Signal("pushes", (2,), "N m", labels=("turn", "push"))
COPIES = 3


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[MujocoSim]:
    """Three copies in motion, the last one step ahead of the others."""
    made = task(written(tmp_path, SCENE), STATE, action=PUSHES)
    rng = np.random.default_rng(0)
    with Mujoco(threads=1).open(made, COPIES) as sim:
        begun = {
            "angles": rng.normal(size=(COPIES, 2)),
            "rates": rng.normal(size=(COPIES, 2)),
            "crate_spin": rng.normal(size=(COPIES, 3)),
            "crate_speed": rng.normal(size=(COPIES, 3)),
            "goal": rng.normal(size=(COPIES, 3)),
        }
        sim.reset(np.arange(COPIES), Params((), np.empty((COPIES, 0))), begun)
        for _ in range(5):
            sim.step(rng.normal(size=(COPIES, 2)).astype(np.float32))
        sim.step(np.ones((1, 2), np.float32), np.array([2]))
        yield sim


def truth(model: Model, data: Data) -> dict[str, Array]:
    """The same by MuJoCo's own functions, after a forward pass at this state."""
    mj.mj_forward(model, data)
    found: dict[str, Array] = {
        "angles": np.array([data.joint("elbow").qpos[0], data.joint("shoulder").qpos[0]]),
        "rates": np.array([data.joint("elbow").qvel[0], data.joint("shoulder").qvel[0]]),
        "tip_at": np.array(data.site("tip").xpos),
        "sensed": np.concatenate([data.sensor(name).data for name in ("gyro", "elbow_speed", "tip_place")]),
        "goal": np.array(data.body("goal").xpos),
    }
    for body in ("upper", "lower", "crate"):
        number = model.body(body).id
        found[f"{body}_at"], found[f"{body}_turn"] = np.array(data.xpos[number]), np.array(data.xquat[number])
        world, own = np.zeros(6), np.zeros(6)
        mj.mj_objectVelocity(model, data, mj.mjtObj.mjOBJ_XBODY, number, world, 0)
        mj.mj_objectVelocity(model, data, mj.mjtObj.mjOBJ_XBODY, number, own, 1)
        found[f"{body}_speed"], found[f"{body}_spin"] = world[3:], own[:3]
    for site in ("tip", "imu"):
        found[f"{site}_turn"] = np.zeros(4)
        mj.mju_mat2Quat(found[f"{site}_turn"], data.site(site).xmat)
    return found


def test_every_reading_is_what_mujoco_says_of_that_state(moving: MujocoSim) -> None:
    read = {name: np.array(rows) for name, rows in moving.read().items()}
    for copy in range(COPIES):
        expected = truth(moving.model_of(copy), moving.data_of(copy))
        assert set(expected) == set(STATE) - {"torques"}
        for name, value in expected.items():
            got = read[name][copy]
            if name.endswith("_turn"):
                got = got * np.sign(got @ value)
            np.testing.assert_allclose(got, value, atol=1e-9, err_msg=f"{name} of copy {copy}")
    assert np.abs(read["lower_speed"]).min() > 0.0


def test_torques_are_what_the_actuators_put_on_the_joints(moving: MujocoSim) -> None:
    asked = np.array([[0.3, 0.5], [0.1, -0.2], [0.0, 1.0]], np.float32)
    moving.step(asked)
    np.testing.assert_allclose(moving.read()["torques"], asked * np.array([1.0, 2.0]), rtol=1e-6)


def test_forces_of_sensors_are_those_of_the_last_physics_step(tmp_path: Path) -> None:
    made = task(written(tmp_path, SCENE), {"felt": (3, Sensor(("felt",)))}, action=PUSHES)
    with Mujoco(threads=1).open(made, 1) as sim:
        sim.reset(np.arange(1), Params((), np.empty((1, 0))), {})
        sim.step(np.zeros((1, 2), np.float32))
        # falling freely and hardly turning it feels nothing
        assert np.abs(sim.read()["felt"]).max() < 1e-6


def test_a_free_body_begins_where_it_is_put(tmp_path: Path) -> None:
    made = task(written(tmp_path, SCENE), STATE, action=PUSHES)
    turn = np.array([[0.5, 0.5, -0.5, 0.5]])
    begun = {"crate_at": np.array([[1.0, 2.0, 3.0]]), "crate_turn": turn, "crate_spin": np.array([[0.1, 0.2, 0.3]])}
    with Mujoco(threads=1).open(made, 1) as sim:
        sim.reset(np.arange(1), Params((), np.empty((1, 0))), begun)
        read = sim.read()
        for name, rows in begun.items():
            np.testing.assert_array_equal(read[name], rows)
        np.testing.assert_array_equal(read["crate_speed"], 0.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lower_at", "lower_at is derived, no episode can begin with it"),
        ("tip_at", "tip_at is derived, no episode can begin with it"),
        ("torques", "torques is derived, no episode can begin with it"),
        ("crate_place", "look begins with 'crate_place', no state"),
    ],
)
def test_what_no_episode_can_begin_with_is_refused(name: str, words: str, tmp_path: Path) -> None:
    made = task(written(tmp_path, SCENE), STATE, action=PUSHES)
    with Mujoco().open(made, 1) as sim, pytest.raises((SceneError, EngineError), match=words):
        sim.reset(np.arange(1), Params((), np.empty((1, 0))), {name: np.zeros((1, 3))})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Joint(("elbo",)), "no joint 'elbo'\n  try: 'elbow'"),
        (Body("crat"), "no body 'crat'\n  try: 'crate'"),
        (Site("tap"), "no site 'tap'\n  try: imu, tip"),
        (Sensor(("gyr",)), "no sensor 'gyr'\n  try: elbow_speed, felt, gyro, tip_place"),
        (Marker("crate"), "body 'crate' is not a mocap body"),
    ],
)
def test_what_the_scene_does_not_have_is_refused(source: Source, words: str, tmp_path: Path) -> None:
    made = task(written(tmp_path, SCENE), {"it": (3, source)}, action=PUSHES)
    with pytest.raises(SceneError, match=words), Mujoco().open(made, 1):
        pass


def test_a_joint_of_many_degrees_is_no_joint_reading(tmp_path: Path) -> None:
    text = SCENE.replace("<freejoint/>", '<freejoint name="loose"/>')
    made = task(written(tmp_path, text), {"it": (1, Joint(("loose",)))}, action=PUSHES)
    with pytest.raises(SceneError, match="joint 'loose' is not a hinge or a slide"), Mujoco().open(made, 1):
        pass
