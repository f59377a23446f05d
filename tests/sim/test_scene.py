"""Scenes: MJCF and URDF, a digest that knows content and not place, and words when something is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import SceneError
from simops.core.signal import Signal
from simops.core.task import Body, Joint, Scene
from simops.sim.mujoco import Mujoco, Physics
from tests.sim.rig import arm, run, task, written

URDF = """
<robot name="door">
  <link name="frame"/>
  <link name="leaf">
    <inertial><origin xyz="0.5 0 0"/><mass value="2"/>
      <inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.5 0 0"/><geometry><box size="1 0.02 1"/></geometry></collision>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="frame"/><child link="leaf"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="20" velocity="5"/>
  </joint>
</robot>
"""


def test_a_urdf_runs(tmp_path: Path) -> None:
    state = {"angle": (0, Joint(("hinge",))), "rate": (0, Joint(("hinge",), "velocity"))}
    torque = Signal("torque", (1,), "N m", labels=("hinge",))
    made = task(written(tmp_path, URDF, "door.urdf"), state, action=torque)
    seen = run(made, np.full((50, 1, 1), 1.5, np.float32), engine=Mujoco(threads=1))
    inertia = 0.25 + 2.0 * 0.5**2
    np.testing.assert_allclose(seen["rate"][-1], 1.5 / inertia * 0.5, rtol=1e-6)
    np.testing.assert_allclose(seen["angle"][-1], 0.5 * 1.5 / inertia * 0.5**2, rtol=1e-2)


def test_a_scene_without_actuators_runs_with_nothing_to_do(tmp_path: Path) -> None:
    text = '<mujoco><worldbody><body name="ball"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    made = task(written(tmp_path, text), {"at": (3, Body("ball"))}, action=Signal("nothing", (0,)))
    seen = run(made, np.zeros((10, 1, 0), np.float32))
    assert seen["at"][-1, 2] < 0.0


def test_the_digest_knows_content_and_not_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, same = arm(tmp_path / "a", "x.xml"), arm(tmp_path / "b", "y.xml")
    other = arm(tmp_path, kp="51")
    versions = [Mujoco().version(task(path)) for path in (one, same, other)]
    assert versions[0] == versions[1] != versions[2]
    assert versions[0].startswith("mujoco 4.")


def test_a_missing_a_broken_and_an_impossible_scene_are_told_apart(tmp_path: Path) -> None:
    broken = written(tmp_path, "<mujoco><worldbody>", "broken.xml")
    unknown = written(tmp_path, "<mujoco><wrldbody/></mujoco>", "unknown.xml")
    massless = written(tmp_path, "<mujoco><worldbody><body><freejoint/></body></worldbody></mujoco>", "massless.xml")
    for path, words in (
        (tmp_path / "absent.xml", f"there is no scene {tmp_path / 'absent.xml'}"),
        (broken, "broken.xml does not parse"),
        (unknown, "unknown.xml does not parse"),
        (massless, "look does not compile"),
    ):
        made = replace(task(path), scene=Scene(str(path)))
        with pytest.raises(SceneError) as caught, Mujoco().open(made, 1):
            pass
        assert words in str(caught.value)
        assert "\n\n" not in str(caught.value)


@pytest.mark.parametrize(("step_s", "fits"), [(0.003, "0.00333333"), (0.1, "0.01")])
def test_steps_that_do_not_divide_are_refused_with_one_that_does(step_s: float, fits: str, tmp_path: Path) -> None:
    engine, words = Mujoco(physics=Physics(step_s=step_s)), f"a physics step that divides it, as {fits}"
    with pytest.raises(SceneError, match=words), engine.open(task(arm(tmp_path)), 1):
        pass
