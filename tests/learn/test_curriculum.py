"""A curriculum moves with success, and a drawn-in belief stays inside the whole one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.belief import Box
from simops.core.params import Param, Params
from simops.learn.curriculum import Curriculum, Progress, Shrunk

WHOLE = Box(
    (Param("mass", 1.0, "kg", 0.0), Param("friction", 0.5), Param("texture", 0, low=0, high=10, integer=True)),
    (0.5, 0.5, 0.0),
    (2.5, 1.5, 10.0),
)
SEEDS = np.arange(200, dtype=np.uint64)


@given(st.floats(0.0, 1.0))
@settings(max_examples=30, deadline=None)
def test_a_draw_goes_its_share_of_the_way_from_the_nominal_point(level: float) -> None:
    whole, drawn = WHOLE.sample(SEEDS), Shrunk(WHOLE, level).sample(SEEDS)
    np.testing.assert_allclose(drawn["mass"] - 1.0, level * (whole["mass"] - 1.0), atol=1e-12)
    np.testing.assert_array_equal(drawn["texture"], whole["texture"])  # half a choice is none
    assert Shrunk(WHOLE, level).params == WHOLE.params


@pytest.mark.parametrize("level", [0.0, 0.25, 1.0])
def test_what_is_drawn_is_inside_and_what_the_whole_alone_can_draw_is_not(level: float) -> None:
    shrunk = Shrunk(WHOLE, level)
    assert shrunk.inside(shrunk.sample(SEEDS)).all() or level == 0.25  # rounding at the very edge
    far = Params.of([{"mass": 2.4, "friction": 1.4, "texture": 1.0}])
    assert bool(shrunk.inside(far)[0]) == (level == 1.0)
    assert np.isfinite(shrunk.log_density(far)[0]) == (level == 1.0)


def test_a_density_sums_to_one() -> None:
    belief = Shrunk(Box((Param("mass", 1.0, "kg", 0.0),), (0.5,), (2.5,)), 0.25)
    at = np.linspace(0.0, 3.0, 30_001)
    density = np.exp(belief.log_density(Params(("mass",), at[:, None])))
    assert density.sum() * (at[1] - at[0]) == pytest.approx(1.0, abs=1e-3)


def test_the_level_grows_with_success_shrinks_without_and_stays_between() -> None:
    course, progress = Curriculum(start=0.5, step=0.25, episodes=10), Progress(0.5)
    assert not progress.move(course, 5, 5)
    assert progress.move(course, 5, 5)
    assert progress.level == 0.75
    assert not progress.move(course, 10, 6)  # neither good nor bad
    assert progress.move(course, 10, 10)
    assert not progress.move(course, 10, 10)
    assert progress.level == 1.0
    assert progress.move(course, 10, 0)
    assert progress.move(course, 10, 0)
    assert not progress.move(course, 10, 0)
    assert progress.level == 0.5
