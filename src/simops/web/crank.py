"""A crank: what it is doing, and what its turns came to."""

from __future__ import annotations

from html import escape

from simops.ops import kept
from simops.ops.axes import Drawing
from simops.ops.beat import heard
from simops.ops.page import Page
from simops.web.frame import STALE_S, age, live
from simops.web.places import Place

EVERY_S = 1.0


def show(place: Place, page: Page) -> None:
    """Put it on the page."""
    page.put(pulse(place))
    page.table(
        ("turn", "what became of it", "why"),
        [(one.number, str(one.said["ending"]), str(one.said["why"])) for one in kept.told(place.path)],
    )


def pulse(place: Place) -> Drawing:
    """What it is doing now, and since when nothing was heard."""
    now = heard(place.path)
    over = kept.summary(place.path) is not None
    version = str(len(kept.turns(place.path)))
    if over or now is None:
        return live(
            f"/run/{place.id}/live", 0.0 if over else 5.0, "<p>over</p>" if over else "<p>not over</p>", version=version
        )
    at = float(now["at"])
    inside = (
        f"<p>turn {now['turn']} of {now['turns']}: {escape(str(now['stage']))} {age(at, stale_s=STALE_S).markup}</p>"
    )
    return live(f"/run/{place.id}/live", EVERY_S, inside, version=version)
