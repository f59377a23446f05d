"""A report as one HTML file that needs nothing else: no network, no folder beside it, no script to be read.

    page = Page("Validation", lead="pendulum, 140 episodes")
    page.section("Success rate")
    page.draw(forest(marks), "Intervals that hold at any look.")
    page.table(("category", "episodes"), [("nominal", 140)])
    page.write(Path("report.html"))

Everything that is not a `Drawing` is escaped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TypeAlias, final

from simops.core.verdict import STATUSES, Finding
from simops.data.files import publish
from simops.ops.axes import Drawing, short
from simops.ops.look import SORT, STYLE

Cell: TypeAlias = str | float | int | bool | Drawing | None
_KINDS = {b"\x89PNG": "image/png", b"GIF8": "image/gif", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp"}


@final
class Page:
    """Sections from top to bottom, in the order they are added."""

    def __init__(self, title: str, *, lead: str = "") -> None:
        """Begin with a heading and a sentence below it."""
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>' if lead else ""]
        self._contents: list[str] = []
        self._sorts = False

    def section(self, heading: str, text: str = "") -> None:
        """Begin a section; long pages list them at the top."""
        self._contents.append(heading)
        self._parts.append(f'<h2 id="s{len(self._contents)}">{escape(heading)}</h2>')
        if text:
            self.text(text)

    def text(self, text: str) -> None:
        """A paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def status(self, status: str, text: str = "") -> None:
        """A word large and in its colour, as `pass`, and a sentence beside it."""
        self._parts.append(f'<p class="status"><b class="{_kind(status)}">{escape(status)}</b> {escape(text)}</p>')

    def facts(self, facts: Mapping[str, Cell]) -> None:
        """Names and values in two columns."""
        rows = "".join(f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in facts.items())
        self._parts.append(f'<table class="facts">{rows}</table>')

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, sortable: bool = False, kind: str = ""
    ) -> None:
        """A table; with `sortable`, a click on a column's name sorts by it; `kind` is for how it looks."""
        self._sorts |= sortable
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
        kinds = " ".join([*(["sortable"] if sortable else []), *([kind] if kind else [])])
        shown = f' class="{escape(kinds, quote=True)}"' if kinds else ""
        self._parts.append(
            f'<div class="wide"><table{shown}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def findings(self, findings: Iterable[Finding]) -> None:
        """One row a finding, coloured by its status."""
        columns = ("check", "category", "status", "value", "interval", "asked", "on", "fault", "note")
        rows = [
            (
                f.check,
                f.category or "all",
                tag(f.status),
                f.value,
                f"[{short(f.interval.low)}, {short(f.interval.high)}]" if f.interval else "",
                f.bound,
                f.count,
                f.fault,
                f.note,
            )
            for f in findings
        ]
        self.table(columns, rows, sortable=True)

    def draw(self, drawing: Drawing, caption: str = "") -> None:
        """A chart from `ops.plot`."""
        self._figure(drawing.markup, caption)

    def put(self, drawing: Drawing) -> None:
        """Markup as it stands, without a frame around it."""
        self._parts.append(drawing.markup)

    def image(self, data: bytes, caption: str = "") -> None:
        """A PNG, GIF, JPEG or WebP, inside the page; raises for anything else."""
        self._figure(_image(data, caption), caption)

    def gallery(self, images: Sequence[tuple[bytes, str]]) -> None:
        """Pictures side by side, each with its caption."""
        cells = "".join(_framed(_image(data, caption), caption) for data, caption in images)
        self._parts.append(f'<div class="gallery">{cells}</div>')

    def code(self, text: str) -> None:
        """Text as it stands, as a command to copy."""
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def main(self) -> str:
        """What stands between head and foot, for whoever frames it otherwise."""
        links = [f'<a href="#s{i}">{escape(name)}</a>' for i, name in enumerate(self._contents, 1)]
        contents = f"<nav>{' '.join(links)}</nav>" if len(links) > 3 else ""
        head, lead, *rest = self._parts if self.title else ["", "", *self._parts[2:]]
        return f"{head}\n{lead}\n{contents}\n{chr(10).join(rest)}"

    def heading(self, text: str) -> None:
        """A heading within a section."""
        self._parts.append(f"<h3>{escape(text)}</h3>")

    def tiles(self, facts: Mapping[str, str]) -> None:
        """A few figures large, each with what it is."""
        cells = "".join(f"<div><b>{escape(v)}</b><span>{escape(name)}</span></div>" for name, v in facts.items())
        self._parts.append(f'<div class="tiles">{cells}</div>')

    def pair(self, drawings: Sequence[tuple[Drawing, str]]) -> None:
        """Charts side by side where there is room, each with its caption."""
        cells = "".join(_framed(drawing.markup, caption) for drawing, caption in drawings)
        self._parts.append(f'<div class="pair">{cells}</div>')

    def diff(self, text: str) -> None:
        """A unified diff, coloured."""
        kinds = {"+": "add", "-": "del", "@": "at"}
        rows = [(kinds.get(row[:1], ""), escape(row)) for row in text.splitlines()]
        body = "\n".join(f'<span class="{kind}">{row}</span>' if kind else row for kind, row in rows)
        self._parts.append(f'<pre class="diff">{body}</pre>')

    def folded(self, summary: str, inside: Page) -> None:
        """What is shown only when somebody asks."""
        body = inside.main()
        self._sorts |= inside._sorts
        self._parts.append(f"<details><summary>{escape(summary)}</summary>{body}</details>")

    def html(self) -> str:
        """The whole file."""
        script = f"<script>{SORT}</script>" if self._sorts else ""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{STYLE}</style></head>\n"
            f"<body><main>\n{self.main()}\n</main>{script}</body></html>\n"
        )

    def write(self, path: Path) -> Path:
        """Put the file down whole."""
        publish(path, self.html().encode())
        return path

    def _figure(self, markup: str, caption: str) -> None:
        self._parts.append(_framed(markup, caption))


def tag(status: str) -> Drawing:
    """A word in the colour of what it means: `pass`, `fail`, `marginal`, or any other."""
    return Drawing(f'<b class="tag {_kind(status)}">{escape(status)}</b>')


def ended(outcome: str) -> Drawing:
    """How an episode ended, in the colour of what that means."""
    kinds = {"success": "pass", "promoted": "pass", "timeout": "marginal", "kept": "marginal", "unchanged": "marginal"}
    kind = kinds.get(outcome, "fail" if outcome in {"failure", "diverged", "refused"} else "other")
    return Drawing(f'<b class="tag k-{kind}">{escape(outcome)}</b>')


def link(text: str, address: str) -> Drawing:
    """A way to another file beside the page, or to a place in it; raises for what runs code."""
    if ":" in address.split("/", maxsplit=1)[0] and not address.startswith(("https://", "http://")):
        raise ValueError(f"{address!r} is no address of a page")
    return Drawing(f'<a href="{escape(address, quote=True)}">{escape(text)}</a>')


def _kind(status: str) -> str:
    return f"k-{status.replace(' ', '-')}" if status in STATUSES else "k-other"


def _cell(value: Cell) -> str:
    if isinstance(value, Drawing):
        return f"<td>{value.markup}</td>"
    if value is None:
        return '<td class="none">–</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="number" data-v="{float(value)!r}">{escape(short(float(value)))}</td>'
    return f"<td>{escape(value)}</td>"


def _image(data: bytes, about: str) -> str:
    kind = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), "")
    if not kind:
        raise ValueError("a picture in a page is a PNG, GIF, JPEG or WebP")
    said = escape(about, quote=True)
    return f'<img alt="{said}" src="data:{kind};base64,{base64.b64encode(data).decode()}">'


def _framed(markup: str, caption: str) -> str:
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{markup}{below}</figure>"
