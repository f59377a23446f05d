"""A network as a motor: what torch taught, numpy says, whoever else is in the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.errors import DataError
from simops.core.protocols import Memory, Motor
from simops.core.signal import Array
from simops.learn.motor import LENGTH, SETTLING, Driven, Teach, fit_network
from simops.sim.motor import Pd
from simops.sim.mujoco import Mujoco
from simops.sim.network import ALONE, BLOCK, GRID, LARGEST, Network, product
from simops.testing.motor import check_motor
from tests.sim.rig import arm, run, task

Kind = Literal["mlp", "gru"]
SERVO = Pd(kp_nm_rad=20.0, kd_nms_rad=1.0)


def spring(instants: int = 600, joints: int = 3, seed: int = 0) -> Driven:
    """A servo with friction, moved about smoothly."""
    drawn = np.random.default_rng(seed)
    time_s = 0.005 * np.arange(instants)[:, None]
    error = 0.3 * np.sin(2 * np.pi * drawn.uniform(0.5, 2.0, joints) * time_s + drawn.uniform(0, 6, joints))
    velocity = 3.0 * np.cos(2 * np.pi * drawn.uniform(0.5, 2.0, joints) * time_s)
    return Driven(
        error_rad=error, velocity_rad_s=velocity, torque_nm=20.0 * error - velocity - 0.8 * np.tanh(5 * velocity)
    )


def taught(folder: Path, **settings: object) -> Path:
    file = folder / "motor.safetensors"
    file.write_bytes(fit_network([spring(seed=s) for s in range(3)], Teach(**settings)))  # pyright: ignore
    return file


def driven(motor: Motor, episode: Driven, *, dt_s: float = 0.005) -> tuple[Array, Memory]:
    """Torque at each instant of an episode, and the last memory."""
    memory, said = motor.start(1, episode.torque_nm.shape[1]), np.empty_like(episode.torque_nm)
    for i, (error, velocity) in enumerate(zip(episode.error_rad, episode.velocity_rad_s, strict=True)):
        torque, memory = motor.torque(error[None], np.zeros_like(error[None]), velocity[None], memory, dt_s=dt_s)
        said[i] = torque[0]
    return said, memory


@pytest.mark.parametrize("kind", ["mlp", "gru"])
@pytest.mark.parametrize("shared", [True, False])
def test_it_keeps_the_promises_of_a_motor(kind: Kind, shared: bool, tmp_path: Path) -> None:  # noqa: FBT001
    file = taught(tmp_path, kind=kind, shared=shared, hidden=(16,), members=2, steps=3, batch=128)
    check_motor(Network(weights=file, under=SERVO, bound_nm=0.5))


@pytest.mark.parametrize("kind", ["mlp", "gru"])
def test_numpy_says_what_torch_was_taught(kind: Kind, tmp_path: Path) -> None:
    file = taught(tmp_path, kind=kind, hidden=(16,), members=1, steps=300, batch=512, rate=1e-2)
    episode = spring(seed=9)
    said, _ = driven(Network(weights=file), episode)
    left = (said - episode.torque_nm)[SETTLING:]
    assert np.sqrt(np.mean(left**2)) < 0.15 * np.std(episode.torque_nm)


def test_a_correction_stays_within_its_bound(tmp_path: Path) -> None:
    episode, file = spring(seed=4), taught(tmp_path, hidden=(8,), members=1, steps=20)
    plain, _ = driven(SERVO, episode)
    corrected, _ = driven(Network(weights=file, under=SERVO, bound_nm=0.3), episode)
    assert 0.29 < np.abs(corrected - plain).max() <= 0.3 + 1e-6


def test_members_disagree_where_nobody_measured(tmp_path: Path) -> None:
    motor = Network(weights=taught(tmp_path, hidden=(16,), members=4, steps=100, batch=256))
    near, far = spring(seed=1), spring(seed=1)
    far = Driven(error_rad=20 * far.error_rad, velocity_rad_s=20 * far.velocity_rad_s, torque_nm=far.torque_nm)
    doubts = [driven(motor, episode)[1]["doubt"].mean() for episode in (near, far)]
    assert doubts[1] > 3 * doubts[0] > 0


def test_doubt_ends_an_episode_and_shrinks_a_correction(tmp_path: Path) -> None:
    file = taught(tmp_path, hidden=(16,), members=4, steps=30, batch=256)
    made = task(arm(tmp_path))
    targets = np.full((20, 1, 1), 0.5, np.float32)
    with Mujoco(threads=1, motor=Network(weights=file, under=SERVO, doubt_limit_nm=1e-4)).open(made, 1) as sim:
        sim.step(targets[0])
        assert sim.diverged.tolist() == [True]
    seen = run(made, targets, engine=Mujoco(threads=1, motor=Network(weights=file, under=SERVO, doubt_limit_nm=1e4)))
    assert np.all(np.isfinite(seen["angle"]))
    episode = spring(seed=2)
    plain, _ = driven(SERVO, episode)
    sizes = [
        np.abs(driven(Network(weights=file, under=SERVO, wary=wary), episode)[0] - plain).mean() for wary in (0.0, 1.0)
    ]
    assert sizes[1] < sizes[0]


def test_it_is_asked_once_a_period_and_held_meanwhile(tmp_path: Path) -> None:
    file = taught(tmp_path, hidden=(8,), members=1, steps=20)
    said, _ = driven(Network(weights=file), spring(), dt_s=0.001)
    same = np.all(said[1:] == said[:-1], axis=1).reshape(-1)
    assert np.flatnonzero(~same).tolist() == list(range(4, len(same), 5))


def test_a_stretch_is_longer_than_what_only_fills_the_memory() -> None:
    assert SETTLING < LENGTH


@pytest.mark.parametrize("cut", [4, 40, 300])
def test_a_torn_file_is_refused(cut: int, tmp_path: Path) -> None:
    file = taught(tmp_path, hidden=(8,), members=1, steps=2)
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DataError):
        Network(weights=file).start(1, 3)


def test_another_robots_network_and_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    file = taught(tmp_path, hidden=(8,), members=1, steps=2, shared=False)
    with pytest.raises(DataError, match="3 joints"):
        Network(weights=file).start(1, 12)
    raw = file.read_bytes()
    file.write_bytes(raw[:-4] + np.array([np.nan], "<f4").tobytes())
    with pytest.raises(DataError, match="no number"):
        Network(weights=file).start(1, 3)


@given(
    outer=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    tall=st.integers(1, 96),
    wide=st.integers(1, 96),
    columns=st.integers(1, 400),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=30, deadline=None)
def test_a_product_in_pieces_is_the_product(
    outer: tuple[int, int], tall: int, wide: int, columns: int, seed: int
) -> None:
    drawn = np.random.default_rng(seed)
    weight = np.rint(drawn.uniform(-LARGEST, LARGEST, (*outer, tall, wide)) * GRID) / GRID / GRID
    rows = np.rint(drawn.uniform(-LARGEST, LARGEST, (1, outer[1], wide, columns)) * GRID)
    np.testing.assert_array_equal(product(weight, rows), np.matmul(weight, rows))


def test_no_product_is_large_enough_to_be_shared_among_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    multiplications = list[int]()
    whole = np.matmul

    def counted(weight: Array, rows: Array, *, out: Array | None = None) -> Array:
        multiplications.append(weight.shape[-2] * weight.shape[-1] * rows.shape[-1])
        return whole(weight, rows, out=out)

    monkeypatch.setattr("simops.sim.network.np.matmul", counted)
    file = taught(tmp_path, hidden=(64, 32), members=2, steps=1, batch=128)
    motor, many = Network(weights=file), np.zeros((200, 3))
    _ = motor.torque(many, many, many, motor.start(200, 3), dt_s=0.005)
    assert max(multiplications) <= ALONE < 64 * 32 * BLOCK * 3
