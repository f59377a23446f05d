"""Sensors: noise of the size it says, biases that stay, encoders that round and come late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from simops.core import chance
from simops.core.errors import SignalError
from simops.core.params import Params
from simops.core.protocols import Sensor
from simops.core.signal import Array
from simops.core.task import Draw
from simops.sim.sensor import Encoder, Noise
from simops.tasks.pendulum.task import pendulum

TASK = pendulum()
N = 2000


def shown(sensor: Sensor, angles: Sequence[Array], scale: Array | None = None) -> list[Array]:
    """What becomes of a sequence of angles."""
    n = len(angles[0])
    noisiness = np.ones(n) if scale is None else scale
    draw = Draw(Params(("noisiness",), noisiness[:, None]), chance.seeds(0, np.arange(n)), np.zeros(n, np.int64))
    memory, found = sensor.start(TASK, draw), list[Array]()
    for step, angle in enumerate(angles):
        columns = {"angle": angle.astype(np.float32), "rate": np.zeros(n, np.float32)}
        columns, memory = sensor.sense(columns, replace(draw, step=np.full(n, step)), memory)
        found.append(columns["angle"])
    return found


def test_noise_is_fresh_at_every_step_and_a_bias_stays() -> None:
    truth = [np.full(N, 0.5)] * 3
    fresh = shown(Noise(std={"angle": 0.1}), truth)
    assert np.std(np.array(fresh) - 0.5) == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(fresh[0], fresh[1])[0, 1]) < 0.1
    biased = shown(Noise(bias={"angle": 0.2}), truth)
    assert np.std(biased[0]) == pytest.approx(0.2, rel=0.1)
    np.testing.assert_array_equal(biased[0], biased[2])


def test_a_param_scales_both() -> None:
    scale = np.where(np.arange(N) < N // 2, 0.0, 3.0)
    sensor = Noise(std={"angle": 0.1}, bias={"angle": 0.1}, scale_param="noisiness")
    [seen] = shown(sensor, [np.zeros(N)], scale)
    np.testing.assert_array_equal(seen[: N // 2], 0.0)
    assert np.std(seen[N // 2 :]) == pytest.approx(3.0 * 0.1 * np.sqrt(2), rel=0.1)


def test_an_encoder_rounds_and_comes_late() -> None:
    ramp = [np.full(4, 0.013 * step) for step in range(8)]
    prompt = shown(Encoder("angle", step=0.01), ramp)
    for seen, true in zip(prompt, ramp, strict=True):
        np.testing.assert_allclose(seen / 0.01, np.round(seen / 0.01), atol=1e-4)
        assert np.abs(seen - true).max() <= 0.005 + 1e-6
    late = shown(Encoder("angle", step=0.01, delay_steps=3), ramp)
    for step, seen in enumerate(late):
        np.testing.assert_array_equal(seen, prompt[max(0, step - 3)])


def test_an_encoders_offset_is_its_own() -> None:
    [seen] = shown(Encoder("angle", offset_std=0.05), [np.zeros(N)])
    assert np.std(seen) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("sensor", [Noise(std={"angel": 0.1}), Noise(bias={"angel": 0.1}), Encoder("angel")])
def test_a_signal_that_is_not_there_is_refused(sensor: Sensor) -> None:
    with pytest.raises(SignalError, match="no signal 'angel'\n  try: 'angle'"):
        sensor.names(TASK)
