"""A dataset: what is in it, how it ended, what its params have to do with that, and each episode."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simops.core.errors import BusyError, DataError
from simops.core.signal import Array
from simops.data import files
from simops.data.query import Answer, Standing
from simops.data.store import Dataset
from simops.ops.axes import Axis, Drawing
from simops.ops.page import Cell, Page, ended, link
from simops.ops.plot import Line, Mark, forest, lines
from simops.ops.plot import histogram as columns
from simops.web.frame import age
from simops.web.places import Place

BINS = 16
ROWS = 25
POINTS = 600
"""Of a curve, at most."""
SIGNALS = 24
"""Curves of an episode, at most."""
SOME = 8
"""Shards that are looked through for a few episodes."""
AT_ONCE = threading.BoundedSemaphore(2)
"""Questions that are answered side by side; who asks more is told to wait."""
LIMIT_S = 20.0


class Bins(NamedTuple):
    """Episodes by a param."""

    edges: Array
    number: Array
    share: Array


def show(place: Place, page: Page, ask: Mapping[str, str]) -> None:
    """Put it on the page."""
    state = _state(place.path)
    data = _opened(place.path, state)
    header, count = data.header, len(data)
    page.tiles(
        {
            "episodes": f"{count:,}",
            "steps": f"{sum(one.rows for one in data.shards) - count:,}",
            "on disk": files.size(data.bytes),
            "shards": f"{len(data.shards):,}",
        }
    )
    page.section("How they ended")
    page.draw(_ended(data.outcomes, count))
    if header.params and count:
        _params(place, page, data, state, ask)
    _episodes(place, page, ask, state)
    page.section("Where it comes from")
    facts: dict[str, Cell] = {name: _said(value) for name, value in vars(header.provenance).items()}
    trouble = {"quarantine": f"{len(data.quarantined)} shards"} if data.quarantined else {}
    page.facts({**facts, **trouble, "contract": header.schema.digest[:12], "changed": age(place.at)})


def _ended(outcomes: Mapping[str, int], count: int) -> Drawing:
    from simops.gate import rate

    marks: list[Mark] = []
    for name, number in sorted(outcomes.items(), key=lambda pair: -pair[1]):
        within = rate.interval(number, count - number, 0.05)
        kind = {"success": "pass", "timeout": "marginal"}.get(name, "fail")
        marks.append(
            Mark(label=name, value=number / count, low=within.low, high=within.high, kind=kind, note=f"{number:,}")
        )
    return forest(marks, x=Axis("share of the episodes", low=0.0, high=1.0))


def _params(place: Place, page: Page, data: Dataset, state: str, ask: Mapping[str, str]) -> None:
    """How many episodes at each value of one param, and how many of them succeeded."""
    names = list(data.header.params)
    by = ask.get("by", "")
    chosen = by if by in names else names[0]
    page.section("Params and success", "Choose a param; the band is Wilson's 95 %, bin by bin.")
    ways = [
        Drawing(f"<b>{escape(name)}</b>") if name == chosen else link(name, f"/run/{place.id}?by={_word(name)}")
        for name in names
    ]
    page.put(Drawing(f"<p>{' '.join(way.markup for way in ways)}</p>"))
    bins = histogram(place.path, state, chosen)
    unit = data.header.params[chosen]
    axis = Axis(f"{chosen} [{unit}]" if unit else chosen)
    low, high = wilson(bins.share, bins.number)
    known = bins.number > 0
    curve = Line(
        x=((bins.edges[:-1] + bins.edges[1:]) / 2)[known],
        y=bins.share[known],
        low=low[known],
        high=high[known],
        dots=True,
    )
    page.pair(
        [
            (lines([curve], x=axis, y=Axis("succeeded", low=0.0, high=1.0)), "Share that succeeded."),
            (columns(bins.edges, bins.number, x=axis, y=Axis("episodes")), "How many there are."),
        ]
    )


def _episodes(place: Place, page: Page, ask: Mapping[str, str], state: str) -> None:
    page.section("Episodes")
    page.put(
        Drawing(
            f'<form method="get" action="/run/{place.id}"><input name="episode" inputmode="numeric" maxlength="15" '
            'placeholder="number of an episode"><button>watch</button></form>'
        )
    )
    outcome = ask.get("outcome", "")
    rows = first(place.path, state, outcome if outcome in {"success", "failure", "timeout", "diverged"} else "")
    ways = " ".join(link(n, f"/run/{place.id}?outcome={n}").markup for n in ("success", "failure", "timeout"))
    page.put(Drawing(f'<p class="note">only: {ways}</p>'))
    page.table(
        ("episode", "ended", "steps", "reward", ""),
        [(str(e), ended(str(o)), int(n), r, link("watch", f"/run/{place.id}/episode/{int(e)}")) for e, o, n, r in rows],
        sortable=True,
    )


def wilson(share: Array, number: Array) -> tuple[Array, Array]:
    """Wilson's 95 % interval of shares of so many; honest at 0 and 1, where a spread is none."""
    n, z = np.maximum(number, 1.0), 1.96
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    wide = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.maximum(middle - wide, 0.0), np.minimum(middle + wide, 1.0)


@lru_cache(maxsize=256)
def histogram(path: Path, state: str, param: str) -> Bins:
    """Episodes in equal bins of a param, between its smallest and its largest value."""
    column = '"' + f"param_{param}".replace('"', '""') + '"'
    rows = _asked(
        _standing(path, state),
        f"WITH e AS MATERIALIZED (SELECT {column} AS p, outcome = 'success' AS good FROM episodes), "  # noqa: S608  known
        "r AS (SELECT min(p) AS low, max(p) AS high FROM e) "
        f"SELECT least(CAST(floor((p - low) / nullif(high - low, 0) * {BINS}) AS INT), {BINS - 1}) AS bin, "
        "count(*), avg(good::INT), any_value(low), any_value(high) FROM e, r GROUP BY bin ORDER BY bin",
    ).rows
    low, high = (float(rows[0][3]), float(rows[0][4])) if rows else (0.0, 1.0)
    number, share = np.zeros(BINS), np.zeros(BINS)
    for at, count, good, _, _ in rows:
        number[int(at or 0)], share[int(at or 0)] = count, good
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    return Bins(edges, number, share)


@lru_cache(maxsize=256)
def first(path: Path, state: str, outcome: str) -> list[tuple[Any, ...]]:
    """Some episodes that ended so; failures before successes where nothing is asked for."""
    data = _opened(path, state)
    reward = "reward" if "reward" in data.header.terms else "NULL"
    wanted = [outcome] if outcome else ["diverged", "failure", "timeout", "success"]
    found: list[tuple[Any, ...]] = []
    for name in wanted:
        held = [at for at, one in enumerate(data.shards) if one.outcomes.get(name)][:SOME]
        if held and len(found) < ROWS:
            sql = f"SELECT episode, outcome, steps, {reward} FROM episodes WHERE outcome = '{name}' LIMIT {ROWS}"  # noqa: S608
            found += _alone(data, held, sql).rows
    return found[:ROWS]


def episode(place: Place, page: Page, number: int) -> None:
    """One episode: what it recorded."""
    data = _opened(place.path, _state(place.path))
    at = int(data.find(np.array([number], np.int64))[0])
    if at < 0:
        raise DataError(f"there is no episode {number}", where=place.name)
    about = _alone(data, [at], f"SELECT * FROM episodes WHERE episode = {number}")  # noqa: S608  an integer
    shown: dict[str, Cell] = dict(zip(about.columns, about.rows[0], strict=True))
    shown |= {"episode": str(number), "seed": str(shown["seed"]), "outcome": ended(str(shown["outcome"]))}
    page.facts({name: shown[name] for name in shown if name not in {"digest", "first_row"}})
    steps = _alone(data, [at], f"SELECT * FROM steps WHERE episode = {number} ORDER BY step")  # noqa: S608  an integer
    some = steps.rows[:: max(1, len(steps.rows) // POINTS)]
    time_s = [float(row[steps.columns.index("step")]) * data.header.control_dt_s for row in some]
    names = [name for name in steps.columns if name not in {"episode", "step"}][:SIGNALS]
    page.section("What was recorded")
    curves = [(name, [float(row[steps.columns.index(name)]) for row in some]) for name in names]
    page.pair([(lines([Line(x=time_s, y=values)], x=Axis("time [s]"), height=180.0), name) for name, values in curves])


def scenarios(path: Path, most: int) -> list[tuple[Any, ...]]:
    """Episodes of a gate that did not succeed: number, end, and the scenario's hash."""
    data = _opened(path, _state(path))
    held = [at for at, one in enumerate(data.shards) if set(one.outcomes) - {"success"}][:SOME]
    if not held:
        return []
    sql = f"SELECT * FROM episodes WHERE outcome <> 'success' ORDER BY episode LIMIT {most}"  # noqa: S608  an integer
    found = _alone(data, held, sql)
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    return [(row["episode"], row["outcome"], row.get("scenario", "")) for row in rows]


def _alone(data: Dataset, shards: list[int], sql: str) -> Answer:
    """The answer of some shards."""
    standing = Standing(data, shards=shards)
    try:
        return _asked(standing, sql)
    finally:
        standing.close()


def _asked(standing: Standing, sql: str) -> Answer:
    """A look that nothing depends on; few at a time."""
    if not AT_ONCE.acquire(timeout=LIMIT_S):
        raise BusyError("too many questions at once", where="the dashboard", attempt="again in a moment")
    try:
        return standing.ask(sql, limit_s=LIMIT_S)
    finally:
        AT_ONCE.release()


@lru_cache(maxsize=4)
def _standing(path: Path, state: str) -> Standing:
    return Standing(_opened(path, state))


@lru_cache(maxsize=16)
def _opened(path: Path, state: str) -> Dataset:
    del state
    return Dataset.open(path)


def _state(path: Path) -> str:
    """What changes whenever a shard is added or set aside."""
    return " ".join(str((path / name).stat().st_mtime_ns) for name in ("manifest", "dataset.json"))


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _word(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
