"""A crank: what it is doing, and what its turns came to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from html import escape
from typing import Any

from simops.ops import crank_story, kept
from simops.ops.axes import Drawing, short
from simops.ops.beat import heard
from simops.ops.kept import Kept
from simops.ops.page import Page, link
from simops.web.frame import STALE_S, age, live
from simops.web.places import Place, Places

EVERY_S, IDLE_S = 1.0, 5.0
LOG = "log"


def show(places: Places, place: Place, page: Page) -> None:
    """Put it on the page."""
    parts = {one.path: one.id for one in places.inside(place)}

    def trial(step: Kept, number: int) -> Drawing:
        held = parts.get(step.folder / LOG)
        return link("watch", f"/run/{held}/episode/{number}") if held is not None else Drawing("")

    def again(scenario: str) -> Drawing:
        return link("watch", f"/run/{place.id}/again/{scenario}")

    page.put(pulse(place))
    newest = max(place.path.glob("turn-*.json"), key=lambda path: path.stat().st_mtime, default=None)
    if newest is not None:
        since = age(newest.stat().st_mtime).markup
        page.put(Drawing(f'<p class="note">What follows is as of the last turn that is over, {since}.</p>'))
    crank_story.fill(page, kept.told(place.path), ways=crank_story.Ways(trial, again))


def pulse(place: Place) -> Drawing:
    """What it is doing now, and since when nothing was heard."""
    over, now = kept.summary(place.path), heard(place.path)
    at = place.path / kept.SUMMARY if over is not None else max(place.path.glob("turn-*.json"), default=place.path)
    version = hashlib.sha256(f"{at.name} {at.stat().st_mtime_ns if at.is_file() else 0}".encode()).hexdigest()[:12]
    address = f"/run/{place.id}/live"
    if over is not None:
        return live(address, IDLE_S, f"<p>Over: {escape(str(over['ended']))}.</p>", version=version)
    if now is None:
        return live(address, IDLE_S, "<p>Not over; nobody says what it is doing.</p>", version=version, stale=True)
    try:
        inside, is_old = _doing(now)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        inside, is_old = "<p>Not over; what it says of itself cannot be read.</p>", True
    return live(address, EVERY_S, inside, version=version, stale=is_old)


def _doing(now: Mapping[str, Any]) -> tuple[str, bool]:
    """What is being done, each value with its age, and whether that is long ago."""
    import time

    at, turn, turns = float(now["at"]), int(now["turn"]), int(now["turns"])
    said = age(at, stale_s=STALE_S).markup
    if now.get("over"):
        how = str(now.get("how") or "stopped")
        return f"<p>{escape(how)} in turn {turn}; the same <code>simops crank</code> goes on with it. {said}</p>", True
    began = age(float(now["stage_at"])).markup
    rows = [("doing", escape(str(now["about"])), f"begun {began}")]
    laps, lap = int(now["laps"]), int(now["lap"])
    if laps:
        figures: Mapping[str, Any] = now["figures"]
        told = ", ".join(f"{escape(name)} {_figure(float(value))}" for name, value in sorted(figures.items()))
        rows.append(
            (
                "training",
                f'<progress max="{laps}" value="{lap}"></progress> lap {lap} of {laps}, {told}',
                age(float(now["lap_at"])).markup,
            )
        )
    if now["left_s"] is not None:
        rows.append(
            ("left", f"about {float(now['left_s']):.0f} s{'' if turn else ' of this training, then more'}", said)
        )
    cells = "".join(f'<tr><th>{n}</th><td class="value">{v}</td><td>{at}</td></tr>' for n, v, at in rows)
    head = f"<h2>Turn {turn} of {turns}: {escape(str(now['stage']))}</h2>"
    if now["left_s"] is None:
        head = f"{head}<p>heard {said}</p>"
    return f'{head}<table class="facts">{cells}</table>', time.time() - at > STALE_S


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else short(value)
