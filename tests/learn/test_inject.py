"""Injected worlds: as often as asked, as they are, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core import chance
from simops.core.task import Draw
from simops.learn.inject import World, beset, picked
from tests.learn.small import COURSE

WORLDS = (World(1.0, {"bob_mass": 1.19}, {"angle": (2.0,)}), World(3.0, {"hinge_damping": 0.09}))
SEEDS = chance.seeds(0, np.arange(4000))


def test_as_often_as_asked_and_by_weight() -> None:
    which = picked(WORLDS, 0.3, SEEDS)
    assert np.mean(which >= 0) == pytest.approx(0.3, abs=0.03)
    assert np.mean(which[which >= 0] == 1) == pytest.approx(0.75, abs=0.05)


def test_an_injected_episode_is_that_world_and_all_others_are_as_ever() -> None:
    course = beset(COURSE, WORLDS, 0.3)
    which, plain = picked(WORLDS, 0.3, SEEDS), COURSE.task.belief.sample(SEEDS)
    points = course.task.belief.sample(SEEDS)
    assert np.all(points["bob_mass"][which == 0] == 1.19)
    assert np.all(points["hinge_damping"][which == 1] == 0.09)
    np.testing.assert_array_equal(points.values[which < 0], plain.values[which < 0])
    np.testing.assert_array_equal(points["hinge_damping"][which == 0], plain["hinge_damping"][which == 0])
    draw = Draw(points, SEEDS, np.zeros(len(SEEDS), np.int64))
    begun, before = course.task.initial(draw), COURSE.task.initial(draw)
    assert np.all(begun["angle"][which == 0] == 2.0)
    np.testing.assert_array_equal(begun["angle"][which != 0], before["angle"][which != 0])
    assert course.task.belief.inside(points.rows(np.flatnonzero(which < 0)[:5])).all()


def test_without_worlds_a_course_stays_what_it_is() -> None:
    assert beset(COURSE, (), 0.3) is COURSE
    assert beset(COURSE, WORLDS, 0.0) is COURSE
