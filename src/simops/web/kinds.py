"""What is to be seen of a run, by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from simops.ops.axes import Drawing
from simops.ops.page import Page, link
from simops.web import crank
from simops.web.places import Place, Places


@final
class Kinds:
    """The page of each kind."""

    def __init__(self, places: Places) -> None:
        """Show what is in `places`."""
        self._places = places

    def page(self, place: Place, ask: Mapping[str, str]) -> Page:
        """All that is to be seen of one."""
        del ask
        page = Page(place.name, lead=place.kind)
        if place.kind == "crank":
            crank.show(place, page)
        if (place.path / "report.html").is_file():
            page.draw(link("the report that it left", f"/run/{place.id}/report"))
        return page

    def pulse(self, place: Place) -> Drawing | None:
        """What it is doing now; nothing for what is only there."""
        return crank.pulse(place) if place.kind == "crank" else None
