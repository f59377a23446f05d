"""Cube toss: the published cube, free fall, rest on a face, and friction that does what it says."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core import chance
from simops.core.params import Params
from simops.core.policy import Zero
from simops.core.rollout import rollout
from simops.core.task import Draw
from simops.sim.binding import mj
from simops.sim.mujoco import Mujoco
from simops.tasks.cube_toss.task import RATE_HZ, SIDE_M, cube_toss

SINGLE = Mujoco(threads=1)


def test_cube_is_the_published_one() -> None:
    model = mj.MjModel.from_xml_path(cube_toss().scene.path)
    cube = model.body("cube")
    assert float(cube.mass[0]) == pytest.approx(0.37)
    np.testing.assert_allclose(cube.inertia, 8.1e-4)
    np.testing.assert_allclose(model.geom("cube").size, SIDE_M / 2)
    assert model.opt.timestep * 10 * RATE_HZ == pytest.approx(1.0, abs=1e-12)
    assert model.nu == 0


def test_tosses_begin_above_the_table() -> None:
    task, n = cube_toss(), 500
    seeds = chance.seeds(0, np.arange(n))
    begun = task.initial(Draw(task.belief.sample(seeds), seeds, np.zeros(n, np.int64)))
    assert begun["position"][:, 2].min() > np.sqrt(3) * SIDE_M / 2
    np.testing.assert_allclose(np.linalg.norm(begun["quaternion"], axis=1), 1.0)


def test_cubes_fall_freely_then_come_to_rest_on_a_face() -> None:
    runs = rollout(Zero(), cube_toss(), SINGLE, n=32, seed=0, batch=32)
    assert {run.outcome for run in runs} == {"success"}
    for run in runs:
        assert run["position"][-1, 2] == pytest.approx(SIDE_M / 2, abs=2e-3)
        fall = run["velocity"][1, 2] - run["velocity"][0, 2]
        assert fall == pytest.approx(-9.81 / RATE_HZ, rel=1e-3)
        np.testing.assert_allclose(run["velocity"][1, :2], run["velocity"][0, :2], atol=1e-6)


def test_more_friction_stops_a_sliding_cube_sooner() -> None:
    task = cube_toss()
    slid: list[float] = []
    for friction in (0.1, 0.4):
        params = Params.nominal(task.belief.params, 1)
        params.values[:, params.names.index("friction_coefficient")] = friction
        flat = {
            "position": np.array([[0.0, 0.0, SIDE_M / 2]]),
            "quaternion": np.array([[1.0, 0.0, 0.0, 0.0]]),
            "velocity": np.array([[1.0, 0.0, 0.0]]),
        }
        with SINGLE.open(task, 1) as sim:
            sim.reset(np.arange(1), params, flat)
            for _ in range(RATE_HZ):
                sim.step(np.zeros((1, 0), np.float32))
            slid.append(float(sim.read()["position"][0, 0]))
    assert slid[0] == pytest.approx(1.0 / (2 * 0.1 * 9.81), rel=0.05)
    assert slid[1] == pytest.approx(1.0 / (2 * 0.4 * 9.81), rel=0.05)


def test_tosses_are_the_same_in_any_company() -> None:
    alone, together = (rollout(Zero(), cube_toss(), SINGLE, n=7, seed=2, batch=size) for size in (1, 7))
    for one, other in zip(alone, together, strict=True):
        for name in one.columns:
            np.testing.assert_array_equal(one[name], other[name])
