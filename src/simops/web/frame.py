"""What stands around every page: its head, the way back, and how old a value is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

from simops.ops.axes import Drawing
from simops.ops.look import STYLE
from simops.ops.page import Page

STALE_S = 5.0
"""A run that is at work and was not heard of for so long is grey."""
STYLES = f"""{STYLE}
.top{{display:flex;flex-wrap:wrap;gap:4px 18px;align-items:baseline;padding:10px 20px;
border-bottom:1px solid var(--rule);font-size:14px}}
.top b{{font-size:16px}}.top a{{text-decoration:none}}.top .lost{{color:var(--fail)}}
.live{{background:var(--box);border-radius:8px;padding:10px 16px;margin:14px 0}}
.live h2{{border:0;margin:0;padding:0}}
.live.plain{{background:none;padding:0}}.live table{{margin:4px 0}}
.live.stale,.stale .value{{filter:grayscale(1);opacity:.55}}
.note{{color:var(--soft);font-size:13px}}
time{{color:var(--soft);font-size:12.5px;white-space:nowrap}}
progress{{display:block;width:100%;min-width:180px;max-width:420px;accent-color:var(--c0)}}
form{{display:flex;flex-wrap:wrap;gap:8px;margin:12px 0}}
input,select,button{{font:inherit;font-size:14px;color:var(--ink);background:var(--box);border:1px solid var(--rule);
border-radius:6px;padding:4px 8px}}
video{{max-width:100%;border-radius:4px;background:#000}}
@media(max-width:640px){{main{{padding:14px 12px 48px}}.top{{padding:8px 12px}}h1{{font-size:22px}}
table.rows thead{{display:none}}table.rows tr{{display:block;padding:8px 0;border-bottom:1px solid var(--rule)}}
table.rows td{{display:inline;border:0;padding:0 10px 0 0;text-align:left}}table.rows td:first-child{{display:block}}}}
"""


def framed(page: Page, way: Sequence[tuple[str, str]] = ()) -> str:
    """A whole page: nothing in it is inline that runs or paints."""
    links = " / ".join(f'<a href="{escape(address, quote=True)}">{escape(name)}</a>' for name, address in way)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)} · simops</title>"
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/look.css">'
        '<script src="/static/page.js" defer></script></head>\n'
        f'<body><header class="top"><b><a href="/">simops</a></b><span>{links}</span>'
        '<span id="link" role="status"></span></header>'
        f"<main>\n{page.main()}\n</main></body></html>\n"
    )


def age(at: float, *, stale_s: float = 0.0) -> Drawing:
    """How long ago something was, counted on by the page; with `stale_s`, what is older is grey."""
    gone = max(0.0, time.time() - at)
    limit = f' data-stale="{stale_s:g}"' if stale_s else ""
    return Drawing(f'<time data-age="{gone:.1f}"{limit}>{escape(ago(gone))}</time>')


def ago(seconds: float) -> str:
    """A time that has gone by, for people."""
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {name} ago"
    return f"{seconds:.0f} s ago"


def live(
    address: str, every_s: float, inside: str, *, version: str = "", stale: bool = False, plain: bool = False
) -> Drawing:
    """A part that the page asks for again by itself, unless `every_s` is 0.

    Another `version` makes it ask for the whole page.
    """
    kinds = " ".join(["live", *(["stale"] if stale else []), *(["plain"] if plain else [])])
    every = f' data-every="{every_s * 1000:.0f}" data-live="{escape(address, quote=True)}"' if every_s else ""
    return Drawing(f'<div class="{kinds}" data-version="{escape(version, quote=True)}"{every}>{inside}</div>')
