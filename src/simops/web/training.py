"""A training: its curves, and how long ago its last lap was."""

from __future__ import annotations

from html import escape

from simops.ops.axes import Drawing, short
from simops.ops.page import Page
from simops.ops.plot import Axis, Line, lines
from simops.web.brief import last
from simops.web.frame import age, live
from simops.web.judged import rows_of
from simops.web.places import Place

FIRST = ("success", "reward", "loss", "failure", "episode_s", "steps_per_s", "learning_rate", "level")
CURVES = 24
POINTS = 800
EVERY_S = 2.0


def show(place: Place, page: Page) -> None:
    """Put it on the page."""
    page.put(pulse(place))
    rows = rows_of(place.path / "metrics.jsonl", POINTS)
    names = sorted({name for row in rows for name in row if name != "lap"}, key=_order)[:CURVES]
    laps = [float(row.get("lap", i)) for i, row in enumerate(rows)]
    page.section("Curves")
    page.pair(
        [
            (
                lines([Line(x=laps, y=[_number(row.get(name)) for row in rows])], x=Axis("lap"), height=200.0),
                name,
            )
            for name in names
        ]
    )


def pulse(place: Place) -> Drawing:
    """The last lap, and its age."""
    path = place.path / "metrics.jsonl"
    lap = last(path)
    if lap is None:
        return live(f"/run/{place.id}/live", EVERY_S, "<p>No lap yet.</p>")
    stamp = age(path.stat().st_mtime).markup
    told = ", ".join(f"{escape(n)} {short(_number(lap[n]))}" for n in FIRST[:3] if n in lap)
    return live(f"/run/{place.id}/live", EVERY_S, f"<p>Lap {escape(str(lap.get('lap', '?')))}: {told} {stamp}</p>")


def _order(name: str) -> tuple[int, str]:
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
