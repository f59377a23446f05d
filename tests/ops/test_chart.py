"""The numbers of a chart are right, and the chart is a picture."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from simops.ops.build import load_pass
from simops.ops.chart import binned, chart
from simops.ops.factory import run
from tests.ops.made import project, unwatched


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Both roots of (p - s/n)² = z² p (1 - p) / n, which is what the interval means."""
    z2, rate = 1.96**2, successes / n
    a, b, c = 1 + z2 / n, -(2 * rate + z2 / n), rate**2
    root = math.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


@pytest.mark.parametrize(
    ("successes", "low", "high"),
    [(0, 0.0, 0.27754), (5, 0.23659, 0.76341), (9, 0.59585, 0.98212), (10, 0.72246, 1.0)],  # by hand, of ten
)
def test_intervals_are_wilsons(successes: int, low: float, high: float) -> None:
    found = binned(np.arange(10.0), np.arange(10) < successes, bins=1)
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=1e-5)
    assert (found.rate[0], found.centre[0]) == (successes / 10, 4.5)


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), min_size=1, max_size=40), st.integers(1, 12))
def test_bins_hold_every_episode_once_in_order(rows: list[tuple[float, bool]], bins: int) -> None:
    values, succeeded = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = binned(values, succeeded, bins=bins)
    assert len(found.rate) == min(bins, len(rows))
    assert np.all(np.diff(found.centre) >= 0)
    sizes = [len(part) for part in np.array_split(np.arange(len(rows)), bins) if len(part)]
    assert float(np.dot(sizes, found.rate)) == pytest.approx(succeeded.sum())
    want = [wilson(round(rate * n), n) for rate, n in zip(found.rate, sizes, strict=True)]
    np.testing.assert_allclose(np.stack([found.low, found.high], axis=1), want, atol=1e-9)


def test_bins_follow_the_value_not_the_episode() -> None:
    values = np.array([3.0, 0.0, 2.0, 1.0])
    found = binned(values, values > 1.5, bins=2)
    assert (found.centre.tolist(), found.rate.tolist()) == ([0.5, 2.5], [0.0, 1.0])


@pytest.mark.parametrize("changes", [(), ("rollout.parallel_envs=1", "rollout.episodes_per_env=1")])
def test_a_chart_is_a_picture(tmp_path: Path, changes: tuple[str, ...]) -> None:
    order = load_pass(project(tmp_path / "project"), out=tmp_path / "out", overrides=changes)
    run(order, unwatched)
    out = tmp_path / "chart.png"
    assert chart(order.out, out) == out
    with Image.open(out) as picture:
        picture.load()
        assert picture.format == "PNG"
        colours = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert picture.width > picture.height > 200
    assert (colours == (42, 127, 98)).all(axis=1).sum() > 100  # something was drawn in the colour of the data
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
