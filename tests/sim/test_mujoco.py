"""The MuJoCo engine where it meets what goes wrong, and where it meets the machine."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import EngineError, SceneError
from simops.core.params import Params
from simops.core.signal import Array, Signal
from simops.core.task import Body
from simops.sim.binding import mj
from simops.sim.mujoco import Mujoco, Physics
from tests.sim.rig import arm, run, task, watched, written

NONE = Params((), np.empty((3, 0)))
STILL = np.zeros((3, 1), np.float32)

HEAP = """
<mujoco>
  <size memory="{memory}"/>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    {balls}
  </worldbody>
</mujoco>
"""
BALL = '<body name="ball{i}" pos="0 0 {z}"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'


def heap(folder: Path, memory: str) -> Path:
    """Boxes that begin far apart and can be put on a heap, with little or enough memory for their contacts."""
    balls = "".join(BALL.format(i=i, z=1 + i) for i in range(8))
    return written(folder, HEAP.format(memory=memory, balls=balls))


def heaped() -> Array:
    """The first copy's boxes all in one place, the others' far apart."""
    at = np.tile(np.array([0.0, 0.0, 5.0]), (3, 8, 1)) + np.arange(8)[None, :, None] * np.array([0.0, 0.0, 1.0])
    at[1] = np.array([0.0, 0.0, 0.1]) + np.arange(8)[:, None] * np.array([0.005, 0.003, 0.01])
    return at


@pytest.mark.parametrize("memory", ["60K", "10M"])
def test_a_full_contact_buffer_is_diverged_and_nothing_is_printed(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    state = {f"at{i}": (3, Body(f"ball{i}")) for i in range(8)}
    made = task(heap(tmp_path, memory), state, action=Signal("nothing", (0,)))
    begun = heaped()
    with Mujoco(threads=1).open(made, 3) as sim:
        sim.reset(np.arange(3), NONE, {f"at{i}": begun[:, i] for i in range(8)})
        for _ in range(5):
            sim.step(np.zeros((3, 0), np.float32))
        assert sim.diverged.tolist() == [False, memory == "60K", False]
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


def test_what_is_no_number_prints_nothing_and_what_mujoco_was_told_before_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = mj.MjLogConfig.get()
    with Mujoco(threads=2).open(task(arm(tmp_path)), 3) as sim:
        sim.reset(np.arange(3), NONE, {"angle": np.array([0.0, np.nan, 0.0])})
        sim.step(STILL)
        sim.step(np.array([[0.0], [0.0], [np.nan]], np.float32))
        assert sim.diverged.tolist() == [False, True, True]
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()
    after = mj.MjLogConfig.get()
    assert (after.logto_console, after.logto_file) == (before.logto_console, before.logto_file)


def test_a_broken_copy_never_comes_back_as_a_new_one(tmp_path: Path) -> None:
    with Mujoco(threads=1).open(task(arm(tmp_path)), 3) as sim:
        sim.reset(np.arange(3), NONE, {"rate": np.array([0.0, 1e12, 0.0])})
        for _ in range(3):
            sim.step(STILL)
            assert sim.diverged.tolist() == [False, True, False]
            assert not abs(sim.read()["rate"][1]) < 1e9


def test_limits_are_the_tasks_and_the_actuators(tmp_path: Path) -> None:
    path = arm(tmp_path)
    path.write_text(path.read_text().replace('kp="50"', 'kp="50" ctrlrange="-1 0.5"'))
    narrow = Signal("target", (1,), "rad", labels=("servo",), low=(-0.25,), high=(2.0,))
    with Mujoco(threads=1).open(task(path, action=narrow), 3) as sim:
        sim.reset(np.arange(3), NONE, {})
        sim.step(np.array([[-9.0], [0.125], [9.0]], np.float32))
        assert sim.executed[:, 0].tolist() == [-0.25, 0.125, 0.5]


def test_an_episode_may_begin_with_a_command(tmp_path: Path) -> None:
    with Mujoco(threads=1).open(task(arm(tmp_path)), 3) as sim:
        sim.reset(np.arange(3), NONE, {"target": np.array([[0.5], [0.0], [-0.5]])})
        assert sim.executed[:, 0].tolist() == [0.5, 0.0, -0.5]


def test_labels_pick_actuators_by_their_own_name_or_their_joints(tmp_path: Path) -> None:
    by_joint = Signal("target", (1,), "rad", labels=("hinge",))
    actions = np.full((10, 1, 1), 0.3, np.float32)
    one, other = run(task(arm(tmp_path)), actions), run(task(arm(tmp_path), action=by_joint), actions)
    np.testing.assert_array_equal(one["angle"], other["angle"])
    for action, words in (
        (Signal("target", (1,), labels=("hing",)), "no actuator or driven joint is called 'hing'\n  try: 'hinge'"),
        (Signal("target", (2,)), "target has 2 elements, the scene 1 actuators"),
    ):
        with pytest.raises(SceneError, match=words), Mujoco().open(task(arm(tmp_path), action=action), 1):
            pass


def test_time_in_the_physics_is_counted(tmp_path: Path) -> None:
    with Mujoco(threads=1).open(task(arm(tmp_path), control_dt_s=1.0), 3) as sim:
        sim.reset(np.arange(3), NONE, {})
        begun_s, counted_s = time.perf_counter(), sim.busy_s
        for _ in range(3):
            sim.step(STILL)
        inside_s, whole_s = sim.busy_s - counted_s, time.perf_counter() - begun_s
        assert 0.0 < inside_s <= whole_s


def test_no_copies_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="0 copies"), Mujoco().open(task(arm(tmp_path)), 0):
        pass


def test_physics_is_part_of_the_recipe_and_threads_are_not() -> None:
    assert repr(Mujoco(threads=1)) == repr(Mujoco(threads=2))
    assert repr(Mujoco(physics=Physics(step_s=0.001))) != repr(Mujoco())


def test_a_finer_step_is_taken_as_told(tmp_path: Path) -> None:
    actions = np.full((50, 1, 1), 0.5, np.float32)
    coarse, fine = (
        run(task(arm(tmp_path)), actions, engine=Mujoco(threads=1, physics=Physics(step_s=step)))["angle"]
        for step in (0.005, 0.0005)
    )
    assert 1e-6 < np.abs(coarse - fine).max() < 0.02


def test_copies_move_apart_by_their_actions_alone(tmp_path: Path) -> None:
    with Mujoco(threads=1).open(task(arm(tmp_path)), 3) as sim:
        sim.reset(np.arange(3), NONE, {})
        seen = watched(sim, np.tile(np.array([[0.1], [0.2], [0.1]], np.float32), (10, 1, 1)))
    np.testing.assert_array_equal(seen["angle"][:, 0], seen["angle"][:, 2])
    assert seen["angle"][-1, 1] > seen["angle"][-1, 0]
