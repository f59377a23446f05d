"""The audit: sound episodes of every task pass, and each kind of the impossible is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.policy import Random
from simops.core.protocols import Engine, Policy
from simops.core.rollout import rollout
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.gate.audit import Limits, audit
from simops.gate.gap import TARGETS, apart, gap
from simops.sim.inspect import Inspector
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.expert import Expert as Picker
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity
from simops.tasks.velocity.trot import Trot

WALK = replace(velocity(), horizon_s=1.0)


def kinds(task: Task, one: Trajectory) -> set[str]:
    return {found.kind for found in audit(task, one, Inspector(task).look(one), Limits())}


def changed(one: Trajectory, **columns: Array) -> Trajectory:
    return replace(one, columns={**one.columns, **columns})


@pytest.mark.parametrize(
    ("task", "policy", "engine"),
    [
        (pendulum(), Expert(), Pendulum(step_s=0.005)),
        (pendulum(), Random(), Mujoco(threads=1)),
        (pick_and_place(), Picker(), Mujoco(threads=1)),
        (WALK, Trot(), Mujoco(threads=1)),
        (WALK, Random(), Mujoco(threads=1)),
    ],
    ids=["expert", "random", "pick", "trot", "flail"],
)
def test_sound_episodes_are_believed(task: Task, policy: Policy, engine: Engine) -> None:
    for one in rollout(policy, task, engine, n=3):
        assert kinds(task, one) == set()


def test_energy_from_nowhere_and_leaps_are_found() -> None:
    task = pendulum()
    [one] = rollout(Random(), task, Pendulum(step_s=0.005))
    assert kinds(task, one) == set()
    time = np.arange(len(one) + 1) * task.control_dt_s
    spun = changed(one, angle=(8.0 * time).astype(np.float32), rate=np.full(len(time), 8.0, np.float32))
    assert "energy gain" in kinds(task, spun)  # no motor of 4 N m turns it over at a constant speed
    leap = one["angle"].copy()
    leap[200:] += 2.5
    assert "teleport" in kinds(task, changed(one, angle=leap))
    assert "speed" in kinds(task, changed(one, rate=np.full_like(one["rate"], 150.0)))


def test_a_command_that_is_no_number_is_found_however_the_episode_ended() -> None:
    task = pendulum()
    [one] = rollout(Random(), task, Pendulum(step_s=0.02))
    asked = one["action"].copy()
    asked[-2] = np.nan
    assert kinds(task, changed(one, action=asked)) == {"not a number"}


def test_bodies_in_one_another_are_found() -> None:
    task = pick_and_place()
    [one] = rollout(Picker(), task, Mujoco(threads=1))
    name = next(n for n in task.sources if "cube" in n or "object" in n)
    sunk = one[name].copy()
    sunk[:, 2] -= 0.03
    assert "penetration" in kinds(task, changed(one, **{name: sunk}))
    thrown = one[name].copy()
    thrown[10:, 0] += 1.0
    assert "teleport" in kinds(task, changed(one, **{name: thrown}))


def test_the_gap_is_nothing_between_an_engine_and_itself_and_what_was_put_between_two() -> None:
    task = pendulum()
    ones = rollout(Expert(), task, Pendulum(step_s=0.005), n=6)
    same = {f.check: f for f in gap([apart(task, "nominal", one, one) for one in ones])}
    assert same["gap of path of joints [rad]"].value == 0.0
    assert same["gap of force correlation"].value == pytest.approx(1.0)
    off = [changed(one, angle=one["angle"] + np.float32(0.03)) for one in ones]
    other = {f.check: f for f in gap([apart(task, "nominal", one, each) for one, each in zip(ones, off, strict=True)])}
    for check in ("gap of path of joints [rad]", "gap of final joint position [rad]"):
        assert other[check].value == pytest.approx(0.03, rel=1e-3)
        assert other[check].status == "fail"
    assert other["gap of timing"].value == 0.0
    lost = [replace(one, outcome="failure") for one in ones]
    worse = gap([apart(task, "nominal", one, each) for one, each in zip(ones, lost, strict=True)] * 5)
    assert worse[0].value == 1.0
    assert worse[0].status == "fail"
    assert len(TARGETS) == len(apart(task, "nominal", ones[0], ones[0]).figures)
