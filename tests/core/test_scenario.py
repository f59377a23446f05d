"""A scenario is what its hash says, survives its text, and is refused where it is none of the task's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from simops.core.errors import DataError, SignalError
from simops.core.scenario import Dropout, Latency, Payload, Push, Scenario, called, check, parse, points, text
from simops.tasks.pendulum.task import pendulum
from tests.strategies import scenarios

ONE = Scenario(
    name="one",
    category="disturbance",
    task="pendulum",
    params={"bob_mass": 1.1, "hinge_damping": 0.02},
    initial={"angle": (0.5,)},
    disturbances=(Push("bob", (1.0, 0.0, 0.0), at_s=1.0), Latency(2), Dropout("rate"), Payload("bob", 0.1)),
    seed=7,
)


@given(scenarios())
def test_text_comes_back_equal_and_with_the_same_hash(scenario: Scenario) -> None:
    again = parse(text(scenario))
    assert again == scenario
    assert again.hash == scenario.hash
    assert text(again) == text(scenario)


@given(scenarios(), scenarios())
def test_the_hash_is_over_what_happens_and_nothing_else(one: Scenario, other: Scenario) -> None:
    assert called(one, name="else", category="regression").hash == one.hash
    unnamed = [{k: v for k, v in each.body().items() if k not in {"name", "category"}} for each in (one, other)]
    assert (one.hash == other.hash) == (unnamed[0] == unnamed[1])


@pytest.mark.parametrize(
    "change",
    [
        {"task": "other"},
        {"seed": 8},
        {"params": {"bob_mass": 1.1}},
        {"params": {"bob_mass": 1.1, "hinge_damping": math.nextafter(0.02, 1.0)}},
        {"initial": {}},
        {"disturbances": ONE.disturbances[:3]},
        {"disturbances": (replace(ONE.disturbances[0], at_s=1.1), *ONE.disturbances[1:])},
    ],
    ids=str,
)
def test_whatever_changes_what_happens_changes_the_hash(change: dict[str, Any]) -> None:
    assert replace(ONE, **change).hash != ONE.hash


def test_a_number_has_one_way_to_be_written() -> None:
    one = replace(ONE, params={"b": 0, "a": 1}, initial={"angle": (0,)}, disturbances=(Payload("bob", 1),))
    other = replace(ONE, params={"a": 1.0, "b": -0.0}, initial={"angle": (-0.0,)}, disturbances=(Payload("bob", 1.0),))
    assert one.hash == other.hash


def test_the_hash_stands() -> None:
    assert ONE.hash == "1b695a657539352babe7ccf3cd611e772b0ee4b75c345c9cdb6f2a9155f8f543"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: replace(ONE, seed=-1), "-1 is no seed"),
        (lambda: replace(ONE, category="nominl"), "no category is called 'nominl'\n  try: 'nominal'"),
        (lambda: replace(ONE, params={"bob_mass": math.nan}), "bob_mass is not a finite number"),
        (lambda: replace(ONE, initial={"angle": (math.inf,)}), "angle is not a finite number"),
        (lambda: replace(ONE, disturbances=(Payload("bob", math.nan),)), "mass_kg is not a finite number"),
        (lambda: replace(ONE, disturbances=(Push("bob", (math.inf, 0.0, 0.0)),)), "force_n is not a finite number"),
        (lambda: replace(ONE, disturbances=(Push("bob", (1.0, 0.0)),)), "a push has no three components"),
        (lambda: replace(ONE, disturbances=(Latency(0),)), "a latency is of 0 steps"),
        (lambda: replace(ONE, disturbances=(Latency(1, at_s=-1.0),)), "a latency lasts 0.5 s from -1.0 s"),
        (lambda: replace(ONE, disturbances=(Dropout("rate", for_s=0.0),)), "a dropout lasts 0.0 s"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], Scenario], words: str) -> None:
    with pytest.raises(SignalError) as caught:
        _ = make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "velocity"}, "scenario one is of velocity, not of pendulum"),
        ({"params": {"bob_mas": 1.0}}, "pendulum has no param 'bob_mas'\n  at: scenario one\n  try: 'bob_mass'"),
        ({"params": {"bob_mass": -1.0}}, "CFG-005 bob_mass is -1, outside [0.001, inf]"),
        ({"initial": {"angel": (1.0,)}}, "pendulum has no state or goal 'angel'"),
        ({"initial": {"angle": (1.0, 2.0)}}, "angle has 1 elements, not 2"),
        ({"disturbances": (Dropout("rat"),)}, "pendulum has no state or goal 'rat'\n  at: scenario one\n  try: 'rate'"),
    ],
    ids=str,
)
def test_what_is_none_of_the_task_is_refused(change: dict[str, Any], words: str) -> None:
    check(ONE, pendulum())
    with pytest.raises(SignalError) as caught:
        check(replace(ONE, **change), pendulum())
    assert words in str(caught.value)


def test_points_fill_in_what_is_nominal() -> None:
    found = points([ONE, replace(ONE, params={})], pendulum())
    assert found.names == ("bob_mass", "hinge_damping", "start_spread_rad")
    np.testing.assert_array_equal(found.values, [[1.1, 0.02, 0.4], [1.0, 0.05, 0.4]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "DAT-012 a scenario of format 2 is not known here, only 1\n  at: it\n  try: a newer simops"),
        ({"format": None}, "DAT-012 a scenario of format None is not known here"),
        ({"parms": {}}, "a scenario has no 'parms'\n  at: it\n  try: 'params'"),
        ({"params": 3}, "this is no scenario"),
        ({"initial": {"angle": 3}}, "this is no scenario"),
        ({"disturbances": [{"kind": "puch"}]}, "no disturbance is called 'puch'\n  at: it\n  try: 'push'"),
        ({"disturbances": [{"kind": "push", "bdy": "x"}]}, "a push has no 'bdy'\n  at: it\n  try: 'body'"),
        ({"disturbances": [{"kind": "push"}]}, "this is no scenario"),
        ({"disturbances": [{"kind": "latency", "steps": "3"}]}, "this is no scenario"),
    ],
    ids=str,
)
def test_a_text_that_is_not_ours_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        _ = parse(json.dumps({**ONE.body(), **change}), where="it")
    assert words in str(caught.value)


@pytest.mark.parametrize("source", ["", "[1]", "{", "3"])
def test_what_is_no_object_is_refused(source: str) -> None:
    with pytest.raises(DataError):
        _ = parse(source)
