"""Cameras get wrong what they are told to, by how much they are told, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.policy import Tape
from simops.core.rollout import rollout
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.sim import optics
from simops.sim.frames import Shooting
from simops.sim.mujoco import Mujoco
from simops.sim.optics import Eye
from simops.sim.render import Camera
from simops.sim.stage import poses, stage
from simops.spec.optics import Optics
from tests.gl import needs_gl
from tests.sim.test_render import slider

EYE = Eye(64, 48, 60.0)
SEED = np.array([7], np.uint64)


def flat(value: float) -> Array:
    return np.full((48, 64, 3), value)


def test_a_perfect_camera_changes_nothing() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype(np.uint8)
    assert Optics().perfect
    np.testing.assert_array_equal(optics.developed(optics.linear(pixels), Optics(), EYE, SEED, 0), pixels)
    depth = np.linspace(0.5, 4, 48 * 64).reshape(48, 64).astype(np.float32)
    np.testing.assert_array_equal(optics.measured(depth, Optics(), EYE, SEED, 0), depth)


@pytest.mark.parametrize("light", [0.1, 0.4, 0.7])
def test_the_noise_of_light_grows_with_its_root_and_that_of_reading_does_not(light: float) -> None:
    flaws = Optics(full_well=2000.0, read_noise=0.01)
    shown = optics.linear(optics.developed(flat(light), flaws, EYE, SEED, 3))
    wanted = np.sqrt(light / 2000.0 + 0.01**2)
    assert shown.std() == pytest.approx(wanted, rel=0.06)
    again = optics.developed(flat(light), flaws, EYE, SEED, 3)
    np.testing.assert_array_equal(again, optics.developed(flat(light), flaws, EYE, SEED, 3))
    assert np.any(again != optics.developed(flat(light), flaws, EYE, SEED, 4))


def test_gain_fills_pixels_and_a_vignette_takes_light_from_the_corners() -> None:
    assert optics.developed(flat(0.5), Optics(gain=4.0), EYE, SEED, 0).min() == 255
    dark = optics.linear(optics.developed(flat(0.5), Optics(vignette=0.5), EYE, SEED, 0))
    assert dark[0, 0, 0] == pytest.approx(0.25, abs=0.01)
    assert dark[24, 32, 0] == pytest.approx(0.5, abs=0.01)


def bars(shift: float) -> Array:
    """A bright bar whose middle is at a column."""
    column = np.arange(64)[None] * np.ones((48, 1))
    return np.repeat((255 * (np.abs(column - shift) < 2)).astype(np.uint8)[..., None], 3, axis=2)


def middle(light: Array) -> Array:
    column = np.arange(64)
    return (light[..., 0] * column).sum(axis=1) / light[..., 0].sum(axis=1)


def test_a_rolling_shutter_leans_what_moves_and_an_exposure_smears_it() -> None:
    flaws = Optics(rolling_s=0.02, exposure_s=0.001, looks=21)
    looks = [bars(10 + 40 * i / 20) for i in range(21)]
    lean = middle(optics.gathered(looks, flaws))
    assert lean[-1] - lean[0] == pytest.approx(40 * 0.02 / 0.021, abs=3)
    assert np.all(np.diff(lean) >= -1e-9)
    smeared = optics.gathered(looks, Optics(exposure_s=0.02, looks=21))
    assert (smeared[0, :, 0] > 0.02).sum() > 35
    assert np.ptp(middle(smeared)) < 1e-9
    assert smeared.sum() == pytest.approx(optics.linear(looks[0]).sum(), rel=1e-6)  # light is neither made nor lost


def test_a_lens_bends_as_its_law_says() -> None:
    flaws = Optics(k1=-0.2, k2=0.05, p1=0.01, p2=-0.02)
    pixels = np.zeros((48, 64, 3))
    row, column = 8, 12
    x, y = (column - 31.5) / 60.0, (row - 23.5) / 60.0
    square = x * x + y * y
    radial = 1 + flaws.k1 * square + flaws.k2 * square**2
    lands_x = x * radial + 2 * flaws.p1 * x * y + flaws.p2 * (square + 2 * x * x)
    lands_y = y * radial + flaws.p1 * (square + 2 * y * y) + 2 * flaws.p2 * x * y
    pixels[row - 1 : row + 2, column - 1 : column + 2] = 1.0
    shown = optics.bent(pixels, flaws, EYE)[..., 0]
    rows, columns = np.mgrid[:48, :64]
    assert (shown * columns).sum() / shown.sum() == pytest.approx(lands_x * 60 + 31.5, abs=0.1)
    assert (shown * rows).sum() / shown.sum() == pytest.approx(lands_y * 60 + 23.5, abs=0.1)


def test_depth_comes_in_steps_that_grow_with_the_square_and_with_noise_that_does() -> None:
    depth = np.tile(np.linspace(1.0, 4.0, 64), (48, 1)).astype(np.float32)
    flaws = Optics(depth_baseline_m=0.05, depth_step_px=0.25)
    told = optics.measured(depth, flaws, EYE, SEED, 0)
    disparity = 60.0 * 0.05 / told.astype(float)
    np.testing.assert_allclose(disparity / 0.25, np.rint(disparity / 0.25), atol=1e-4)
    assert np.abs(told - depth).max() < 4.0**2 / (60 * 0.05) * 0.25
    for far_m in (1.0, 3.0):
        noisy = optics.measured(np.full((48, 64), far_m, np.float32), Optics(depth_noise=0.002), EYE, SEED, 0)
        assert noisy.std() == pytest.approx(0.002 * far_m**2, rel=0.06)


def test_edges_and_chance_take_depth_away() -> None:
    depth = np.full((48, 64), 2.0, np.float32)
    depth[:, 32:] = 1.0
    shown = optics.measured(depth, Optics(depth_edge=1.0), EYE, SEED, 0)
    lost = ~np.isfinite(shown)
    assert lost[:, 31:33].all()
    assert lost.sum() == 2 * 48
    some = optics.measured(depth, Optics(depth_dropout=0.3), EYE, SEED, 0)
    assert (~np.isfinite(some)).mean() == pytest.approx(0.3, abs=0.03)
    near = optics.measured(depth, Optics(depth_near_m=1.5), EYE, SEED, 0)
    assert np.isfinite(near[:, :32]).all()
    assert not np.isfinite(near[:, 32:]).any()


def test_a_belief_may_hold_any_of_it() -> None:
    flaws = Optics(exposure_s=0.01)
    assert {"wrist_exposure_s", "wrist_k1", "wrist_full_well"} <= {param.name for param in flaws.params("wrist")}
    drawn = flaws.at("wrist", {"wrist_exposure_s": 0.02, "other_k1": 1.0})
    assert drawn == replace(flaws, exposure_s=0.02)


@needs_gl
def test_a_late_camera_shows_what_was_and_a_long_exposure_smears_what_moves(tmp_path: Path) -> None:
    task = slider(tmp_path)
    one = rollout(Tape(np.ones((task.steps, 1), np.float32)), task, Mujoco(threads=1))[0]
    sharp = seen(one, task, Optics())
    late = seen(one, task, Optics(latency_s=0.06))
    np.testing.assert_array_equal(late[3:], sharp[:-3])
    smeared = seen(one, task, Optics(exposure_s=0.1))
    differs = np.abs(smeared[-1].astype(int) - sharp[-1]).max(axis=2) > 12
    assert 0.002 < differs.mean() < 0.3
    assert np.abs(smeared[-1].astype(int) - seen(one, task, Optics(exposure_s=0.1))[-1]).max() == 0


def seen(one: Trajectory, task: Task, flaws: Optics) -> Array:
    scene = stage(task)
    with Shooting(scene, (Camera("above", 64, 48, ("rgb",), flaws),), codec="ffv1") as shooting:
        [frames] = shooting.shoot(one, poses(scene, one))
    return frames.pixels()
