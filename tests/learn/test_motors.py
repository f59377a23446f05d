"""Learned motors: what the numbers do not explain is taught to a network, unless it would give energy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.learning import Learned, Material, Progress
from simops.core.protocols import Memory, Motor, Torque
from simops.core.signal import Array
from simops.learn.fit import Fit
from simops.learn.motor import Teach
from simops.learn.motors import WEIGHTS, Motors
from simops.learn.physical import Physical
from simops.sim.mujoco import Mujoco
from simops.sim.network import Network
from simops.sim.servo import Servo
from tests.learn.slider import ENGINE, recorded, rig

NUMBERS = Physical(by="effort", judged_s=0.5, cut_hz=12.0, rows=1000, draws=2, fit=Fit(starts=1, iterations=4))
LEARNER = Motors(
    physical=NUMBERS,
    bound=0.6,
    teach=Teach(hidden=(16,), history=1, shared=False, steps=400, batch=256, members=2, rate=1e-2),
)


@dataclass(frozen=True)
class Pushing:
    """A motor that adds to whatever motion there is, up to a speed."""

    push: float

    def start(self, n: int, joints: int) -> Memory:
        return {"none": np.zeros((n, joints))}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        del position, dt_s
        return Torque(command + self.push * np.tanh(4 * velocity) - 0.5 * velocity**3, memory)


def learned(folder: Path, motor: Motor) -> tuple[Learned, list[float]]:
    """What comes of recordings of a slider with that motor, and the error of each rung on two that were held out."""
    one = rig(folder)
    runs = recorded(one, runs=6, seconds=5.0, engine=Mujoco(threads=1, motor=motor))
    found = LEARNER.learn(Material(task=one.task(), rig=one, engine=ENGINE, recordings=tuple(runs[:4])), unwatched)
    errors: list[float] = []
    for candidate in found.candidates:
        with LEARNER.predicting(candidate, one.task(), one) as predict:
            errors.append(float(np.mean([predict(run).error for run in runs[4:]])))
    return found, errors


def unwatched(progress: Progress) -> None:
    del progress


def test_a_network_says_what_the_numbers_cannot(tmp_path: Path) -> None:
    found, errors = learned(tmp_path, Servo(viscous=1.0, coulomb=0.4, quadratic=4.0))
    assert [one.name for one in found.candidates] == ["nominal", "physical", "learned"]
    assert errors[2] < 0.8 * errors[1] < errors[0]
    last = found.candidates[2]
    assert WEIGHTS in last.parts
    assert isinstance(last.engine, Mujoco)
    assert isinstance(last.engine.motor, Network)
    assert last.engine.motor.weights == Path("parts") / WEIGHTS
    assert any("energy: no round" in note for note in found.notes)


def test_a_network_that_gives_energy_is_not_shipped(tmp_path: Path) -> None:
    found, _ = learned(tmp_path, Pushing(4.0))
    assert [one.name for one in found.candidates] == ["nominal", "physical"]
    assert any("give energy; the worst" in note for note in found.notes)


def test_a_network_leaves_the_settings_of_the_motor_under_it_to_the_belief(tmp_path: Path) -> None:
    from simops.core.params import Params
    from simops.learn.motor import fit_network
    from tests.sim.test_network import spring

    file = tmp_path / "motor.safetensors"
    file.write_bytes(fit_network([spring()], Teach(hidden=(8,), members=1, steps=2)))
    motor = Network(weights=file, under=Servo(coulomb=1.0), bound_nm=1e-9)
    assert "motor_coulomb" in {p.name for p in motor.params}
    memory = motor.tune(motor.start(2, 3), Params(("motor_coulomb",), np.array([[2.0], [5.0]])))
    rest, moving = np.zeros((2, 3)), np.ones((2, 3))
    said, _ = motor.torque(rest, rest, moving, memory, dt_s=0.005)
    np.testing.assert_allclose(said, [[-2.0] * 3, [-5.0] * 3], atol=1e-6)


def test_a_controller_whose_effort_was_not_recorded_is_refused(tmp_path: Path) -> None:
    one = rig(tmp_path)
    material = Material(
        task=one.task(), rig=one, engine=Mujoco(threads=1, motor=Servo(kp=5.0)), recordings=tuple(recorded(one, runs=1))
    )
    with pytest.raises(DataError, match="effort was not recorded"):
        LEARNER.learn(material, unwatched)
    with pytest.raises(DataError, match="no motor"):
        LEARNER.learn(replace(material, engine=Mujoco(threads=1)), unwatched)
