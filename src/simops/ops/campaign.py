"""A campaign: candidates of one search for a policy, which share one probability of letting a bad one through.

Whoever tries ten policies and keeps the one that passed has looked ten times. So each candidate is written into a
ledger before its first episode runs, and gets its share of alpha; shares add up to alpha however many there are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

from simops.core.errors import DataError, GateRefused
from simops.data.files import Lock, make_folder, refusal


@final
@dataclass(frozen=True)
class Share:
    """What one candidate of a campaign may spend."""

    number: int
    """Which candidate of the campaign it is, from 1."""
    alpha: float


def share(alpha: float, number: int, candidates: int) -> float:
    """The part of alpha that candidate `number` gets: of `candidates`, or of any number where that is 0."""
    return alpha / candidates if candidates else alpha / (number * (number + 1))


def enter(ledger: Path, policy: str, suite: str, *, alpha: float, candidates: int = 0) -> Share:
    """Enter a candidate, once for good; raises when the campaign is used up, or was begun otherwise.

    Args:
        ledger: The file; made if it is not there.
        policy: Digest of the candidate. It keeps its place in the campaign in whichever suite it is judged again.
        suite: Digest of the scenarios.
        alpha: Of the whole campaign.
        candidates: How many there will be at most; any number at 0.
    """
    make_folder(ledger.absolute().parent)
    guard = ledger.absolute().parent / f".{ledger.name}.lock"
    make_folder(guard)
    held = Lock(guard)
    try:
        lines = read(ledger)
        for line in lines:
            if (line["alpha"], line["candidates"]) != (alpha, candidates):
                raise DataError(
                    f"the campaign was begun with an alpha of {line['alpha']} for {line['candidates'] or 'any number'}",
                    where=str(ledger),
                    attempt="what it was begun with, or a ledger of its own",
                    fault="CFG-008",
                )
        known = [line for line in lines if line["policy"] == policy]
        same = next((line for line in known if line["suite"] == suite), None)
        if same is not None:
            return Share(int(same["number"]), share(alpha, int(same["number"]), candidates))
        number = len(lines) + 1
        if candidates and number > candidates:
            raise GateRefused(
                f"the campaign was for {candidates} candidates, and this would be number {number}",
                where=str(ledger),
                attempt="a new campaign with fresh scenarios: another seed and another ledger",
                fault="GAT-003",
            )
        _add(ledger, lines, {"policy": policy, "suite": suite, "alpha": alpha, "candidates": candidates})
        return Share(number, share(alpha, number, candidates))
    finally:
        held.release()


def read(ledger: Path) -> list[Mapping[str, Any]]:
    """Every line of a ledger; raises where one was changed, taken out or slipped in."""
    found: list[Mapping[str, Any]] = []
    before = ""
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            body = cast("dict[str, Any]", json.loads(line))
            said = body.pop("sha256")
        except (ValueError, KeyError, AttributeError) as error:
            raise _changed(ledger, number) from error
        if body.get("number") != number or body.get("before") != before or said != _seal(body):
            raise _changed(ledger, number)
        before = said
        found.append({**body, "sha256": said})
    return found


def _add(ledger: Path, lines: list[Mapping[str, Any]], said: Mapping[str, object]) -> None:
    body: dict[str, object] = {
        "number": len(lines) + 1,
        **said,
        "before": str(lines[-1]["sha256"]) if lines else "",
    }
    line = json.dumps({**body, "sha256": _seal(body)}).encode() + b"\n"
    try:
        with ledger.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise refusal(error, ledger, len(line)) from error


def _seal(body: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _changed(ledger: Path, number: int) -> DataError:
    attempt = "restore it from a backup: without it nobody knows how often the gate was tried"
    return DataError(f"line {number} of the campaign was changed", where=str(ledger), attempt=attempt, fault="GAT-003")
