"""Which address shows what. Every route reads, none takes a path, and a test walks through all of them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, final

from simops.core.errors import BusyError, DataError, ExtraError, SimOpsError
from simops.ops.page import Page
from simops.web import runs
from simops.web.brief import Briefs
from simops.web.frame import STYLES, framed
from simops.web.guard import REPORT_POLICY, Guard, Hosts
from simops.web.kinds import Kinds
from simops.web.places import Place, Places

try:
    from starlette.applications import Starlette
    from starlette.responses import FileResponse, HTMLResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError as missing:
    raise ExtraError("the dashboard needs starlette, which is not installed", attempt="pip install 'simops[ui]'") from (
        missing
    )

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

STATIC = Path(__file__).parent / "static"
KINDS = {"page.js": "text/javascript", "icon.svg": "image/svg+xml"}
LARGEST_REPORT = 64 * 2**20
_NUMBER = re.compile(r"[0-9]{1,15}")


@final
class Dashboard:
    """The pages over one folder."""

    def __init__(self, root: Path) -> None:
        """Show what lies below `root`."""
        self.places, self.briefs = Places(root), Briefs()
        self.kinds = Kinds(self.places)

    @property
    def routes(self) -> list[Route]:
        """Every address there is."""
        return [
            _route("/", self.list),
            _route("/live", self.rows),
            _route("/run/{id}", self.run),
            _route("/run/{id}/live", self.pulse),
            _route("/run/{id}/report", self.report),
            _route("/run/{id}/episode/{number}", self.episode),
            _route("/run/{id}/again/{which}", self.again),
            _route("/run/{id}/film/{which}", self.film),
            _route("/run/{id}/film/{which}/live", self.filming),
            _route("/static/{name}", self.static),
        ]

    def list(self, request: Request) -> Response:
        """Everything that is there."""
        return HTMLResponse(framed(runs.show(self.places, self.briefs, _wanted(request))))

    def rows(self, request: Request) -> Response:
        """The rows of the list again."""
        return HTMLResponse(runs.part(self.places, self.briefs, _wanted(request)).markup)

    def run(self, request: Request) -> Response:
        """One run."""
        place, way = self._place(request), []
        if place.kind == "dataset" and request.query_params.get("episode"):
            page = self.kinds.episode(place, _number(request.query_params["episode"]))
            way = [(place.name, f"/run/{place.id}")]
        else:
            page = self.kinds.page(place, request.query_params)
        return HTMLResponse(framed(page, way))

    def pulse(self, request: Request) -> Response:
        """What a run is doing now."""
        place = self._place(request)
        found = self.kinds.pulse(place)
        if found is None:
            raise DataError("nothing goes on there", where=place.name)
        return HTMLResponse(found.markup)

    def report(self, request: Request) -> Response:
        """The report that a run left, as it is; nothing in it runs."""
        place = self._place(request)
        path = place.path / "report.html"
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_REPORT:
            raise DataError("there is no report", where=place.name)
        return HTMLResponse(path.read_bytes(), headers={"content-security-policy": REPORT_POLICY})

    def episode(self, request: Request) -> Response:
        """One episode of a dataset."""
        place = self._place(request)
        number = _number(str(request.path_params["number"]))
        return HTMLResponse(framed(self.kinds.episode(place, number), [(place.name, f"/run/{place.id}")]))

    def again(self, request: Request) -> Response:
        """One scenario of a gate or a search."""
        place = self._place(request)
        page = self.kinds.again(place, str(request.path_params["which"]))
        return HTMLResponse(framed(page, [(place.name, f"/run/{place.id}")]))

    def film(self, request: Request) -> Response:
        """A film that was made."""
        found = self.kinds.filmed(self._place(request), str(request.path_params["which"]))
        if found is None:
            raise DataError("there is no such film", attempt="the page of its episode, which makes it")
        return FileResponse(found, media_type="video/mp4")

    def filming(self, request: Request) -> Response:
        """A film as far as it is, where somebody asked for it."""
        place, which = self._place(request), str(request.path_params["which"])
        if place.kind == "dataset":
            which = str(_number(which))
        return HTMLResponse(self.kinds.film(place, which).markup)

    def static(self, request: Request) -> Response:
        """What pages look like, and the one script they share."""
        name = str(request.path_params["name"])
        keep = {"cache-control": "no-cache"}
        if name == "look.css":
            return Response(STYLES, media_type="text/css", headers=keep)
        if name not in KINDS:
            raise DataError("there is no such file", where=name)
        return Response((STATIC / name).read_bytes(), media_type=KINDS[name], headers=keep)

    def _place(self, request: Request) -> Place:
        found = self.places.find(str(request.path_params["id"]))
        if found is None:
            raise DataError("there is no such run", where=str(request.path_params["id"])[:40])
        return found


def app(root: Path, hosts: Hosts) -> ASGIApp:
    """The whole, behind its guard."""
    return Guard(Starlette(routes=Dashboard(root).routes), hosts)


def _route(path: str, endpoint: Callable[[Request], Response]) -> Route:
    return Route(path, _said(endpoint), methods=["GET"], name=endpoint.__name__)


def _said(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Give every error a page: what, where, what to try; never a trace."""

    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except SimOpsError as error:
            page = Page("Nothing to show", lead=error.what)
            status = 429 if isinstance(error, BusyError) else 404
            if error.attempt:
                page.text(f"Try: {error.attempt}")
            return HTMLResponse(framed(page), status_code=status)
        except Exception:  # ours: the trace goes to the terminal, the page says so
            traceback.print_exc()
            page = Page("A fault in simops", lead="The terminal of `simops ui` says more.")
            return HTMLResponse(framed(page), status_code=500)

    return answer


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise DataError("that is no number of an episode")
    return int(text)


def _wanted(request: Request) -> runs.Wanted:
    ask = request.query_params
    kind, page = ask.get("kind", ""), ask.get("page", "1")
    return runs.Wanted(
        kind=kind if kind in runs.KINDS else "",
        words=ask.get("q", "")[:80],
        page=max(1, int(page)) if _NUMBER.fullmatch(page) else 1,
    )
