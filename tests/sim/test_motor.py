"""Motors inside the physics step: the plain one is the native servo, the worn one has its limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import EngineError, SceneError
from simops.core.params import Change, Params
from simops.core.signal import Array, Signal
from simops.core.task import Joint
from simops.sim.motor import Dc, Pd
from simops.sim.mujoco import Mujoco
from simops.sim.servo import Servo
from tests.sim.rig import arm, param, run, task, watched, written

STEPS = 100
TARGETS = np.where(np.arange(STEPS) < 50, 0.6, -0.4).astype(np.float32).reshape(STEPS, 1, 1)
NATIVE = Pd(kp_nm_rad=50.0, kd_nms_rad=2.0, limit_nm=8.0)


@pytest.mark.parametrize(("integrator", "tolerance"), [("Euler", 1e-12), ("implicitfast", 0.02)])
def test_an_ideal_motor_is_the_native_servo(integrator: str, tolerance: float, tmp_path: Path) -> None:
    made = task(arm(tmp_path, integrator=integrator, damping="0"))
    native = run(made, TARGETS)
    by_substeps = run(made, TARGETS, engine=Mujoco(threads=1, motor=NATIVE))
    np.testing.assert_allclose(by_substeps["angle"], native["angle"], atol=tolerance)
    if integrator == "Euler":
        np.testing.assert_allclose(by_substeps["torque"], native["torque"], atol=1e-9)
    assert np.ptp(native["angle"]) > 0.8
    assert np.abs(native["torque"]).max() == 8.0


def test_torque_falls_with_speed(tmp_path: Path) -> None:
    motor = Dc(kp_nm_rad=200.0, kd_nms_rad=0.0, stall_nm=6.0, no_load_rad_s=8.0)
    made = task(arm(tmp_path, limit="100", damping="0"), control_dt_s=0.002)
    seen = run(made, np.full((300, 1, 1), 3.0, np.float32), engine=Mujoco(threads=1, motor=motor))
    torque, rate = seen["torque"][1:], seen["rate"][:-1]  # a step's torque is that of the state before it
    speeding = (torque > 0) & (rate > 0)
    assert speeding.sum() > 50
    assert np.all(torque[speeding] <= 6.0 * (1 - rate[speeding] / 8.0) + 1e-9)
    assert seen["rate"].max() > 3.0
    assert np.abs(torque).max() <= 6.0 + 1e-9


def test_a_servo_with_a_ramp_moves_its_target_no_faster_than_that() -> None:
    motor = Servo(kp=1.0, ramp=(8.0, float("inf")), joints=("a", "b"))
    memory, here, pushed = motor.start(1, 2), np.zeros((1, 2)), list[Array]()
    for _ in range(700):
        torque, memory = motor.torque(np.ones((1, 2)), here, here, memory, dt_s=0.001)
        pushed.append(torque[0])
    place = np.array(pushed)
    assert np.all(place[:, 1] == 1.0)  # the other joint has none
    assert np.abs(np.diff(place[:, 0], 2)).max() <= 8.0 * 0.001**2 * (1 + 1e-6)
    gone = np.sqrt(1.0 / 8.0)  # half of the way is spent speeding up
    assert place[round(gone / 0.001), 0] == pytest.approx(0.5, abs=0.01)
    assert place[-1, 0] == pytest.approx(1.0, abs=2e-3)


def test_friction_may_differ_by_place_and_never_drives() -> None:
    motor = Servo(coulomb=1.0, uneven=2.0, spring=3.0, slip_speed=1e-6)
    places, still = np.array([[-2.0, -0.4, 0.0, 0.5]]), np.zeros((1, 4))
    memory = motor.start(1, 4)
    forth, back = (motor.torque(still, places, still + v, memory, dt_s=0.001).torque_nm[0] for v in (1.0, -1.0))
    np.testing.assert_allclose((back - forth) / 2, [0.0, 0.2, 1.0, 2.0])  # where it would drive there is none
    np.testing.assert_allclose((back + forth) / 2, -3.0 * places[0])
    assert {"motor_uneven", "motor_spring"} <= {p.name for p in motor.params if p.low == -np.inf}


def test_an_effort_limit_of_the_scene_holds_for_any_motor(tmp_path: Path) -> None:
    seen = run(task(arm(tmp_path, limit="1.5")), TARGETS, engine=Mujoco(threads=1, motor=Pd(kp_nm_rad=500.0)))
    assert np.abs(seen["torque"]).max() == 1.5


def test_friction_opposes_motion() -> None:
    worn = Dc(kp_nm_rad=0.0, kd_nms_rad=0.0, coulomb_nm=0.5, viscous_nms_rad=0.1, stribeck_nm=0.3)
    rates = np.array([[-3.0, -0.05, 0.0, 0.05, 3.0]])
    torque = worn.torque(np.zeros((1, 5)), np.zeros((1, 5)), rates, worn.start(1, 5), dt_s=0.001).torque_nm[0]
    np.testing.assert_allclose(torque, -torque[::-1], atol=1e-15)
    assert torque[2] == 0.0
    assert torque[0] == pytest.approx(0.5 + 0.3)
    assert torque[1] > torque[0] - 0.3


def test_a_late_motor_is_late_by_whole_physics_steps() -> None:
    prompt, late = Dc(), Dc(delay_steps=3)
    commands = np.arange(1.0, 9.0).reshape(8, 1, 1)
    here = np.zeros((1, 1))
    found: list[list[float]] = []
    for motor in (prompt, late):
        memory, torques = motor.start(1, 1), list[float]()
        for command in commands:
            torque, memory = motor.torque(command, here, here, memory, dt_s=0.001)
            torques.append(float(torque[0, 0]))
        found.append(torques)
    assert found[1] == [0.0, 0.0, 0.0, *found[0][:5]]


def test_a_motors_memory_is_one_copys_own(tmp_path: Path) -> None:
    made = task(arm(tmp_path))
    motor = Dc(kp_nm_rad=50.0, kd_nms_rad=2.0, delay_steps=7)
    engine = Mujoco(threads=1, motor=motor)
    alone = run(made, TARGETS[:20], engine=engine)
    with engine.open(made, 3) as sim:
        sim.reset(np.arange(3), Params((), np.empty((3, 0))), {})
        for target in TARGETS[:7]:
            sim.step(target.repeat(2, axis=0), np.array([0, 2]))
        sim.reset(np.array([1, 2]), Params((), np.empty((2, 0))), {})
        seen = watched(sim, TARGETS[:20].repeat(3, axis=1))
    for copy in (1, 2):
        np.testing.assert_array_equal(seen["angle"][:, copy], alone["angle"])


@pytest.mark.parametrize("change", [Change("kp", (), "scale"), Change("kd"), Change("delay")])
def test_what_a_motor_replaces_cannot_be_changed(change: Change, tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("number", 0.01, change),))
    with pytest.raises(SceneError), Mujoco(motor=NATIVE).open(made, 1):
        pass


def test_a_tendon_has_no_motor(tmp_path: Path) -> None:
    text = """
    <mujoco>
      <worldbody>
        <body><joint name="a"/><geom size="0.1"/><body pos="1 0 0"><joint name="b"/><geom size="0.1"/></body></body>
      </worldbody>
      <tendon><fixed name="both"><joint joint="a" coef="1"/><joint joint="b" coef="1"/></fixed></tendon>
      <actuator><position name="pull" tendon="both" kp="10"/></actuator>
    </mujoco>
    """
    state = {"angle": (0, Joint(("a",)))}
    made = task(written(tmp_path, text), state, action=Signal("pull", (1,), labels=("pull",)))
    with Mujoco().open(made, 1) as sim:
        assert sim.n == 1
    with pytest.raises(EngineError, match="actuator 'pull' drives no single joint"), Mujoco(motor=Pd()).open(made, 1):
        pass
