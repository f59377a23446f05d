"""When it is enough: a policy is hardened by four criteria together, and a crank that no longer gains ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simops.ops.turn import Turn
from simops.spec.crank import Hardened

GAP = 0.05
"""Between what the gate saw and what the trials came to."""


class Criterion(NamedTuple):
    """One of them."""

    name: str
    met: bool
    words: str


def criteria(turns: Sequence[Turn], asked: Hardened) -> tuple[Criterion, ...]:
    """What a policy is hardened by, for the one that is live."""
    live = next((one for one in reversed(turns) if one.ending == "promoted"), None)
    success = next((one.live_success for one in reversed(turns) if one.live_success is not None), None)
    passed = live is not None and live.validated is not None and live.validated["status"] == "pass"
    rate = Criterion(
        "pass rate", passed and success is not None and success >= asked.success,
        "nothing is live" if success is None else f"{success:.0%} of its trials, {asked.success:.0%} asked",
    )  # fmt: skip
    fresh = modes(turns[-1:]) - modes(turns[:-1])
    new = Criterion("no new failure mode", len(turns) > 1 and not fresh, ", ".join(sorted(fresh)) or "none")
    validated = None if live is None or live.validated is None else float(live.validated["success"])
    gap = None if validated is None or success is None else abs(validated - success)
    near = Criterion("gap within bounds", gap is not None and gap <= GAP, "unknown" if gap is None else f"{gap:.1%}")
    gain = gained(turns)
    less = Criterion(
        "little left to gain", gain is not None and gain < asked.gain, "unknown" if gain is None else f"{gain:+.1%}"
    )
    return (rate, new, near, less)


def gained(turns: Sequence[Turn]) -> float | None:
    """Success of what is live, less that of the turn before; none where either is unknown."""
    known = [one.live_success for one in turns if one.live_success is not None]
    return None if len(known) < 2 else known[-1] - known[-2]


def modes(turns: Sequence[Turn]) -> set[str]:
    """Kinds of failure that were seen, and what they take."""
    return {
        f"{one['kind']} {' '.join(sorted(one['left']))}".strip()
        for turn in turns
        if turn.diagnosed is not None
        for one in turn.diagnosed["clusters"]
    }


def ended(turns: Sequence[Turn], asked: Hardened) -> str:
    """Why a crank is over before its turns are; empty while it is not."""
    if all(one.met for one in criteria(turns, asked)):
        return "hardened: " + "; ".join(f"{one.name} ({one.words})" for one in criteria(turns, asked))
    last = turns[-2:]
    if len(turns) > 2 and not any(one.moved for one in last):
        return "diminishing returns: two turns in a row changed nothing"
    if turns[-1].ending in {"unchanged", "candidate"} and not turns[-1].moved:
        return "nothing changes any more: the next turn would be this one"
    return ""
