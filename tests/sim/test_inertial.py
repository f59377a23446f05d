"""What an inertial sensor shows of a robot that stands still has the Allan deviation that it was made with."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core.allan import Allan, allan, expected
from simops.core.params import Params
from simops.core.signal import Array
from simops.core.task import Draw
from simops.sim.axes import Axes
from simops.sim.inertial import Imu
from simops.tasks.velocity.task import velocity

N, STEPS = 40, 4000


def still(imu: Imu) -> tuple[Array, float]:
    """(steps, copies * 3) readings of the gyro of robots that do not move."""
    task = velocity()
    columns = {signal.name: np.zeros((N, *signal.shape), np.float32) for signal in task.state_schema.signals}
    columns["base_quaternion"][:, 0] = 1.0
    draw = Draw(Params((), np.zeros((N, 0))), np.arange(1, N + 1, dtype=np.uint64), np.zeros(N, np.int64))
    memory, rows = imu.start(task, draw), np.empty((STEPS, N * 3))
    for step in range(STEPS):
        now = Draw(draw.params, draw.seeds, np.full(N, step))
        shown, memory = imu.sense(columns, now, memory)
        rows[step] = shown["gyro"].reshape(-1)
    return rows, task.control_dt_s


def mean(found: Allan) -> Array:
    return np.sqrt(np.mean(found.deviation**2, axis=1))


@pytest.mark.parametrize(
    ("axes", "coefficients", "longest_s"),
    [
        (Axes(signal="gyro", white=0.01), {"white": 0.01}, 8.0),
        (Axes(signal="gyro", walk=0.02), {"walk": 0.02}, 8.0),
        (Axes(signal="gyro", instability=0.03), {"instability": 0.03}, 8.0),
        (
            Axes(signal="gyro", white=0.01, instability=0.02, walk=0.01),
            {"white": 0.01, "instability": 0.02, "walk": 0.01},
            8.0,
        ),
    ],
)
def test_the_allan_deviation_is_as_made(axes: Axes, coefficients: dict[str, float], longest_s: float) -> None:
    rows, dt_s = still(Imu(gyro=axes))
    found = allan(rows, dt_s)
    use = (found.span_s <= longest_s) & (found.span_s >= (1.0 if "instability" in coefficients else 2 * dt_s))
    wanted = expected(found.span_s, **coefficients)
    np.testing.assert_allclose(mean(found)[use], wanted[use], rtol=0.15)


def test_a_bias_a_scale_and_a_misalignment_stay_for_an_episode() -> None:
    rows, _ = still(Imu(gyro=Axes(signal="gyro", bias_std=0.1)))
    assert np.ptp(rows, axis=0).max() == 0.0
    assert rows[0].std() == pytest.approx(0.1, rel=0.2)
