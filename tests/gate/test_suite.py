"""Suites: the same wherever they are drawn, where they say they are, and strictly read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core import chance
from simops.core.belief import Belief, Box, Gaussian
from simops.core.scenario import Dropout, Latency, Payload, Push, points
from simops.core.task import Task
from simops.gate.suite import draw
from simops.spec.ranges import Range
from simops.spec.suite import Blows, Delays, Disturbed, Edge, Loads, Losses, Nominal, Shift, SuiteSpec
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.task import pick_and_place

EVERY = SuiteSpec(
    nominal=Nominal(scenarios=40),
    edge=Edge(scenarios=40),
    shift=Shift(scenarios=40),
    disturbance=Disturbed(
        scenarios=60,
        push=Blows(bodies=("bob",), force_n=Range(1.0, 5.0)),
        latency=Delays(),
        dropout=Losses(signals=("rate",)),
        payload=Loads(bodies=("bob",), mass_kg=Range(0.1, 0.2)),
    ),
)


def normal() -> Task:
    task = pendulum()
    mass, damping, spread = task.belief.params
    return replace(
        task, belief=Gaussian((mass, damping, spread), (1.0, 0.05, 0.4), ((0.01, 0, 0), (0, 1e-4, 0), (0, 0, 1e-4)))
    )


def test_the_same_seed_is_the_same_suite_and_a_longer_one_begins_alike() -> None:
    task = pendulum()
    one, again, other = (draw(task, EVERY, seed=seed) for seed in (3, 3, 4))
    assert one == again
    assert one.digest == again.digest != other.digest
    longer = draw(task, replace(EVERY, edge=Edge(scenarios=70)), seed=3)
    assert longer.of("edge")[:40] == one.of("edge")
    assert longer.of("nominal") == one.of("nominal")


def test_no_seed_is_one_of_training() -> None:
    mine = np.array([each.seed for each in draw(pendulum(), EVERY, seed=3).scenarios], np.uint64)
    assert len(np.unique(mine)) == len(mine)
    assert not np.isin(mine, chance.seeds(3, np.arange(100_000), realm="train")).any()


@pytest.mark.parametrize("task", [pendulum(), pick_and_place(), normal()], ids=["box", "pick and place", "gaussian"])
def test_scenarios_lie_where_their_kind_says(task: Task) -> None:
    plain = replace(EVERY, disturbance=Disturbed(scenarios=5))
    suite = draw(task, plain, seed=1)
    belief: Belief = task.belief
    for kind, inside in (("nominal", True), ("edge", True), ("shift", False)):
        found = belief.inside(points(suite.of(kind), task))
        if inside and isinstance(belief, Box):
            assert found.all(), kind
        if not inside:
            assert not found.any(), kind


def test_edges_lie_in_corners_and_at_margins() -> None:
    task = pendulum()
    suite = draw(task, replace(EVERY, edge=Edge(scenarios=200, corners=0.5)), seed=1)
    assert isinstance(task.belief, Box)
    at = points(suite.of("edge"), task).values[:, :2]
    low, high = np.array(task.belief.low)[:2], np.array(task.belief.high)[:2]
    away = np.minimum(at - low, high - at) / (high - low)
    corner = (away == 0).all(axis=1)
    assert 70 < corner.sum() < 130
    assert (away.min(axis=1) <= 0.05 + 1e-12).all()
    assert len({tuple(row) for row in at[corner]}) == 4


def test_every_way_to_disturb_is_drawn_within_its_range() -> None:
    found = [each.disturbances[0] for each in draw(pendulum(), EVERY, seed=2).of("disturbance")]
    assert {type(one) for one in found} == {Push, Latency, Dropout, Payload}
    for one in found:
        if isinstance(one, Push):
            assert 1.0 <= float(np.linalg.norm(one.force_n)) <= 5.0
        elif isinstance(one, Payload):
            assert 0.1 <= one.mass_kg <= 0.2
        elif isinstance(one, Latency):
            assert one.steps in {1, 2}
    [plain] = draw(pendulum(), SuiteSpec(disturbance=Disturbed(scenarios=1)), seed=2).of("disturbance")
    assert isinstance(plain.disturbances[0], Latency)
