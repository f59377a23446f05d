"""What is to be seen of a run, by its kind; an episode of it, and the film of that."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import final

from simops.core.errors import BusyError, DataError
from simops.ops.axes import Drawing
from simops.ops.page import Page, link
from simops.web import crank, datasets, judged, shelves, training
from simops.web.films import Film, Films
from simops.web.frame import age, live
from simops.web.places import Place, Places

TITLES = {"crank": "Crank", "gate": "Gate", "search": "Search for failures", "training": "Training"}
EVERY_S = 1.0


@final
class Kinds:
    """The pages of runs."""

    def __init__(self, places: Places) -> None:
        """Show what is in `places`."""
        self._places, self._films = places, Films()

    def page(self, place: Place, ask: Mapping[str, str]) -> Page:
        """All that is to be seen of one."""
        with _reading(place):
            return self._page(place, ask)

    def _page(self, place: Place, ask: Mapping[str, str]) -> Page:
        page = Page(place.name, lead=TITLES.get(place.kind, place.kind.capitalize()))
        match place.kind:
            case "crank":
                crank.show(self._places, place, page)
            case "gate":
                judged.gate(self._places, place, page)
            case "search":
                judged.search(place, page)
            case "training":
                training.show(place, page)
            case "dataset":
                datasets.show(place, page, ask)
            case "registry":
                shelves.show(place, page)
            case _:
                page.put(Drawing(f"<p>Changed {age(place.at).markup}</p>"))
        self._more(place, page)
        return page

    def pulse(self, place: Place) -> Drawing | None:
        """What it is doing now; nothing for what is only there."""
        with _reading(place):
            if place.kind == "crank":
                return crank.pulse(place)
            if place.kind in {"gate", "search"}:
                return judged.pulse(place)
            return training.pulse(place) if place.kind == "training" else None

    def episode(self, place: Place, number: int) -> Page:
        """One episode of a dataset, with its film."""
        if place.kind != "dataset":
            raise DataError("episodes are in datasets", where=place.name)
        page = Page(f"Episode {number}", lead=place.name)
        page.put(self.film(place, str(number)))
        with _reading(place):
            datasets.episode(place, page, number)
        return page

    def again(self, place: Place, scenario: str) -> Page:
        """One scenario of a gate or a search, run again."""
        page = Page(f"Scenario {judged.known(place, scenario)}", lead=place.name)
        page.put(self.film(place, scenario))
        return page

    def film(self, place: Place, which: str) -> Drawing:
        """A film as far as it is; asked for again until it is there."""
        key, address = f"{place.id}-{which}", f"/run/{place.id}/film/{which}"
        try:
            if place.kind == "dataset":
                made = self._films.episode(key, place.path, int(which))
            else:
                made = self._films.scenario(key, place.path, judged.known(place, which))
        except BusyError as error:
            return live(f"{address}/live", EVERY_S, f"<p>The film waits: {escape(error.what)}.</p>")
        said = f'<p class="note">made by <code>{escape(_command(made, self._places.root))}</code></p>'
        if made.why_not:
            return live(address, 0.0, f"<p>No film: {escape(made.why_not)}.</p>{said}")
        if not made.done:
            return live(f"{address}/live", EVERY_S, f"<p>The film is being made.</p>{said}")
        shown = f'<video controls autoplay muted loop playsinline src="{address}"></video>'
        return live(address, 0.0, f"{shown}{said}", plain=True)

    def filmed(self, place: Place, which: str) -> Path | None:
        """The file of a film that is there."""
        return self._films.find(f"{place.id}-{which}")

    def _more(self, place: Place, page: Page) -> None:
        """The report it left, and what is inside it."""
        ways = [link("the report that it left", f"/run/{place.id}/report")] if _report(place) else []
        inside = [
            one for one in self._places.inside(place) if one.kind in {"dataset", "training", "registry", "bundle"}
        ]
        if ways or inside:
            page.section("Inside")
        for way in ways:
            page.put(Drawing(f"<p>{way.markup}</p>"))
        if inside:
            page.table(
                ("part", "kind", "changed"),
                [(link(one.name, f"/run/{one.id}"), one.kind, age(one.at)) for one in inside],
                sortable=True,
            )


@contextmanager
def _reading(place: Place) -> Generator[None]:
    """What lies there may be anything: say so, and say where in our code that showed."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError) as error:
        traceback.print_exc()
        what = f"what lies there is not what a {place.kind} leaves ({type(error).__name__})"
        raise DataError(what, where=place.name, attempt="simops show, simops data check") from error


def _report(place: Place) -> bool:
    path = place.path / "report.html"
    return path.is_file() and not path.is_symlink()


def _command(film: Film, root: Path) -> str:
    """What makes it, as somebody would type it above the folder that is shown."""
    return " ".join(["simops", *(word.replace(str(root), root.name) for word in film.command), "film.mp4"])
