"""Patches: what they are not about stays as it was written, and they can be taken back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.errors import DataError, SpecError
from simops.core.patch import Edit, Patch, contradictions
from simops.spec.patched import diff, overridden, patched, reverted, value

TEXT = """\
# a spec of mine
scene: {task: pendulum}     # the task

trainer:
  use: ppo
  laps: 100                 # a hundred
  actor:   {hidden: [64, 64]}
engine: mujoco              # trains
reward:
  # the motor is weak
  effort: -0.002
"""


def patch(*edits: Edit) -> Patch:
    return Patch(level="capacity", edits=edits, reason="it is too small", evidence={"trained": 0.5})


LAPS = patch(Edit("trainer.laps", "150", "100"))


def test_only_what_it_is_about_changes() -> None:
    changed = [
        line for line in diff(TEXT, patched(TEXT, [LAPS])).splitlines() if line[0] in "+-" and line[1] not in "+-"
    ]
    assert changed == ["-  laps: 100                 # a hundred", "+  laps: 150                 # a hundred"]


LOOSE = """

# over two lines
trainer: {use: ppo, laps: 100,
          actor: {hidden: [64, 64]}}

engine:     mujoco
reward:
    effort: -0.002   # four spaces


seed: 3
"""


def test_a_text_that_is_laid_out_its_own_way_stays_so_where_nothing_changes() -> None:
    text = patched(LOOSE, [patch(Edit("seed", "4", "3"))])
    assert text == LOOSE.replace("seed: 3", "seed: 4")
    text = patched(LOOSE, [patch(Edit("trainer.laps", "150", "100"))])
    assert json.loads(value(text, "trainer"))["laps"] == 150
    assert text.split("engine")[1] == LOOSE.split("engine")[1]
    assert text.startswith("\n\n# over two lines\n")
    text = patched(LOOSE, [patch(Edit("learning.floor", "0.1"))])
    assert text == LOOSE + "learning:\n  floor: 0.1\n"


def test_it_makes_what_is_not_there_and_takes_it_away_again() -> None:
    made = patch(Edit("learning.floor", "0.05"), Edit("scenarios", '[{"weight": 1.0, "params": {"bob_mass": 1.2}}]'))
    text = patched(TEXT, [made])
    assert text.startswith(TEXT)
    assert json.loads(value(text, "scenarios"))[0]["params"] == {"bob_mass": 1.2}
    assert reverted(text, [made]) == TEXT


@given(
    laps=st.integers(1, 9999), floor=st.floats(0.0, 1.0), hidden=st.lists(st.integers(1, 512), min_size=1, max_size=4)
)
def test_whatever_is_applied_can_be_taken_back(laps: int, floor: float, hidden: list[int]) -> None:
    one = patch(
        Edit("trainer.laps", json.dumps(laps), "100"),
        Edit("trainer.actor.hidden", json.dumps(hidden), "[64, 64]"),
        Edit("learning.floor", json.dumps(floor)),
    )
    text = patched(TEXT, [one])
    assert json.loads(value(text, "learning.floor")) == floor
    back = reverted(text, [one])
    assert [line.split() for line in back.splitlines()] == [line.split() for line in TEXT.splitlines()]


def test_one_that_was_made_for_another_spec_is_refused() -> None:
    with pytest.raises(SpecError, match="1 problem") as caught:
        patched(TEXT.replace("laps: 100", "laps: 90"), [LAPS])
    assert caught.value.problems[0].fault == "CRK-005"


def test_two_that_contradict_each_other_are_refused_by_name() -> None:
    other = patch(Edit("trainer.laps", "300", "100"))
    assert contradictions([LAPS, other])[0][0] == "trainer.laps"
    with pytest.raises(SpecError) as caught:
        patched(TEXT, [LAPS, other])
    assert caught.value.problems[0].fault == "CRK-004"
    assert LAPS.name in str(caught.value)
    assert other.name in str(caught.value)
    assert contradictions([LAPS, LAPS]) == []


def test_a_bare_plugin_gets_its_settings_and_overrides_keep_comments() -> None:
    text = overridden(TEXT, ["engine.threads=1", "reward.effort=-1"])
    assert json.loads(value(text, "engine")) == {"use": "mujoco", "threads": 1}
    assert "# the motor is weak" in text
    with pytest.raises(SpecError):
        overridden(TEXT, ["laps"])


def test_a_patch_comes_back_as_it_was_written_down() -> None:
    assert Patch.of(LAPS.body()) == LAPS
    with pytest.raises(DataError, match="format 9"):
        Patch.of({**LAPS.body(), "format": 9})
    with pytest.raises(DataError, match="no patch is at"):
        Patch(level="rewards", edits=(), reason="")  # type: ignore[arg-type]
