"""What a geared servo does: it sticks, gives what its supply can, and friction never drives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core import servo
from simops.core.errors import SignalError

NUMBERS = {name: np.array(1.0) for name in ("coulomb", "stribeck", "drive_load", "outer_load", "uneven")}
SPEED = st.floats(-20, 20)


@given(velocity=SPEED, push=st.floats(-50, 50), resisting=st.floats(0, 50), braking=st.floats(0, 1e4))
def test_friction_never_turns_a_motion_nor_adds_to_it(
    velocity: float, push: float, resisting: float, braking: float
) -> None:
    free = velocity + 0.01 * push
    [after] = servo.slid(
        np.array([velocity]), np.array([push]), np.array([resisting]), braking=braking, inertia=1.0, dt_s=0.01
    ).tolist()
    assert after * free >= 0
    assert abs(after) <= abs(free)


def test_what_rests_stays_until_the_push_is_more_than_what_resists() -> None:
    still, resisting = np.zeros(3), np.full(3, 5.0)
    after = servo.slid(still, np.array([-4.9, 5.0, 5.1]), resisting, braking=1.0, inertia=2.0, dt_s=0.01)
    assert after[:2].tolist() == [0.0, 0.0]
    assert after[2] > 0


@given(position=st.floats(-3, 3), velocity=SPEED, drive=st.floats(-9, 9), load=st.floats(-9, 9))
def test_resistance_is_never_negative(position: float, velocity: float, drive: float, load: float) -> None:
    found = servo.resistance(NUMBERS, np.array(drive), np.array(load), np.array(position), np.array(velocity))
    assert found >= 0


def test_a_sagging_supply_gives_less_the_more_is_asked() -> None:
    numbers = {"stiffness": np.array(10.0), "limit": np.array(4.0), "sag": np.array(0.5), "deadband": np.array(0.1)}
    error = np.array([0.05, 0.2, 0.5, 5.0])
    given_ = servo.driven(numbers, error, np.zeros(4), np.zeros(4))
    np.testing.assert_allclose(given_, [0.0, 1.0 / (1 + 0.5 / 16), 4.0 / 1.5, 4.0 / 1.5])


def test_numbers_left_out_do_nothing() -> None:
    rest = np.zeros(2)
    assert servo.driven({}, np.ones(2), rest, rest).tolist() == [0.0, 0.0]
    assert servo.resistance({}, rest, rest, rest, rest).tolist() == [0.0, 0.0]


@given(target=st.floats(-2, 2), ramp=st.floats(1, 200), rate=st.floats(-3, 3))
def test_a_ramp_gets_there_as_fast_as_it_may_and_stops(target: float, ramp: float, rate: float) -> None:
    dt_s, place, speed = 0.002, np.zeros(1), np.array([rate])
    numbers, goal = {"ramp": np.array(ramp)}, np.array([target])
    turned = abs(rate) / ramp + 2 * np.sqrt((abs(target) + rate**2 / ramp) / ramp)  # turn about, speed up, slow down
    for _ in range(int(1.1 * turned / dt_s) + 20):
        before = speed
        place, speed = servo.ramped(numbers, place, speed, goal, dt_s)
        assert abs(speed - before) <= ramp * dt_s * (1 + 1e-9)
    assert place == pytest.approx(target, abs=2 * ramp * dt_s**2)
    assert abs(speed) <= 2 * ramp * dt_s


def test_without_a_ramp_the_target_is_where_it_was_asked_to_be() -> None:
    place, rate = servo.ramped({}, np.zeros(1), np.zeros(1), np.array([0.3]), 0.01)
    assert (place.item(), rate.item()) == (0.3, pytest.approx(30.0))


def test_the_law_damps_what_is_more_than_the_targets_own_rate() -> None:
    numbers = {"stiffness": np.array(10.0), "damping": np.array(2.0)}
    rest, moving = np.zeros(1), np.ones(1)
    assert servo.driven(numbers, rest, rest, moving).tolist() == [-2.0]
    assert servo.driven(numbers, rest, rest, moving, rate=moving).tolist() == [0.0]


@pytest.mark.parametrize(("name", "value", "words"), [("coulumb", 1.0, "coulomb"), ("coulomb", -1.0, "outside")])
def test_what_no_servo_has_is_refused(name: str, value: float, words: str) -> None:
    with pytest.raises(SignalError, match=words):
        servo.checked({name: np.array(value)}, "arm")
