"""Engines meet the known answers, and a wrong engine does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.cli import main as cli
from simops.core.plugin import Registry
from simops.core.protocols import Engine
from simops.sim.mujoco import Mujoco, Physics
from simops.sim.pendulum import Pendulum
from simops.testing.truths import Truth, truths

MOON = """
from simops.sim.pendulum import Pendulum

def Moon():
    return Pendulum(gravity_m_s2=1.6)
"""
MISSED = {
    "bullet": {"height after an elastic bounce from 1 m", "angular momentum gained in a collision"},
    "physx": {"angular momentum gained in a collision"},
    "impact": {"way until a sliding block stops"},
}
"""What an engine cannot meet, as `docs/other_engines.md` and `docs/contact.md` say; one that holds is taken out."""


@pytest.mark.parametrize("name", Registry[Engine]("engine").names())
def test_every_engine_meets_the_known_answers(name: str) -> None:
    found = truths(Registry[Engine]("engine").load(name)())
    assert {truth.name for truth in found if not truth.holds} == MISSED.get(name, set())
    assert sum(truth.value is not None for truth in found) >= 4


def test_mujoco_is_asked_everything() -> None:
    assert all(truth.value is not None for truth in truths(Mujoco()))


def broken(engine: Engine) -> set[str]:
    return {truth.name for truth in truths(engine) if not truth.holds}


def test_wrong_physics_is_seen() -> None:
    assert broken(Pendulum(gravity_m_s2=9.6)) >= {"pendulum period at 5 degrees", "pendulum period at 120 degrees"}
    creeping = {"creep on an incline of 20 degrees", "slip of a cube of 0.8 kg in a hand that holds 1.02 kg"}
    assert broken(Mujoco(physics=Physics(impratio=1.0))) == creeping
    coarse = broken(Mujoco(physics=Physics(step_s=0.01)))
    assert {"free fall in 1 s", "way until a sliding block stops"} <= coarse


def test_an_answer_that_is_no_number_does_not_hold() -> None:
    assert not Truth("a", float("nan"), 0.0, 1.0).holds
    assert Truth("a", None, 0.0, 1.0).holds
    assert Truth("a", 1.5, 1.0, 0.5).holds
    assert not Truth("a", 0.4, 1.0, 0.5).holds


def test_the_command_lists_engines_and_prints_their_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["engines"]) == 0
    assert set(capsys.readouterr().out.split()) >= {"mujoco", "pendulum"}
    assert cli.main(["engines", "check", "pendulum"]) == 0
    shown = capsys.readouterr().out
    assert "truth" in shown.splitlines()[1]
    assert "not applicable" in shown
    assert "4 of 4 hold, 14 not asked" in shown


def test_the_command_refuses_an_engine_that_is_off(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MOON)
    assert cli.main(["engines", "check", "./mine.py:Moon"]) == 2
    assert "NO" in capsys.readouterr().out
