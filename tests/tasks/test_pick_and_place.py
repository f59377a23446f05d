"""Pick and place: kinematics against MuJoCo, the expert's success, and scores that read rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core import chance
from simops.core.belief import Box
from simops.core.errors import SignalError
from simops.core.policy import Zero
from simops.core.rollout import rollout, score
from simops.core.task import Draw, Task
from simops.sim.binding import Model, mj
from simops.sim.mujoco import Mujoco
from simops.spec.randomize import randomize
from simops.spec.ranges import Range
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place import kinematics, scores
from simops.tasks.pick_and_place.expert import CARRY, REACH, Expert
from simops.tasks.pick_and_place.task import (
    ACTION,
    CONTROL_DT_S,
    JOINT_HIGH_RAD,
    JOINT_LOW_RAD,
    OBSERVATION,
    OPEN_M,
    STATE,
    belief,
    pick_and_place,
)

if TYPE_CHECKING:
    from simops.core.signal import Array
    from simops.core.trajectory import Trajectory

TASK = pick_and_place()
postures = st.tuples(*(st.floats(low, high) for low, high in zip(JOINT_LOW_RAD, JOINT_HIGH_RAD, strict=True)))


@pytest.fixture(scope="module")
def model() -> Model:
    return mj.MjModel.from_xml_path(TASK.scene.path)


@pytest.fixture(scope="module")
def episodes() -> list[Trajectory]:
    return rollout(Expert(), TASK, Mujoco(threads=1), n=64, seed=11, batch=64)


def column(posture: tuple[float, ...]) -> Array:
    return np.array(posture)[:, None]


def draw(n: int, root: int = 0) -> Draw:
    seeds = chance.seeds(root, np.arange(n))
    return Draw(belief().sample(seeds), seeds, np.zeros(n, np.int64))


def seen(n: int) -> Array:
    """Observations of a scene about to be grasped, carried or dropped, all different."""
    at = draw(n)
    start = dict(TASK.initial(at))
    near = chance.between(at.seeds, "near", np.full(3, -0.01), np.full(3, 0.01))
    start["tool_position"] = np.where((np.arange(n) % 2 == 0)[:, None], start["cube_position"], near) + near
    for name in ("joint_velocity", "cube_velocity"):
        start[name] = np.zeros((n, TASK.state_schema[name].size))
    return OBSERVATION.pack(start)


@given(postures)
def test_the_tool_is_where_mujoco_says(model: Model, posture: tuple[float, ...]) -> None:
    data = mj.MjData(model)
    data.qpos[:7] = posture
    mj.mj_kinematics(model, data)
    at = kinematics.tool(column(posture))
    frame = np.stack([axis[:, 0] for axis in at.axes], axis=1)
    np.testing.assert_allclose(at.position[:, 0], data.site("tool").xpos, atol=1e-9, rtol=0)
    np.testing.assert_allclose(frame, data.site("tool").xmat.reshape(3, 3), atol=1e-9, rtol=0)


@given(postures)
def test_the_jacobian_is_the_slope_of_the_pose(posture: tuple[float, ...]) -> None:
    at = kinematics.tool(column(posture))
    found = kinematics.jacobian(at)[:, :, 0]
    h = 1e-6
    for joint in range(7):
        moved = [kinematics.tool(column(posture) + sign * h * np.eye(7)[:, joint, None]) for sign in (1, -1)]
        slope = (moved[0].position - moved[1].position)[:, 0] / (2 * h)
        turn = sum(
            0.5 * np.cross(axis[:, 0], (a - b)[:, 0] / (2 * h))
            for axis, a, b in zip(at.axes, moved[0].axes, moved[1].axes, strict=True)
        )
        np.testing.assert_allclose(found[:3, joint], slope, atol=1e-8)
        np.testing.assert_allclose(found[3:, joint], turn, atol=1e-8)


@given(postures)
def test_a_damped_step_solves_the_damped_equations(posture: tuple[float, ...]) -> None:
    jac = kinematics.jacobian(kinematics.tool(column(posture)))
    twist = np.linspace(-0.02, 0.03, 6)[:, None]
    j = jac[:, :, 0]
    want = j.T @ np.linalg.solve(j @ j.T + 0.05**2 * np.eye(6), twist[:, 0])
    np.testing.assert_allclose(kinematics.damped_step(jac, twist, damping=0.05)[:, 0], want, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_a_copy_acts_the_same_in_any_company(n: int) -> None:
    everyone, expert = seen(1000), Expert()
    seeds = np.arange(1000, dtype=np.uint64)
    memory, few = expert.start(TASK, seeds), expert.start(TASK, seeds[:n])
    for step in range(4):
        action, memory = expert.act(np.roll(everyone, step, axis=1) if step == 3 else everyone, memory)
        again, few = expert.act(np.roll(everyone, step, axis=1)[:n] if step == 3 else everyone[:n], few)
        assert again.tobytes() == action[:n].tobytes()
        for name, rows in few.items():
            assert np.ascontiguousarray(rows).tobytes() == np.ascontiguousarray(memory[name][:n]).tobytes(), name


def test_the_expert_succeeds_over_the_whole_randomization(episodes: list[Trajectory]) -> None:
    outcomes = [episode.outcome for episode in episodes]
    assert outcomes.count("success") >= 63


def test_the_cube_is_carried_not_pushed(episodes: list[Trajectory]) -> None:
    highest = [float(episode["cube_position"][:, 2].max()) for episode in episodes]
    assert min(highest) > 0.04


def test_the_expert_keeps_the_robots_limits(episodes: list[Trajectory]) -> None:
    speed = np.array(kinematics.SPEED_LIMIT_RAD_S)
    for episode in episodes:
        targets = episode["action"][:-1, :7].astype(np.float64)
        assert np.all(np.abs(np.diff(targets, axis=0)) / CONTROL_DT_S < speed + 1e-4)
        assert np.all(targets >= np.array(JOINT_LOW_RAD) - 1e-6)
        assert np.all(targets <= np.array(JOINT_HIGH_RAD) + 1e-6)


def test_the_expert_opens_the_hand_and_tries_again_when_the_cube_is_gone() -> None:
    observed = seen(2)
    tool = OBSERVATION.slices["tool_position"]
    observed[0, tool] = observed[0, OBSERVATION.slices["cube_position"]]
    observed[1, tool] = observed[0, tool] + np.array([0.0, 0.0, 0.1], np.float32)
    expert = Expert()
    memory = {**expert.start(TASK, np.zeros(2, np.uint64)), "phase": np.full(2, CARRY)}
    act = expert.act(observed, memory)
    assert act.memory["phase"].tolist() == [CARRY, REACH]
    np.testing.assert_allclose(act.action[:, 7], [0.0, OPEN_M])


def test_a_cube_as_slippery_as_wet_ice_stays_on_the_table() -> None:
    slippery = Box(belief().params, (0.4, 0.01, *belief().low[2:]), (0.4, 0.01, *belief().high[2:]))
    short = rollout(Expert(), TASK, Mujoco(threads=1), n=4, seed=5, belief=slippery)
    assert all(episode.outcome != "success" for episode in short)


def test_doing_nothing_is_no_success() -> None:
    assert [episode.outcome for episode in rollout(Zero(), TASK, Mujoco(threads=1), n=2, seed=0)] == ["timeout"] * 2


def test_being_done_early_pays(episodes: list[Trajectory]) -> None:
    idle = rollout(Zero(), TASK, Mujoco(threads=1), n=1, seed=11)[0]
    assert score(TASK, episodes[0])["reward"].sum() > score(TASK, idle)["reward"].sum()
    assert np.all(score(TASK, idle)["reward"] <= 0.0)


def test_the_cube_starts_on_one_side_and_goes_to_the_other() -> None:
    at = draw(500)
    start = TASK.initial(at)
    cube, goal = start["cube_position"], start["goal_position"]
    assert np.all(np.sign(cube[:, 1]) == -np.sign(goal[:, 1]))
    assert {-1.0, 1.0} == set(np.sign(cube[:, 1]))
    assert np.all(np.linalg.norm(cube - goal, axis=1) > 0.1)
    plain = Draw(at.params.rows(slice(None)), at.seeds, at.step)
    values = plain.params.values.copy()
    values[:, [at.params.names.index(f"object_position_noise_{axis}") for axis in "xy"]] = 0.0
    unshifted = TASK.initial(Draw(type(at.params)(at.params.names, values), at.seeds, at.step))["cube_position"]
    np.testing.assert_allclose(cube[:, 0] - unshifted[:, 0], at.params["object_position_noise_x"], atol=1e-12)
    np.testing.assert_allclose(cube[:, 1] - unshifted[:, 1], at.params["object_position_noise_y"], atol=1e-12)


def lying(**changes: tuple[float, ...]) -> dict[str, Array]:
    """One row of a cube placed and let go, with changes."""
    goal = (0.5, 0.1, 0.02)
    row: dict[str, tuple[float, ...]] = {
        "cube_position": goal,
        "goal_position": goal,
        "cube_velocity": (0.0, 0.0, 0.0),
        "finger_position": (0.035, 0.035),
        "tool_position": goal,
    }
    return {name: np.array([value]) for name, value in {**row, **changes}.items()}


@pytest.mark.parametrize(
    ("changes", "placed"),
    [
        ({}, True),
        ({"cube_position": (0.5, 0.125, 0.02)}, False),
        ({"cube_velocity": (0.0, 0.06, 0.0)}, False),
        ({"finger_position": (0.02, 0.02)}, False),
    ],
)
def test_placed_means_there_still_and_let_go(changes: dict[str, tuple[float, ...]], placed: bool) -> None:  # noqa: FBT001 - a table of cases
    assert scores.placed(lying(**changes)).tolist() == [placed]


@pytest.mark.parametrize(
    ("position", "lost"), [((0.5, 0.0, 0.02), False), ((0.5, 0.0, -0.1), True), ((0.5, 0.7, 0.02), True)]
)
def test_lost_means_off_the_table(position: tuple[float, ...], lost: bool) -> None:  # noqa: FBT001 - a table of cases
    assert scores.lost(lying(cube_position=position)).tolist() == [lost]


def test_the_action_has_the_scenes_limits(model: Model) -> None:
    assert tuple(model.actuator(i).name for i in range(model.nu)) == ACTION.labels
    np.testing.assert_allclose(model.actuator_ctrlrange, np.stack([ACTION.low, ACTION.high], axis=1))


def test_the_expert_refuses_another_task() -> None:
    other: Task = pendulum()
    with pytest.raises(SignalError, match="pendulum"):
        Expert().start(other, np.zeros(1, np.uint64))


def test_the_randomization_of_the_field_is_what_the_task_believes() -> None:
    groups = {
        "visual": {
            "texture_pool": 200,
            "lighting_intensity": Range(0.3, 1.8),
            "camera_jitter_deg": Range(-5, 5),
        },
        "physics": {
            "object_mass_kg": Range(0.05, 0.4),
            "friction_coefficient": Range(0.2, 1.1),
            "object_position_noise_cm": Range(-2, 2),
        },
    }
    assert randomize(belief(), groups) == (belief(), ())


def test_every_state_is_observed() -> None:
    assert tuple(reading.signal.name for reading in STATE) == OBSERVATION.names
