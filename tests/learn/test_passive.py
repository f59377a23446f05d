"""The audit of energy: springs and brakes pass, what pushes a joint round and round does not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.protocols import Memory, Torque
from simops.core.signal import Array
from simops.learn.motor import Driven, Teach, fit_network
from simops.learn.passive import audit
from simops.sim.motor import Pd
from simops.sim.network import Network
from simops.sim.servo import Servo


@dataclass(frozen=True)
class Pushing:
    """A servo whose second joint is pushed the way it goes, by so much."""

    push: float

    def start(self, n: int, joints: int) -> Memory:
        return {"seen": np.zeros((n, joints))}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        del dt_s
        found = 20.0 * (command - position) - 0.1 * velocity
        found[:, 1] += self.push * np.sign(velocity[:, 1])
        return Torque(found, memory)


@pytest.mark.parametrize(
    "motor",
    [
        Pd(kp_nm_rad=30.0, kd_nms_rad=0.0),
        Pd(kp_nm_rad=30.0, kd_nms_rad=1.0),
        Servo(kp=40.0, kd=1.0, coulomb=0.4, stribeck=0.3, viscous=0.1, stall=6.0, no_load=9.0, backlash=0.02),
    ],
)
def test_springs_and_brakes_give_no_energy(motor: Pd | Servo) -> None:
    found = audit(motor, 2, reach_rad=0.5, fastest_hz=3.0)
    assert found.passed, found.words
    assert "no round" in found.words


def test_what_pushes_along_is_found_and_named() -> None:
    assert audit(Pushing(0.0), 2, reach_rad=0.5, fastest_hz=3.0).passed
    found = audit(Pushing(0.5), 2, reach_rad=0.5, fastest_hz=3.0)
    assert not found.passed
    assert found.rounds[0].joint == 1
    assert found.rounds[0].half_rad < 0.05  # the push is the same everywhere, the spring is weakest near its middle
    assert all(one.share <= 0 for one in found.rounds if one.joint == 0)
    assert "give energy; the worst: joint 1" in found.words


def test_a_network_taught_on_a_motor_that_gives_energy_fails(tmp_path: Path) -> None:
    passed: dict[float, bool] = {}
    for damping in (-3.0, 3.0):
        drawn = np.random.default_rng(0)
        error, velocity = drawn.uniform(-0.4, 0.4, (2, 900, 1))
        velocity = 10 * velocity
        driven = Driven(error_rad=error, velocity_rad_s=velocity, torque_nm=20.0 * error - damping * velocity)
        file = tmp_path / "motor.safetensors"
        file.write_bytes(
            fit_network([driven], Teach(hidden=(16,), history=1, members=1, steps=400, batch=256, rate=1e-2))
        )
        passed[damping] = audit(Network(weights=file), 1, reach_rad=0.4, fastest_hz=1.5, dt_s=0.005).passed
    assert passed == {-3.0: False, 3.0: True}


def test_a_torque_that_is_no_number_does_not_pass() -> None:
    assert not audit(Pushing(float("nan")), 2, reach_rad=0.5, fastest_hz=3.0).passed


@pytest.mark.parametrize(("reach", "fastest"), [(0.0, 1.0), (0.5, 0.0), (float("inf"), 1.0)])
def test_a_way_without_size_is_refused(reach: float, fastest: float) -> None:
    with pytest.raises(DataError, match="no way"):
        audit(Pd(), 1, reach_rad=reach, fastest_hz=fastest)
