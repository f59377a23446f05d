"""Wear: each effect does what it is called after, by its own number, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from simops.core import chance
from simops.core.params import Params
from simops.core.signal import Array
from simops.sim.pendulum import Pendulum, PendulumSim
from simops.sim.worn import Drive, Gauges, Wear
from simops.tasks.pendulum.task import pendulum

TASK = pendulum()
TICKS = 4
SEEDS = chance.seeds(0, np.arange(3))


@contextmanager
def drive(**wear: Any) -> Generator[tuple[Drive, PendulumSim]]:  # noqa: ANN401 (fields of Wear)
    fine = replace(TASK, control_dt_s=TASK.control_dt_s / TICKS)
    with Pendulum(step_s=0.005).open(fine, len(SEEDS)) as sim:
        sim.reset(np.arange(3), Params.nominal(TASK.belief.params, 3), {})
        found = Drive(Wear(stall=4.0, **wear), TASK, sim, TICKS)
        found.begin(SEEDS, np.zeros((3, 1)))
        yield found, sim


def torques(commands: list[float], **wear: Any) -> list[float]:  # noqa: ANN401 (fields of Wear)
    """What reaches the motor of the first, at the end of each control period."""
    seen: list[float] = []
    with drive(**wear) as (one, sim):
        for command in commands:
            one.step(np.full((3, 1), command), np.arange(3))
            seen.append(float(sim.executed[0, 0]))
    return seen


def test_a_new_one_does_as_it_is_told() -> None:
    assert torques([1.0, -2.0, 3.0]) == [1.0, -2.0, 3.0]


def test_what_is_asked_arrives_late() -> None:
    assert torques([1.0, 2.0, 3.0, 4.0], delay_s=0.04) == [0.0, 0.0, 1.0, 2.0]
    assert torques([1.0, 2.0, 3.0], delay_s=0.01) == [1.0, 2.0, 3.0]  # within the period


def test_jitter_is_another_delay_each_time_and_the_same_again() -> None:
    commands = [float(i % 5) for i in range(40)]
    plain, shaken = torques(commands, delay_s=0.02), torques(commands, delay_s=0.02, jitter_s=0.04)
    assert plain != shaken
    assert shaken == torques(commands, delay_s=0.02, jitter_s=0.04)


def test_a_lost_command_leaves_the_one_before() -> None:
    assert torques([1.0, 2.0, 3.0], lost=1.0) == [0.0, 0.0, 0.0]
    some = torques([float(i) / 50 for i in range(100)], lost=0.3)
    assert sum(a == b for a, b in pairwise(some)) == pytest.approx(30, abs=14)


def test_play_is_taken_up_before_anything_moves() -> None:
    assert torques([2.0, 1.8, 1.0], backlash=0.5) == pytest.approx([1.75, 1.75, 1.25])


def test_what_sticks_does_not_follow_small_changes() -> None:
    assert torques([1.0, 1.05, 1.2], stick=0.1) == pytest.approx([1.0, 1.0, 1.2])


def test_weakness_takes_its_share() -> None:
    assert torques([2.0], weakness=0.25) == pytest.approx([1.5])


def test_torque_falls_with_speed_in_the_direction_of_motion_alone() -> None:
    with drive(velocity="rate", no_load_rad_s=10.0) as (one, sim):
        sim.reset(np.arange(3), Params.nominal(TASK.belief.params, 3), {"angle": np.zeros(3), "rate": np.full(3, 5.0)})
        one.step(np.full((3, 1), 4.0), np.arange(3))
        assert sim.executed[0, 0] == pytest.approx(2.0, abs=0.4)
        one.step(np.full((3, 1), -4.0), np.arange(3))
        assert sim.executed[0, 0] == pytest.approx(-4.0)


def test_a_servo_at_its_limit_gives_no_more_torque_than_it_has() -> None:
    with drive(velocity="rate", position="angle", kp=10.0, kd=1.0) as (one, sim):
        sim.reset(np.arange(3), Params.nominal(TASK.belief.params, 3), {"angle": np.full(3, 0.5), "rate": np.zeros(3)})
        one.step(np.full((3, 1), 2.0), np.arange(3))
        target, read = float(sim.executed[0, 0]), sim.read()
        torque = 10.0 * (target - float(read["angle"][0])) - float(read["rate"][0])
        assert torque == pytest.approx(4.0, abs=0.8)


def test_readings_are_noisy_biased_and_now_and_then_old() -> None:
    truth: dict[str, Array] = {"angle": np.zeros(4000), "rate": np.ones(4000)}
    seeds = chance.seeds(1, np.arange(4000))
    gauges = Gauges({"angle": 0.01}, {"rate": 0.5}, 0.2, seed=3)
    gauges.begin(seeds)
    first = gauges.read(truth)
    assert first["angle"].std() == pytest.approx(0.01, rel=0.1)
    assert len(set(first["rate"].tolist())) == 1
    assert first["rate"][0] != 1.0
    second = gauges.read({**truth, "rate": np.full(4000, 2.0)})
    assert np.mean(second["rate"] == first["rate"]) == pytest.approx(0.2, abs=0.03)
    again = Gauges({"angle": 0.01}, {"rate": 0.5}, 0.2, seed=3)
    again.begin(seeds[:10])
    np.testing.assert_array_equal(again.read({k: v[:10] for k, v in truth.items()})["angle"], first["angle"][:10])
