"""Shrinking: what is left still fails, and nothing more can be left out."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from simops.core.failure import Evidence, Failure, attribute
from simops.core.scenario import Push, Scenario
from simops.gate.cluster import clusters, left
from simops.gate.shrink import shrink

CENTRE = {"mass": 1.0, "damping": 0.1, "delay": 0.02}


def scenario(mass: float, damping: float, delay: float) -> Scenario:
    params = {"mass": mass, "damping": damping, "delay": delay}
    pushes = (Push("bob", (1.0, 0.0, 0.0)), Push("bob", (0.0, 0.0, 9.0)))
    return Scenario(name="x", category="edge", task="t", params=params, disturbances=pushes)


@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.0, 1.0), st.floats(0.0, 0.1)), min_size=1, max_size=5))
def test_what_is_left_still_fails_and_the_rest_is_gone(points: list[tuple[float, float, float]]) -> None:
    def fails(some: Sequence[Scenario]) -> list[bool]:
        return [
            one.params["mass"] > 1.3 or any(getattr(d, "force_n", (0, 0, 0))[2] > 5 for d in one.disturbances)
            for one in some
        ]

    some = [scenario(*point) for point in points]
    assert all(fails(some))
    small = shrink(fails, some, CENTRE)
    assert all(fails(small))
    for one in small:
        off = left(one, CENTRE)
        assert set(off) <= {"mass"}
        assert len(one.disturbances) + len(off) == 1
        if off:
            assert one.params["mass"] <= 1.0 + 0.5 * (max(p[0] for p in points) - 1.0) or one.params["mass"] <= 1.6


def test_alike_failures_are_one() -> None:
    def failure(mass: float, name: str) -> Failure:
        one = scenario(mass, 0.1, 0.02)
        return Failure(kind="dynamic", scenario=one, left={"mass": mass - 1.0}, alike=(name,))

    found = clusters([failure(1.4, "a"), failure(1.6, "b"), failure(0.5, "c")])
    assert [one.alike for one in found] == [("a", "b"), ("c",)]
    assert found[0].scenario.params["mass"] == 1.4


def test_causes_follow_from_replays() -> None:
    good = Evidence(trained=0.98, trials=40, real=0.4, predicted=0.95, error=0.2, error_miswired=0.19)
    assert attribute(good)[0] == "simulator"
    miswired = Evidence(trained=0.98, trials=40, real=0.0, predicted=0.95, error=1.2, error_miswired=0.2, wire="a wire")
    assert attribute(miswired)[0] == "contract"
    assert attribute(Evidence(trained=0.1, preferred=0.4, failed=9))[0] == "reward"
    assert attribute(Evidence(trained=0.1, preferred=-0.4, failed=9))[0] == "capacity"
    assert attribute(Evidence(trained=0.97, failed=9, outside=0.9, mended_by_engine=0.0))[0] == "range"
    assert attribute(Evidence(trained=0.97, failed=9, outside=0.0, mended_by_engine=0.8))[0] == "simulator"
    assert attribute(Evidence(trained=0.97, failed=0))[0] == "unknown"
