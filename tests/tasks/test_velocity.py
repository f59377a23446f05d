"""Velocity: the robot is a Go2, its feet are where they should be, its terms say what their names say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core import chance
from simops.core.errors import SignalError
from simops.core.mirror import swap
from simops.core.policy import Zero
from simops.core.rollout import rollout
from simops.core.signal import Array, Columns, Signal
from simops.core.task import Draw
from simops.sim.binding import Model, mj
from simops.sim.mujoco import Mujoco
from simops.tasks.cube_toss.task import cube_toss
from simops.tasks.velocity import terms
from simops.tasks.velocity.legs import FOOT_RADIUS_M, JOINTS, LEGS, STANCE_RAD, feet, feet_velocity, joints
from simops.tasks.velocity.task import FASTEST, MIRROR, velocity
from simops.tasks.velocity.trot import Trot

SINGLE = Mujoco(threads=1)


def draw(n: int, *, step: int = 0) -> Draw:
    seeds = chance.seeds(0, np.arange(n))
    return Draw(velocity().belief.sample(seeds), seeds, np.full(n, step))


def standing(n: int = 1, /, **changed: Array | list[list[float]]) -> dict[str, Array]:
    """Rows of a robot that stands perfectly still in its stance and is asked to."""
    one: dict[str, list[float]] = {
        "base_position": [0.0, 0.0, terms.BASE_HEIGHT_M],
        "base_quaternion": [1.0, 0.0, 0.0, 0.0],
        "base_velocity": [0.0] * 3,
        "gyro": [0.0] * 3,
        "joint_position": list(STANCE_RAD),
        "joint_velocity": [0.0] * 12,
        "joint_torque": [0.0] * 12,
        "foot_force": [37.0] * 4,
        "trunk_force": [0.0],
        "command": [0.0] * 3,
        "action": list(STANCE_RAD),
        "previous_action": list(STANCE_RAD),
    }
    rows = {name: np.tile(np.array(values, np.float32), (n, 1)) for name, values in one.items()}
    rows["time_s"] = np.full(n, 1.0, np.float32)
    return rows | {name: np.asarray(values, np.float32) for name, values in changed.items()}


def scrambled(n: int, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    rows = standing(n)
    for name, values in rows.items():
        rows[name] = (values + rng.normal(scale=0.3, size=values.shape)).astype(np.float32)
    rows["base_quaternion"] /= np.linalg.norm(rows["base_quaternion"], axis=1, keepdims=True)
    rows["time_s"] = np.linspace(0.02, 9.9, n, dtype=np.float32)
    return rows


@pytest.fixture(scope="module")
def model() -> Model:
    return mj.MjModel.from_xml_path(velocity().scene.path)


def test_robot_is_a_go2(model: Model) -> None:
    names = [model.joint(i).name for i in range(1, model.njnt)]
    driven = [model.joint(int(model.actuator_trnid[i, 0])).name for i in range(model.nu)]
    assert names == list(JOINTS) == driven
    assert 14.9 < model.body_mass.sum() < 15.5
    np.testing.assert_allclose(model.jnt_range[1:, 0], velocity().action.low)
    np.testing.assert_allclose(model.jnt_range[1:, 1], velocity().action.high)
    np.testing.assert_allclose(model.actuator_forcerange[:, 1].reshape(4, 3), [[23.7, 23.7, 45.43]] * 4)
    assert model.opt.cone == mj.mjtCone.mjCONE_ELLIPTIC


def test_left_and_right_are_mirror_images(model: Model) -> None:
    for part in ("hip", "thigh", "calf"):
        for end in "FR":
            left, right = model.body(f"{end}L_{part}"), model.body(f"{end}R_{part}")
            flip = np.array([1, -1, 1])
            np.testing.assert_allclose(left.pos * flip, right.pos)
            np.testing.assert_allclose(left.ipos * flip, right.ipos)
            np.testing.assert_allclose(left.inertia, right.inertia, rtol=1e-6)


def test_only_feet_and_trunk_touch_the_floor(model: Model) -> None:
    touching = {model.geom(i).name for i in range(model.ngeom) if model.geom_contype[i] or model.geom_conaffinity[i]}
    assert touching == {"floor", "trunk", *(f"{leg}_foot" for leg in LEGS)}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_feet_are_where_mujoco_has_them(seed: int) -> None:
    model = mj.MjModel.from_xml_path(velocity().scene.path)
    data = mj.MjData(model)
    rng = np.random.default_rng(seed)
    data.qpos[:7] = [0, 0, 0, 1, 0, 0, 0]
    data.qpos[7:] = np.array(STANCE_RAD) + rng.uniform(-0.5, 0.5, 12)
    data.qvel[:] = 0
    data.qvel[6:] = rng.normal(size=12)
    mj.mj_forward(model, data)
    at, moving = feet(data.qpos[None, 7:]), feet_velocity(data.qpos[None, 7:], data.qvel[None, 6:])
    for i, leg in enumerate(LEGS):
        jacobian = np.zeros((3, model.nv))
        mj.mj_jacGeom(model, data, jacobian, None, model.geom(f"{leg}_foot").id)
        np.testing.assert_allclose([axis[0, i] for axis in at], data.geom(f"{leg}_foot").xpos, atol=1e-6)
        np.testing.assert_allclose([axis[0, i] for axis in moving], jacobian @ data.qvel, atol=1e-6)
    np.testing.assert_allclose(joints(at)[0], data.qpos[7:], atol=1e-4)


def test_velocity_and_gravity_are_in_the_base_frame() -> None:
    half = np.sqrt(0.5)
    quaternions = [[1, 0, 0, 0], [half, 0, 0, half], [half, 0, half, 0], [half, half, 0, 0]]
    rows = standing(4, base_quaternion=np.array(quaternions), base_velocity=np.tile([1.0, 2.0, 3.0], (4, 1)))
    np.testing.assert_allclose(terms.velocity(rows), [[1, 2, 3], [2, -1, 3], [-3, 2, 1], [1, 3, -2]], atol=1e-6)
    np.testing.assert_allclose(terms.gravity(rows), [[0, 0, -1], [0, 0, -1], [1, 0, 0], [0, -1, 0]], atol=1e-6)


def test_a_robot_that_stands_as_asked_earns_everything_and_pays_nothing() -> None:
    rows = standing()
    scores = {term.name: float(term.score(rows)[0]) for term in velocity().reward}
    assert all(scores[name] == 1.0 for name in ("track_velocity", "track_yaw_rate", "gait", "alive"))
    paid = {name: score for name, score in scores.items() if score != 1.0}
    assert paid == pytest.approx(dict.fromkeys(paid, 0.0), abs=1e-12)
    assert not terms.fallen(rows)[0]
    assert terms.on_track(rows)[0]


def test_terms_agree_with_hand_calculation() -> None:
    rows = standing(
        base_velocity=[[0.3, 0.4, 0.2]],
        gyro=[[0.1, 0.2, 0.5]],
        joint_torque=[[2.0] * 12],
        joint_velocity=[[0.0, 0.0, -1.0] * 4],
        previous_action=[[angle + 0.25 for angle in STANCE_RAD]],
        base_position=[[0.0, 0.0, terms.BASE_HEIGHT_M + 0.1]],
        joint_position=[[angle + 0.1 for angle in STANCE_RAD]],
    )
    want = {
        "track_velocity": np.exp(-4.0),
        "track_yaw_rate": np.exp(-1.0),
        "vertical_velocity": 0.04,
        "roll_pitch_rate": 0.05,
        "base_height": 0.01,
        "torque": 48.0,
        "power": 8.0,
        "action_rate": 12.0,
        "posture": 0.12,
        "orientation": 0.0,
    }
    for term in velocity().reward:
        if term.name in want:
            assert float(term.score(rows)[0]) == pytest.approx(want[term.name], rel=1e-4), term.name


def test_a_sliding_foot_pays_only_while_it_carries_weight() -> None:
    rows = standing(2, base_velocity=[[0.5, 0.0, 0.0]] * 2, foot_force=[[37.0] * 4, [37.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(terms.foot_slip(rows), [1.0, 0.25], rtol=1e-5)
    lifted = standing(base_velocity=[[0.0, 0.0, 0.5]])
    np.testing.assert_allclose(terms.foot_slip(lifted), 0.0, atol=1e-6)


def test_gait_wants_diagonal_feet_together_and_all_feet_when_standing() -> None:
    cycle = np.arange(0.0, 1.0 / terms.GAIT_HZ, 0.01, dtype=np.float32)
    rows = standing(len(cycle), command=np.tile([0.5, 0.0, 0.0], (len(cycle), 1)))
    wanted = terms.planted({**rows, "time_s": cycle})
    np.testing.assert_array_equal(wanted[:, 0], wanted[:, 3])
    np.testing.assert_array_equal(wanted[:, 1], wanted[:, 2])
    assert wanted.mean() == pytest.approx(terms.STANCE_SHARE, abs=0.03)
    assert wanted.any(axis=1).all()
    assert terms.planted({**standing(len(cycle)), "time_s": cycle}).all()


def test_dragging_a_swinging_foot_costs_clearance() -> None:
    mid_swing = (terms.STANCE_SHARE + (1 - terms.STANCE_SHARE) / 2) / terms.GAIT_HZ
    ground = FOOT_RADIUS_M - float(feet(np.array([STANCE_RAD])).z[0, 0])
    rows = standing(command=[[0.5, 0.0, 0.0]], base_position=[[0.0, 0.0, ground]])
    rows["time_s"] = np.array([mid_swing], np.float32)
    np.testing.assert_allclose(terms.foot_clearance(rows), 2 * terms.CLEARANCE_M**2, rtol=1e-3)
    rows["base_position"][:, 2] += terms.CLEARANCE_M
    np.testing.assert_allclose(terms.foot_clearance(rows), 0.0, atol=1e-9)


@pytest.mark.parametrize(
    "changed",
    [
        {"trunk_force": [[5.0]]},
        {"base_position": [[0.0, 0.0, 0.1]]},
        {"base_quaternion": [[0.8, 0.6, 0.0, 0.0]]},
        {"base_position": [[0.0, 0.0, np.nan]]},
    ],
)
def test_falls_are_failures(changed: dict[str, list[list[float]]]) -> None:
    assert terms.fallen(standing(**changed))[0]


def test_first_step_owes_nothing_for_the_action_before_it() -> None:
    rows = standing(previous_action=[[0.0] * 12])
    rows["time_s"] = np.array([0.02], np.float32)
    assert terms.action_rate(rows)[0] == 0.0
    rows["time_s"] = np.array([0.0], np.float32)
    np.testing.assert_array_equal(terms.observe(rows)["previous_offset"], 0.0)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_rows_do_not_depend_on_the_rows_beside_them(size: int) -> None:
    every = scrambled(64)
    few: Columns = {name: values[:size] for name, values in every.items()}
    functions = [term.score for term in velocity().reward] + [terms.fallen, terms.on_track]
    for score in functions:
        np.testing.assert_array_equal(score(few), score(every)[:size])
        assert np.isfinite(score(every)).all()
    whole, part = terms.observe(every), terms.observe(few)
    for name, values in whole.items():
        np.testing.assert_array_equal(part[name], values[:size])
        assert values.dtype == np.float32


def test_in_the_mirror_and_half_a_cycle_later_everything_is_seen_and_scored_alike() -> None:
    rows = {name: values[4:] for name, values in scrambled(64).items()}
    moved = {**MIRROR, "action": MIRROR["joint_target"], "previous_action": MIRROR["joint_target"]}
    image = {name: swap((Signal(name, values.shape[1:]),), moved).rows(values) for name, values in rows.items()
             if values.ndim == 2} | {"time_s": rows["time_s"] + np.float32(0.5 / terms.GAIT_HZ)}  # fmt: skip
    for term in velocity().reward:
        np.testing.assert_allclose(term.score(rows), term.score(image), rtol=1e-4, atol=1e-5, err_msg=term.name)
    here, there = terms.observe(rows), terms.observe(image)
    for name, values in here.items():
        mirrored = swap((velocity().observation[name],), MIRROR).rows(values)
        np.testing.assert_allclose(mirrored, there[name], atol=1e-4, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_legs_tell_the_velocity_of_a_base_whose_feet_stand_still(seed: int) -> None:
    rng = np.random.default_rng(seed)
    angles = np.array([STANCE_RAD]) + rng.uniform(-0.3, 0.3, (1, 12))
    asked, spin = rng.normal(size=3), rng.normal(size=3)
    at = np.stack(feet(angles), axis=2)[0]
    units = feet_velocity(np.repeat(angles, 12, axis=0), np.eye(12))
    per_joint = np.stack(units, axis=2).reshape(12, 12).T
    rates = np.linalg.solve(per_joint, (-asked - np.cross(spin, at)).ravel())
    for command in ([0.0, 0.0, 0.0], [0.5, 0.0, 0.0]):
        rows = standing(gyro=spin[None], joint_position=angles, joint_velocity=rates[None], command=[command])
        np.testing.assert_allclose(terms.odometry(rows)[0], asked, atol=1e-4)


def test_commands_are_pure_bounded_and_sometimes_zero() -> None:
    task, n = velocity(), 2000
    first = task.goal(draw(n))["command"]
    np.testing.assert_array_equal(first, task.goal(draw(n, step=249))["command"])
    assert not np.array_equal(first, task.goal(draw(n, step=250))["command"])
    assert (np.abs(first) <= FASTEST).all()
    assert 0.07 < (first == 0).all(axis=1).mean() < 0.14
    assert (np.abs(first).max(axis=0) > 0.9 * np.array(FASTEST)).all()


def test_episodes_begin_with_a_foot_on_the_ground_and_none_in_it() -> None:
    begun = velocity().initial(draw(200))
    soles = begun["base_position"][:, 2:] + feet(begun["joint_position"]).z - FOOT_RADIUS_M
    np.testing.assert_allclose(soles.min(axis=1), 0.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(begun["base_quaternion"], axis=1), 1.0)


def test_standing_survives_the_whole_belief() -> None:
    runs = rollout(Zero(), replace(velocity(), horizon_s=5.0), SINGLE, n=32, seed=1, batch=32)
    assert all(run.outcome in {"success", "timeout"} for run in runs)


def test_trot_goes_where_it_is_told() -> None:
    ways = np.array([[0.5, 0, 0], [-0.5, 0, 0], [0, 0.4, 0], [0, -0.4, 0], [0, 0, 0.8], [0, 0, -0.8]], np.float32)

    def told(asked: Draw) -> Columns:
        return {"command": ways[: len(asked.seeds)]}

    task = replace(velocity(), horizon_s=3.0, goal=told)
    runs = rollout(Trot(), task, SINGLE, n=len(ways), seed=0, batch=len(ways))
    for run, way in zip(runs, ways, strict=True):
        assert run.outcome != "failure"
        rows = {name: values[75:] for name, values in run.columns.items()}
        reached = np.concatenate([terms.velocity(rows)[:, :2], rows["gyro"][:, 2:]], axis=1).mean(axis=0)
        assert reached @ way > 0.5 * way @ way


def test_trot_is_the_same_in_any_company() -> None:
    task = replace(velocity(), horizon_s=0.6)
    alone, together = (rollout(Trot(), task, SINGLE, n=7, seed=0, batch=size) for size in (1, 7))
    for one, other in zip(alone, together, strict=True):
        for name in one.columns:
            np.testing.assert_array_equal(one[name], other[name])


def test_trot_refuses_a_task_it_cannot_read() -> None:
    with pytest.raises(SignalError, match="does not read what cube_toss shows"):
        Trot().start(cube_toss(), chance.seeds(0, np.arange(1)))
