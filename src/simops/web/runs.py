"""The list of everything that is there."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from simops.core.verdict import STATUSES
from simops.ops.axes import Drawing
from simops.ops.page import Page, ended, link, tag
from simops.web.brief import Briefs
from simops.web.frame import age, live
from simops.web.places import SIGNS, Place, Places

ROWS = 50
"""On a page."""
EVERY_S = 3.0
KINDS = tuple(dict.fromkeys(sign.kind for sign in SIGNS))


class Wanted(NamedTuple):
    """What of the list is asked for."""

    kind: str = ""
    words: str = ""
    page: int = 1

    @property
    def query(self) -> str:
        """As an address says it, without the page."""
        from urllib.parse import urlencode

        return urlencode({key: value for key, value in (("kind", self.kind), ("q", self.words)) if value})


def show(places: Places, briefs: Briefs, wanted: Wanted) -> Page:
    """The page."""
    page = Page("Runs", lead=f"Everything below {places.shown}, newest first.")
    options = "".join(
        f'<option value="{kind}"{" selected" if kind == wanted.kind else ""}>{kind or "every kind"}</option>'
        for kind in ("", *KINDS)
    )
    page.put(
        Drawing(
            f'<form method="get" action="/"><select name="kind">{options}</select>'
            f'<input name="q" maxlength="80" placeholder="name" value="{escape(wanted.words, quote=True)}">'
            "<button>show</button></form>"
        )
    )
    page.put(part(places, briefs, wanted))
    return page


def part(places: Places, briefs: Briefs, wanted: Wanted) -> Drawing:
    """The rows, which the page asks for again."""
    chosen = [
        one
        for one in places.all()
        if wanted.kind in {"", one.kind} and wanted.words.lower() in f"{one.name} {one.kind}".lower()
    ]
    start = (wanted.page - 1) * ROWS
    shown = chosen[start : start + ROWS]
    inside = Page("")
    if not chosen:
        inside.text("Nothing here. simops crank, validate, train, falsify or rollout makes something to see.")
    else:
        inside.table(("run", "kind", "", "what became of it", "changed"), _rows(shown, briefs), kind="rows")
        inside.put(_pages(wanted, len(chosen)))
    address = f"/live?{wanted.query}&page={wanted.page}" if wanted.query else f"/live?page={wanted.page}"
    return live(address, EVERY_S, inside.main(), plain=True)


def _rows(places: Sequence[Place], briefs: Briefs) -> list[tuple[Drawing | str, ...]]:
    rows: list[tuple[Drawing | str, ...]] = []
    for one in places:
        said = briefs.of(one)
        rows.append((link(one.name, f"/run/{one.id}"), one.kind, _tag(said.status), said.text, age(one.at)))
    return rows


def _tag(status: str) -> Drawing:
    return tag(status) if status in STATUSES else ended(status)


def _pages(wanted: Wanted, count: int) -> Drawing:
    """How many there are, and the way to the others."""
    last = (count + ROWS - 1) // ROWS
    ways = [(name, at) for name, at in (("newer", wanted.page - 1), ("older", wanted.page + 1)) if 1 <= at <= last]
    start = (wanted.page - 1) * ROWS
    shown = f"{start + 1} to {min(count, start + ROWS)} of {count}" if start < count else f"{count} in all"
    query = f"{wanted.query}&" if wanted.query else ""
    links = " ".join(link(name, f"/?{query}page={at}").markup for name, at in ways)
    return Drawing(f'<p class="note">{shown} {links}</p>')
