"""Limbs of a held robot: each moves as it does in the whole, and numbers act joint by joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError, SceneError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.learn.fit import Fit
from simops.learn.motor import Teach
from simops.ops.chirp import Gains, How, identify, published
from simops.ops.hybrid import Hybrid, corrected
from simops.sim.limb import Drive, Motion, limbs

SCENE = """<mujoco><compiler angle="radian" autolimits="true"/>
<asset><mesh name="shell" file="not_there.obj"/></asset>
<worldbody><body name="base" pos="0 0 1"><freejoint/><geom type="mesh" mesh="shell"/><inertial pos="0 0 0" mass="5"
 diaginertia="1 1 1"/>
<body name="a1"><inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .01"/>
 <joint name="a_hip" axis="0 1 0" range="-1 1" damping="0.3"/>
 <body name="a2" pos="0 0 -.3"><inertial pos="0 0 -.1" mass=".5" diaginertia=".002 .002 .002"/>
  <joint name="a_knee" axis="0 1 0" range="-1 1"/></body></body>
<body name="b1" pos="0 .2 0"><inertial pos="0 0 -.2" mass="1" diaginertia=".01 .01 .01"/>
 <joint name="b_hip" axis="0 1 0" range="-1 0.2"/></body>
</body></worldbody>
<actuator><motor name="a" joint="a_hip" ctrlrange="-20 20"/><motor name="k" joint="a_knee" ctrlrange="-20 20"/>
<motor name="b" joint="b_hip" ctrlrange="-20 20"/></actuator></mujoco>"""
GAINS = Gains(stiffness=np.full(3, 20.0), damping=np.full(3, 1.0))
TRUE = {"armature": 0.03, "frictionloss": 0.5, "joint_damping": 0.2, "late": 0.01}


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    file = tmp_path / "robot.xml"
    file.write_text(SCENE)
    return file


def recorded(commands: Array, positions: Array) -> Recording:
    signals = [
        Signal(name, (3,), "rad", dtype="float64", labels=("ah", "ak", "bh")) for name in ("command", "position")
    ]
    times = 0.01 * np.arange(len(commands))
    columns = {"command": commands, "position": positions}
    return Recording("chirp", (Stream("rows", times, Schema(tuple(signals)), columns),))


def chirps(count: int = 300) -> Array:
    time_s = 0.01 * np.arange(count)[:, None]
    return 0.4 * np.sin(2 * np.pi * (0.4 + 0.5 * time_s) * time_s + np.arange(3)) - 0.4 * np.sin(np.arange(3))


def made(scene: Path, commands: Array) -> Recording:
    still = recorded(commands, np.zeros_like(commands))
    return recorded(commands, published(scene, still, GAINS, {k: np.array(v) for k, v in TRUE.items()}))


def test_a_robot_falls_into_its_limbs_and_meshes_need_not_be_there(scene: Path) -> None:
    found = limbs(scene)
    assert [limb.joints for limb in found] == [("a_hip", "a_knee"), ("b_hip",)]
    assert [limb.places for limb in found] == [(0, 1), (2,)]
    assert found[0].limits_nm.tolist() == [20.0, 20.0]
    assert found[1].nominal("stop_high").tolist() == [0.2]
    assert found[0].nominal("joint_damping").tolist() == [0.3, 0.0]


def test_joints_that_are_named_may_come_in_any_order_and_be_some(scene: Path) -> None:
    found = limbs(scene, ("b_hip", "a_knee"))
    assert [(limb.joints, limb.places) for limb in found] == [(("a_knee",), (1,)), (("b_hip",), (0,))]
    turned = limbs(scene, ("a_knee", "b_hip", "a_hip"))
    assert [(limb.joints, limb.places) for limb in turned] == [(("a_hip", "a_knee"), (2, 0)), (("b_hip",), (1,))]
    assert [limb.joints for limb in limbs(scene, ("k", "b"))] == [("a_knee",), ("b_hip",)]  # by their actuators
    assert [limb.places for limb in limbs(scene, ("0", "1", "2"))] == [(0, 1), (2,)]


def test_the_same_is_predicted_whatever_the_order_of_the_columns(scene: Path) -> None:
    numbers = {k: np.array(v) for k, v in TRUE.items()}
    plain = made(scene, chirps(220))
    [stream] = plain.streams
    order, labels = [1, 2, 0], ("a_knee", "b_hip", "a_hip")
    signals = tuple(Signal(s.name, (3,), "rad", dtype="float64", labels=labels) for s in stream.schema.signals)
    columns = {name: values[:, order] for name, values in stream.columns.items()}
    turned = Recording("turned", (Stream("rows", stream.time_s, Schema(signals), columns),))
    uneven = Gains(stiffness=np.array([20.0, 30.0, 40.0]), damping=np.array([1.0, 0.5, 0.7]))
    moved = Gains(stiffness=uneven.stiffness[order], damping=uneven.damping[order])
    straight, found = (published(scene, one, law, numbers) for one, law in ((plain, uneven), (turned, moved)))
    np.testing.assert_array_equal(found, straight[:, order])


@pytest.mark.parametrize(
    ("wrong", "fault"), [("still", "LRN-002"), ("dead", "LRN-002"), ("holed", "LRN-001"), ("short", "LRN-004")]
)
def test_a_recording_that_cannot_tell_is_refused(wrong: str, fault: str, scene: Path) -> None:
    commands = chirps(90 if wrong == "short" else 250)
    positions = 0.9 * commands
    if wrong == "still":
        commands, positions = np.zeros_like(commands), np.zeros_like(commands)
    if wrong == "dead":
        positions[:, 1] = 0.2
    if wrong == "holed":
        positions[7, 2] = np.nan
    with pytest.raises(DataError) as caught:
        identify(scene, recorded(commands, positions), GAINS)
    assert caught.value.fault == fault


def test_a_recording_of_another_robot_is_refused(scene: Path) -> None:
    whole = recorded(chirps(250), chirps(250))
    [stream] = whole.streams
    signals = tuple(Signal(s.name, (2,), "rad", dtype="float64", labels=("ah", "ak")) for s in stream.schema.signals)
    columns = {name: values[:, :2] for name, values in stream.columns.items()}
    other = Recording("other", (Stream("rows", stream.time_s, Schema(signals), columns),))
    with pytest.raises(DataError, match="2 joints, 3 gains, its scene 3 joints") as caught:
        identify(scene, other, GAINS)
    assert caught.value.fault == "LRN-005"


def test_points_side_by_side_are_as_alone(scene: Path) -> None:
    limb = limbs(scene)[0]
    drive = Drive(chirps(40)[:, :2], 0.01, np.zeros(2), np.zeros(2))
    many = {
        "stiffness": np.array([[20.0, 20.0], [40.0, 10.0]]),
        "damping": np.ones((2, 2)),
        "late": np.full((2, 2), 0.013),
    }
    both = limb.simulate(drive, many, threads=1)
    for i in range(2):
        alone = limb.simulate(drive, {k: v[i : i + 1] for k, v in many.items()}, threads=1)
        np.testing.assert_array_equal(both[i], alone[0])


def test_the_numbers_that_made_a_recording_predict_the_rest_of_it(scene: Path) -> None:
    recording = made(scene, chirps())
    how = How(until=0.7, every=3, tolerance_rad=0.002, fit=Fit(starts=1, iterations=5))
    found = identify(scene, recording, GAINS, how)
    ours = found.rms(found.predicted_rad, found.held)
    assert np.all(ours < 0.3 * found.rms(found.nominal_rad, found.held))
    assert np.all(ours < 0.01)


def test_what_is_missing_is_what_was_left_out(scene: Path) -> None:
    """A torque that the numbers do not know is found again by looking at the motion."""
    limb = limbs(scene)[1]
    drive = Drive(chirps()[:, 2:], 0.01, np.zeros(1), np.zeros(1))
    numbers = {"stiffness": np.full((1, 1), 20.0), "damping": np.ones((1, 1))}
    moved = limb.simulate(drive, numbers | {"offset": np.full((1, 1), 0.7)}, step_s=0.001)[0]
    free = slice(20, -10)
    found = limb.missing(drive, numbers, Motion.of(moved, 0.01))[free]
    assert np.median(found) == pytest.approx(0.7, abs=0.12)


def test_a_correction_is_taught_and_judged_on_what_it_has_not_seen(scene: Path) -> None:
    recording = made(scene, chirps(500))
    rough = How(until=1.0, every=8, fit=Fit(starts=1, iterations=1))
    found = identify(scene, recording, GAINS, rough)
    quick = Hybrid(teach=Teach(hidden=(8,), history=2, members=2, steps=40, batch=128, shared=False))
    for one in corrected(found, quick):
        assert one.predicted_rad.shape == (500, len(one.joints))
        assert one.better == (one.energy.passed and one.hybrid_rad < 0.98 * one.physical_rad)
    with pytest.raises(DataError, match="too few"):
        corrected(identify(scene, made(scene, chirps(250)), GAINS, rough), quick)


@pytest.mark.parametrize("wrong", ["gains", "short", "scene"])
def test_what_does_not_belong_together_is_refused(wrong: str, scene: Path) -> None:
    commands = chirps(50 if wrong == "short" else 250)
    recording = recorded(commands, 0.9 * commands)
    gains = Gains(stiffness=np.ones(2), damping=np.ones(2)) if wrong == "gains" else GAINS
    where = scene.with_name("other.xml") if wrong == "scene" else scene
    with pytest.raises(SceneError if wrong == "scene" else DataError) as caught:
        identify(where, recording, gains)
    assert {"gains": "LRN-005", "short": "LRN-004", "scene": ""}[wrong] == caught.value.fault
