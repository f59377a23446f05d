"""When a crank is over: by four criteria together, or because nothing changes any more."""

from __future__ import annotations

from typing import Any

from simops.ops.hardening import criteria, ended, gained
from simops.ops.turn import Ending, Turn
from simops.spec.crank import Hardened

ASKED = Hardened(success=0.9, gain=0.05)


def turn(number: int, ending: Ending, good: int, *, beside: int | None = None, modes: tuple[str, ...] = ()) -> Turn:
    """A turn with so many of twenty trials good, the champion's beside it."""

    def said(count: int) -> dict[str, Any]:
        return {"outcomes": ["success"] * count + ["timeout"] * (20 - count), "numbers": list(range(20))}

    found = {"clusters": [{"kind": "dynamic", "left": {name: 1.0}} for name in modes]}
    return Turn(
        number=number, steps=(), ending=ending, why="", spec="", validated={"status": "pass", "success": 0.96},
        tried=said(good), beside=None if beside is None else said(beside), diagnosed=found,
    )  # fmt: skip


def met(*turns: Turn) -> dict[str, bool]:
    return {one.name: one.met for one in criteria(turns, ASKED)}


def test_all_four_together_end_it() -> None:
    turns = (turn(0, "promoted", 8, modes=("mass",)), turn(1, "promoted", 19), turn(2, "kept", 19, beside=19))
    assert all(met(*turns).values())
    assert ended(turns, ASKED).startswith("hardened")
    assert gained(turns) == 0.0


def test_any_one_of_them_is_not_enough() -> None:
    first, second = turn(0, "promoted", 8, modes=("mass",)), turn(1, "promoted", 19)
    assert not met(first, second)["little left to gain"]
    assert not met(first, second, turn(2, "kept", 19, beside=19, modes=("delay",)))["no new failure mode"]
    assert not met(first, second, turn(2, "kept", 19, beside=15))["pass rate"]
    assert not met(first, second, turn(2, "kept", 19, beside=15))["gap within bounds"]
    assert ended((first, second), ASKED) == ""


def test_two_turns_that_changed_nothing_are_the_last() -> None:
    turns = (turn(0, "promoted", 8), turn(1, "kept", 8, beside=8), turn(2, "kept", 8, beside=8))
    assert ended(turns[:2], ASKED) == ""
    assert ended(turns, ASKED).startswith("diminishing returns")
