"""Suites at rest: the same scenarios again, or every problem with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.core import scenario
from simops.core.errors import DataError, SpecError
from simops.core.trajectory import Outcome
from simops.gate.suite import Suite, draw
from simops.ops import suite_text
from simops.spec.suite import Disturbed, Edge, Nominal, Shift, SuiteSpec
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.task import pick_and_place

EVERY = SuiteSpec(
    nominal=Nominal(scenarios=8),
    edge=Edge(scenarios=8),
    shift=Shift(scenarios=8),
    disturbance=Disturbed(scenarios=8),
)


def test_text_reads_back_and_whatever_is_wrong_is_said_with_its_line() -> None:
    task = pendulum()
    suite = draw(task, EVERY, seed=5)
    text = suite_text.text(suite)
    assert suite_text.read(text, task) == suite
    with pytest.raises(SpecError, match=r"line 2.*no param 'bob_mas'.*'bob_mass'"):
        suite_text.read(text.replace('"bob_mass"', '"bob_mas"', 1), task)
    with pytest.raises(DataError, match=r"DAT-012.*format 2"):
        suite_text.read(text.replace('"format": 1', '"format": 2', 1), task)
    with pytest.raises(SpecError, match=r"line 3.*format 9"):
        suite_text.read(text.replace('"format": 1', '"format": 9').replace('"format": 9', '"format": 1', 2), task)
    with pytest.raises(SpecError, match=r"'pendulum'.*'pick_and_place'"):
        suite_text.read(text, pick_and_place())
    with pytest.raises(DataError, match="twice"):
        Suite("pendulum", (*suite.scenarios, suite.scenarios[0]))


def test_scenarios_are_gathered_from_a_folder_a_file_or_a_suite(tmp_path: Path) -> None:
    task = pendulum()
    suite = draw(task, EVERY, seed=5)
    folder = tmp_path / "failures"
    folder.mkdir()
    for one in suite.scenarios[:3]:
        (folder / f"{one.hash[:16]}.json").write_text(scenario.text(one))
    assert {each.hash for each in suite_text.gather(folder, task)} == {each.hash for each in suite.scenarios[:3]}
    assert suite_text.gather(folder / f"{suite.scenarios[0].hash[:16]}.json", task) == suite.scenarios[:1]
    (tmp_path / "suite.json").write_text(suite_text.text(suite))
    assert suite_text.gather(tmp_path / "suite.json", task) == suite.scenarios
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no scenario in this folder"):
        suite_text.gather(tmp_path / "empty", task)


def test_what_failed_is_remembered_once(tmp_path: Path) -> None:
    task = pendulum()
    suite = draw(task, EVERY, seed=5)
    outcomes: dict[str, Outcome] = {each.hash: "success" for each in suite.scenarios}
    outcomes[suite.scenarios[2].hash] = "failure"
    for _ in range(2):
        suite_text.remember(tmp_path / "past.json", task, suite, outcomes)
    [kept] = suite_text.read(tmp_path / "past.json", task).scenarios
    assert (kept.hash, kept.category) == (suite.scenarios[2].hash, "regression")
