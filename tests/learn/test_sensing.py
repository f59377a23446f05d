"""What was put into a sensor comes out of its recordings."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.recording import Recording, Series, Stream
from simops.core.signal import Array, Schema, Signal
from simops.learn.sensing import noise_of, repeated, resolution, sensing
from simops.ops.sensing import sensed, written

STEP, NOISE, DT_S = 0.001534, 0.004, 0.01


def motion(rng: np.random.Generator, rows: int = 4000) -> Array:
    time_s = np.arange(rows) * DT_S
    return 0.5 * np.sin(2 * np.pi * 0.4 * time_s + rng.uniform(0, 6)) + 0.2 * np.sin(2 * np.pi * 1.1 * time_s)


def read(
    rng: np.random.Generator, truth: Array, *, step: float = STEP, noise: float = NOISE, lost: float = 0.0
) -> Array:
    values = truth + rng.normal(0, noise, len(truth))
    values = np.rint(values / step) * step if step else values
    for i in np.flatnonzero(rng.uniform(size=len(values)) < lost).tolist():
        values[i] = values[max(0, i - 1)]
    return values


@pytest.mark.parametrize("seed", range(5))
def test_resolution_and_noise_come_out_of_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = read(rng, motion(rng))
    assert resolution(values) == pytest.approx(STEP, rel=1e-3)
    assert noise_of(values, STEP) == pytest.approx(NOISE, rel=0.2)
    assert resolution(motion(rng) + rng.normal(0, NOISE, 4000)) == 0.0


@pytest.mark.parametrize("lost", [0.0, 0.05, 0.2])
def test_lost_readings_are_counted_where_the_sensor_moves(lost: float) -> None:
    rng = np.random.default_rng(3)
    values = read(rng, 5 * motion(rng), noise=1e-4, lost=lost)
    assert repeated(values, STEP, 1e-4) == pytest.approx(lost, abs=0.02)


def test_drift_at_rest_is_told_by_its_allan_deviation() -> None:
    rng = np.random.default_rng(5)
    white, walk = 0.002, 0.0005
    rows = 40_000
    truth = np.cumsum(rng.normal(0, walk * np.sqrt(DT_S), rows))
    values = truth + rng.normal(0, white / np.sqrt(DT_S), rows)
    series = Series(Signal("gyro", (1,), "rad/s"), np.arange(rows) * DT_S, values[:, None])
    found = sensing([series], 0, zero_at_rest=True)
    assert found.white == pytest.approx(white, rel=0.1)
    assert found.walk == pytest.approx(walk, rel=0.4)
    assert found.step == 0.0


def test_too_few_readings_are_refused() -> None:
    series = Series(Signal("gyro", (1,)), np.arange(20) * DT_S, np.zeros((20, 1)))
    with pytest.raises(DataError, match="no session of 200"):
        sensing([series], 0, zero_at_rest=True)


def test_a_spec_that_gets_the_same_wrong_is_written() -> None:
    rng = np.random.default_rng(1)
    recordings: list[Recording] = []
    for i in range(3):
        rows = np.stack([read(rng, motion(rng)) for _ in range(2)], axis=1)
        schema = Schema((Signal("position", (2,), "rad", "", "float64", ("hip", "knee")),))
        stream = Stream("rows", np.arange(len(rows)) * DT_S, schema, {"position": rows})
        recordings.append(Recording(f"r{i}", (stream,), session=f"s{i}"))
    found = sensed(recordings)
    assert [one.element for one in found] == ["hip", "knee"]
    text = written(found)
    assert "use: encoder" in text
    assert "step: 0.001534" in text
