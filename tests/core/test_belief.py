"""Beliefs: draws are inside, densities are densities, text is lossless, and params do not disturb each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core import chance
from simops.core.belief import Belief, Box, Gaussian, Joint, Particles, parse, text
from simops.core.errors import SignalError
from simops.core.params import Change, Param, Params
from tests import strategies as some

SEEDS = chance.seeds(0, np.arange(4000))
A, B, C = (Param(name, 1.0) for name in "abc")


@given(some.beliefs())
def test_draws_are_physical_and_have_a_density(belief: Belief) -> None:
    points = belief.sample(SEEDS[:200])
    assert points.names == tuple(p.name for p in belief.params)
    for param in belief.params:
        assert np.all((points[param.name] >= param.low) & (points[param.name] <= param.high))
    assert np.all(np.isfinite(belief.log_density(points)))
    assert np.mean(belief.inside(points)) > 0.5


@given(some.boxes())
def test_a_box_vouches_for_all_of_its_draws_and_nothing_beyond(box: Box) -> None:
    points = box.sample(SEEDS[:200])
    assert box.inside(points).all()
    beyond = Params(points.names, points.values.copy())
    beyond.values[:, 0] = box.high[0] + 1.0
    assert not box.inside(beyond).any()
    assert np.all(box.log_density(beyond) == -np.inf)


@given(some.beliefs(), st.permutations(range(12)))
def test_a_draw_does_not_know_its_neighbours(belief: Belief, order: list[int]) -> None:
    whole = belief.sample(SEEDS[:12]).values
    assert belief.sample(SEEDS[order]).values.tobytes() == whole[order].tobytes()
    assert belief.sample(SEEDS[3:4]).values.tobytes() == whole[3:4].tobytes()


@given(some.beliefs())
def test_text_reads_back_equal(belief: Belief) -> None:
    back = parse(text(belief))
    assert back == belief
    assert back.sample(SEEDS[:8]).values.tobytes() == belief.sample(SEEDS[:8]).values.tobytes()


@given(some.boxes("old"), some.params("fresh"))
def test_one_more_param_changes_no_other_draw(box: Box, fresh: Param) -> None:
    more = Box((fresh, *box.params), (fresh.nominal, *box.low), (fresh.nominal, *box.high))
    before, after = box.sample(SEEDS[:50]), more.sample(SEEDS[:50])
    for param in box.params:
        np.testing.assert_array_equal(after[param.name], before[param.name])
    joint = Joint((more, Gaussian((A,), (1.0,), ((1.0,),))))
    np.testing.assert_array_equal(joint.sample(SEEDS[:50]).values[:, 1:-1], before.values)


def grid(low: float, high: float, per_axis: int) -> tuple[Params, float]:
    """Cell centres of a square around the bulk of a two-dimensional belief, and a cell's area."""
    edges = np.linspace(low, high, per_axis + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    points = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    return Params(("a", "b"), points), float((edges[1] - edges[0]) ** 2)


@pytest.mark.parametrize(
    "belief",
    [
        Box((A, B), (-1.0, 0.0), (2.0, 3.0)),
        Gaussian((A, B), (1.0, 1.0), ((1.0, 0.6), (0.6, 0.9))),
        Particles((A, B), ((0.0, 0.0), (2.0, 1.0), (1.0, 3.0)), (1.0, 2.0, 0.5), (0.4, 0.7)),
        Joint((Box((A,), (-1.0,), (2.0,)), Gaussian((B,), (1.0,), ((0.5,),)))),
    ],
    ids=lambda belief: type(belief).__name__,
)
def test_densities_integrate_to_one_and_agree_with_the_draws(belief: Belief) -> None:
    points, area = grid(-6.0, 8.0, 280)
    density = np.exp(belief.log_density(points)) * area
    assert density.sum() == pytest.approx(1.0, abs=0.01)
    mean = density @ points.values
    spread = density @ (points.values - mean) ** 2
    draws = belief.sample(SEEDS).values
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * np.sqrt(spread.max() / len(SEEDS)))
    np.testing.assert_allclose(draws.var(axis=0), spread, rtol=0.12)


def test_a_normal_density_is_the_known_one() -> None:
    belief = Gaussian((A,), (1.0,), ((4.0,),))
    at = Params(("a",), np.array([[1.0], [3.0]]))
    expected = -0.5 * np.log(2 * np.pi * 4.0) - np.array([0.0, 0.5])
    np.testing.assert_allclose(belief.log_density(at), expected, rtol=1e-12)


def test_correlation_is_drawn() -> None:
    belief = Gaussian((A, B), (0.0, 0.0), ((1.0, -0.8), (-0.8, 1.0)))
    drawn = np.corrcoef(belief.sample(SEEDS).values.T)[0, 1]
    assert drawn == pytest.approx(-0.8, abs=0.03)


def test_particles_are_picked_by_weight() -> None:
    belief = Particles((A,), ((0.0,), (1.0,)), (1.0, 3.0))
    assert belief.sample(SEEDS)["a"].mean() == pytest.approx(0.75, abs=0.03)


def test_beliefs_side_by_side_are_independent() -> None:
    one, other = (Particles((param,), ((0.0,), (1.0,))) for param in (A, B))
    drawn = Joint((one, other)).sample(SEEDS)
    assert abs(np.corrcoef(drawn.values.T)[0, 1]) < 4.5 / np.sqrt(len(SEEDS))


def test_a_choice_is_a_whole_number_below_the_top() -> None:
    pool = Param("texture", 0, low=0, high=200, integer=True)
    drawn = Box((pool,), (0,), (5,)).sample(SEEDS)["texture"]
    assert sorted(set(drawn.tolist())) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_order_of_the_points_columns_does_not_matter() -> None:
    belief = Box((A, B), (0.0, 2.0), (1.0, 3.0))
    points = Params(("b", "a"), np.array([[2.5, 0.5], [0.5, 2.5]]))
    assert belief.inside(points).tolist() == [True, False]


def test_a_range_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(SignalError) as caught:
        Box((replace(A, low=0.0),), (-1.0,), (1.0,))
    assert str(caught.value) == "CFG-005 a in [-1.0, 1.0] is not a range inside [0.0, inf]\n  at: a"
    with pytest.raises(SignalError, match="one low and one high"):
        Box((A,), (), ())
    with pytest.raises(SignalError, match="no belief is called 'bok'\n  try: 'box'"):
        parse('{"kind": "bok"}')


def test_a_param_outside_its_bounds_is_refused() -> None:
    with pytest.raises(SignalError, match=r"mass is -1.0, outside \[0.0, inf\]"):
        Param("mass", -1.0, low=0.0, changes=(Change("mass"),))


@given(some.param_sets(least=1, most=3), st.integers(1, 4))
def test_points_gather_and_scatter(params: tuple[Param, ...], n: int) -> None:
    points = Params.nominal(params, n)
    again = Params.of([points.at(i) for i in range(n)])
    assert again.names == points.names
    np.testing.assert_array_equal(again.values, points.values)
    with pytest.raises(SignalError, match="no param"):
        points["absent"]
