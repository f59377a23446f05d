"""Where a policy failed in a crank's gate: each scenario by its hash, and each episode by its params, drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simops.core.errors import DataError
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.ops import kept
from simops.ops.axes import Drawing
from simops.ops.plot import Axis, Cloud, scatter

OUTCOMES = "outcomes.json"
LARGEST = 16 * 2**20


class Ended(NamedTuple):
    """Episodes side by side."""

    names: tuple[str, ...]
    """Of the params."""
    values: Array
    """(episodes, params)."""
    good: Array
    notes: tuple[str, ...]
    """What each is called, and how it ended."""


class Failed(NamedTuple):
    """One scenario that a turn's candidate failed in."""

    turn: kept.Told
    scenario: Scenario


def of_turn(turn: kept.Told) -> list[Scenario]:
    """What a turn's candidate failed in, in its gate."""
    gate = turn.step("validate")
    path = None if gate is None else gate.folder / kept.FAILURES
    if path is None or path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST:
        return []
    try:
        bodies: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return [Scenario.of(body) for body in bodies]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path.name} cannot be read", where=str(path), fault="DAT-003") from error


def held(run: Path, prefix: str) -> Failed | None:
    """The scenario whose hash begins so; of the newest turn that failed in it."""
    found = ((turn, one) for turn in reversed(kept.told(run)) for one in of_turn(turn) if one.hash.startswith(prefix))
    return next((Failed(turn, one) for turn, one in found), None)


def text(ended: Sequence[tuple[Scenario, str]]) -> str:
    """Say how each scenario ended."""
    return json.dumps([[one.name, one.category, outcome, dict(one.params)] for one, outcome in ended])


def read(folder: Path) -> Ended | None:
    """What `text` said; nothing where nothing was kept, or nothing can be read."""
    path = folder / OUTCOMES
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return None
        rows: list[tuple[str, str, str, Mapping[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
        names = tuple(sorted({name for row in rows for name in row[3]}))
        values = np.array([[float(row[3].get(name, np.nan)) for name in names] for row in rows], float)
        good = np.array([row[2] == "success" for row in rows], bool)
        notes = tuple(f"{row[0]} ({row[1]}): {row[2]}" for row in rows)
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return None
    return Ended(names, values.reshape(len(rows), len(names)), good, notes)


def telling(ended: Ended) -> list[int]:
    """The two params whose values differ most between failures and successes, or spread most."""
    bad = ~ended.good
    spread = np.nanstd(ended.values, axis=0)
    apart = np.zeros(len(ended.names))
    if bad.any() and ended.good.any():
        apart = np.abs(np.nanmean(ended.values[bad], axis=0) - np.nanmean(ended.values[ended.good], axis=0))
        apart = np.where(spread > 0, apart / np.maximum(spread, 1e-12), -1.0)
    order = np.lexsort((-spread, -apart))
    return [int(i) for i in order[:2] if spread[i] > 0]


def cloud(folder: Path) -> Drawing | None:
    """Failures and successes over two params; nothing where that shows nothing."""
    ended = read(folder)
    if ended is None or not len(ended.good) or ended.good.all():
        return None
    chosen = telling(ended)
    if len(chosen) < 2:
        return None
    x, y = chosen
    groups = [
        Cloud(
            name=name,
            x=ended.values[mask, x],
            y=ended.values[mask, y],
            notes=[note for note, kept in zip(ended.notes, mask.tolist(), strict=True) if kept],
        )
        for name, mask in (("succeeded", ended.good), ("failed", ~ended.good))
        if mask.any()
    ]
    return scatter(groups, x=Axis(ended.names[x]), y=Axis(ended.names[y]))
