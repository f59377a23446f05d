"""Gates and searches: what was asked of a policy, how sure the answer is, and where it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from simops.core.errors import DataError
from simops.core.verdict import Verdict
from simops.data.files import unseal
from simops.data.store import Dataset
from simops.ops import failures
from simops.ops.axes import Drawing, short
from simops.ops.page import Cell, Page, ended, link
from simops.ops.plot import Axis, Mark, forest, heat
from simops.web.brief import last
from simops.web.frame import age, live
from simops.web.places import Place, Places

HASH = re.compile(r"[0-9a-f]{16}")
LARGEST = 64 * 2**20
SHOWN = 60
EVERY_S = 2.0


def pulse(place: Place) -> Drawing:
    """How far a gate or a search is, with its age; that it is over, once it is."""
    result = place.path / ("verdict.json" if place.kind == "gate" else "map.json")
    if result.is_file():
        return live(f"/run/{place.id}/live", 0.0, f"<p>Over {age(result.stat().st_mtime).markup}</p>", version="over")
    if place.kind == "gate":
        held = place.path / "candidate"
        count = len(Dataset.open(held)) if (held / "dataset.json").is_file() else 0
    else:
        tried = last(place.path / "tried.jsonl")
        count = 0 if tried is None else int(tried["number"]) + 1
    inside = f"<p>Not over: {count:,} episodes so far, the last ones {age(place.at).markup}</p>"
    return live(f"/run/{place.id}/live", EVERY_S, inside)


def gate(places: Places, place: Place, page: Page) -> None:
    """The page of `simops validate`."""
    page.put(pulse(place))
    path = place.path / "verdict.json"
    if not path.is_file():
        page.text("There is no verdict yet; the same command goes on with it if it was stopped.")
    else:
        verdict = Verdict.parse(_text(path))
        against = verdict.against()
        page.status(verdict.status, str(against[0]) if against else "nothing stands against it")
        page.facts({"policy": verdict.policy, "suite": verdict.suite, "alpha": verdict.alpha})
        page.section("Success rates", "Every kind of scenario has to pass on its own; dashed is what is asked.")
        marks = [
            Mark(
                label=f.category or f.check, value=f.value, low=f.interval.low, high=f.interval.high, bound=f.bound,
                kind=f.status, note=f"{f.status}, on {f.count}",
            )
            for f in verdict.findings
            if f.interval is not None and f.check == "success rate"
        ]  # fmt: skip
        if marks:
            page.draw(forest(marks, x=Axis("success rate", low=0.0, high=1.0)), "Intervals that hold at any look.")
        page.findings(verdict.findings)
    _failed(places, place, page)


def _failed(places: Places, place: Place, page: Page) -> None:
    """Its episodes that failed, each with its replay."""
    held = next((one for one in places.inside(place) if one.path == place.path / "candidate"), None)
    if held is None:
        return
    from simops.web.datasets import scenarios

    rows = scenarios(held.path, SHOWN)
    if not rows:
        return
    page.section("Failures", "Each runs again, to the last bit, by its hash.")
    page.table(
        ("episode", "ended", "scenario", "recorded", "run again"),
        [
            (
                str(number), ended(str(outcome)), str(scenario)[:16],
                link("watch", f"/run/{held.id}/episode/{int(number)}"),
                link("watch", f"/run/{place.id}/again/{str(scenario)[:16]}") if scenario else "",
            )
            for number, outcome, scenario in rows
        ],
    )  # fmt: skip


def search(place: Place, page: Page) -> None:
    """The page of `simops falsify`."""
    page.put(pulse(place))
    path = place.path / "map.json"
    if not path.is_file():
        page.text("There is no map yet; the same command goes on with it if it was stopped.")
        return
    body = unseal(path)
    axes, count = cast("list[Mapping[str, Any]]", body["axes"]), int(body["cells"])
    found = cast("list[Mapping[str, Any]]", body["found"])
    failed, tried = (sum(int(cell[key]) for cell in found) for key in ("failed", "tried"))
    bad = sum(1 for cell in found if cell["failed"])
    page.tiles({"episodes": f"{tried:,}", "failed": f"{failed:,}", "cells that fail": f"{bad} of {len(found)}"})
    page.section(
        "Map of failures",
        "Red where the worst episode of a cell failed, green where none did, darker the clearer; open: untried.",
    )
    field = np.full((count if len(axes) > 1 else 1, count), np.nan)
    for cell in found:
        across, *down = cell["place"]
        field[(*down, 0)[0], across] = -float(cell["margin"])
    names = [[short(_middle(axis, (i + 0.5) / count)) for i in range(count)] for axis in axes]
    rows = names[1] if len(axes) > 1 else [""]
    labels = [f"{axis['name']} [{axis['unit']}]" if axis["unit"] else str(axis["name"]) for axis in axes]
    drawn = heat(
        field[::-1], across=names[0], down=rows[::-1], x=labels[0], y=labels[1] if len(axes) > 1 else "", split=True
    )
    page.draw(drawn)
    page.section("The worst of each failing cell")
    worst = sorted((cell for cell in found if cell["failed"]), key=lambda cell: float(cell["margin"]))[:SHOWN]
    table: list[tuple[Cell, ...]] = []
    for cell in worst:
        where = ", ".join(f"{a['name']} {short(_middle(a, (p + 0.5) / count))}" for a, p in _placed(axes, cell))
        again: Drawing = link("watch", f"/run/{place.id}/again/{str(cell['worst'])[:16]}")
        table.append(
            (str(cell["worst"])[:16], float(cell["margin"]), f"{cell['failed']} of {cell['tried']}", where, again)
        )
    page.table(("scenario", "margin", "failed", "where", "run again"), table, sortable=True)


def known(place: Place, scenario: str) -> str:
    """The hash of a scenario that this gate, search or crank holds; raises for any other."""
    if not HASH.fullmatch(scenario):
        raise DataError("that is no scenario", where=place.name)
    if place.kind == "crank" and failures.held(place.path, scenario) is not None:
        return scenario
    path = place.path / ("map.json" if place.kind == "search" else "suite.json")
    if place.kind not in {"search", "gate"} or not path.is_file() or f'"{scenario}' not in _text(path):
        raise DataError(f"no scenario {scenario} is held there", where=place.name)
    return scenario


def _placed(axes: list[Mapping[str, Any]], cell: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], int]]:
    return list(zip(axes, [int(p) for p in cell["place"]], strict=False))


def _middle(axis: Mapping[str, Any], share: float) -> float:
    return float(axis["low"]) + share * (float(axis["high"]) - float(axis["low"]))


def _text(path: Path) -> str:
    if path.is_symlink() or path.stat().st_size > LARGEST:
        raise DataError(f"{path.name} is too large to show", where=str(path.parent))
    return path.read_text(encoding="utf-8")


def rows_of(path: Path, most: int = 20_000) -> list[Mapping[str, Any]]:
    """Whole lines of a log of JSON, at most so many, evenly from all of them."""
    if path.is_symlink() or path.stat().st_size > LARGEST:
        raise DataError(f"{path.name} is too large to show", where=str(path.parent))
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    return [json.loads(line) for line in lines[:: max(1, len(lines) // most)]]
