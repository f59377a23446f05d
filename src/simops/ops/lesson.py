"""What a person sees of a lesson: progress while it runs, a table at its end, and a report to look at."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simops.core.learning import Predicted, Progress
from simops.ops.axes import Axis, Drawing
from simops.ops.page import Page, tag
from simops.ops.plot import Line, Mark, forest, lines
from simops.ops.study import Studied, Tried, Watch

if TYPE_CHECKING:
    from rich.console import Console

REPORT = "report.html"
MOST_POINTS = 600


@contextmanager
def live(console: Console) -> Generator[Watch]:
    """Give a watcher that draws progress on `console`."""
    said = [0.0]
    if console.is_terminal:
        with Live(console=console, refresh_per_second=8, transient=True) as shown:
            yield lambda progress: shown.update(Text(_line(progress)))
        return

    def line(progress: Progress) -> None:
        now = time.perf_counter()
        if now - said[0] > 10.0:
            said[0] = now
            console.print(_line(progress))

    yield line


def summary(studied: Studied) -> Table:
    """One row a rung: its error on what was held out, its coverage, and whether it stands."""
    table = Table(title="on recordings held out", title_justify="left", box=None, pad_edge=False)
    for heading in ("simulator", "error", "90 % interval holds", "over what is below"):
        table.add_column(heading, overflow="fold")
    for one in studied.tried:
        name = one.candidate.name
        said = [f"{words}: {verdict.status}" for words, verdict in studied.verdicts.items() if words.startswith(name)]
        held = "" if one.coverage is None else f"{one.coverage:.1%}"
        named = ", ".join(f"{key} {value:.4g}" for key, value in one.named.items())
        table.add_row(f"{name}{' *' if one.candidate.name == studied.best.name else ''}", named, held, "; ".join(said))
    return table


def report(studied: Studied, folder: Path) -> Path:
    """Write the report; gives its path."""
    rig = studied.order.material.task.name
    best = next(one for one in studied.tried if one.candidate.name == studied.best.name)
    trained, held = studied.order.material.recordings, studied.order.held
    page = Page(f"What recordings say of {rig}", lead=f"{len(trained)} recordings learned from, {len(held)} held out")
    page.section("Is it better?")
    _ladder(page, studied)
    if studied.best.told:
        page.section("What was learned")
        page.draw(forest(_marks(best)), "In units of what was thought before: 0 is as it came, 1 its spread.")
        rows = [
            (
                t.name,
                t.nominal,
                t.mean,
                t.spread,
                f"{100 * max(0.0, t.contraction):.0f} %",
                tag("told" if t.trusted else "not told"),
            )
            for t in studied.best.told
        ]
        page.table(("param", "as it came", "learned", "spread", "spread gone", ""), rows)
    notes = (*studied.notes, *studied.best.notes)
    if notes:
        page.section("What could not be told")
        for note in notes:
            page.text(note)
    page.section("Error over horizon")
    page.draw(_horizon(studied.tried), "Share of the motion that is not explained, by how far ahead.")
    page.section("Predicted against recorded", "Recordings that nothing was learned from.")
    for drawing, caption in _beside(best, studied.tried[0]):
        page.draw(drawing, caption)
    for heading, (columns, *body) in studied.learned.tables.items():
        page.section(heading)
        page.table(columns, body)
    return page.write(folder / REPORT)


def _ladder(page: Page, studied: Studied) -> None:
    rows = [
        (
            one.candidate.name + (" (kept)" if one.candidate.name == studied.best.name else ""),
            ", ".join(f"{key} {value:.4g}" for key, value in one.named.items()),
            None if one.coverage is None else f"{one.coverage:.1%}",
        )
        for one in studied.tried
    ]
    page.table(("simulator", "error, mean over what was held out", "90 % interval holds"), rows)
    page.findings([finding for verdict in studied.verdicts.values() for finding in verdict.findings])


def _marks(one: Tried) -> list[Mark]:
    marks: list[Mark] = []
    for told in one.candidate.told:
        unit = told.before or 1.0
        middle = (told.mean - told.nominal) / unit
        reach = 1.645 * told.spread / unit
        kind = "pass" if told.trusted else "marginal"
        marks.append(Mark(label=told.name, value=middle, low=middle - reach, high=middle + reach, bound=0.0, kind=kind))
    return marks


def _horizon(tried: tuple[Tried, ...]) -> Drawing:
    curves = [Line(name=one.candidate.name, x=one.ahead[0], y=one.ahead[1]) for one in tried if one.ahead is not None]
    return lines(curves, x=Axis("ahead [s]"), y=Axis("not explained", low=0.0))


def _beside(best: Tried, nominal: Tried) -> list[tuple[Drawing, str]]:
    found: list[tuple[Drawing, str]] = []
    for place, one in enumerate(best.shown):
        plain = nominal.shown[place] if place < len(nominal.shown) else None
        names = list(best.errors)
        columns = range(min(len(one.names), 4))
        found += [(_overlay(one, plain, column), f"{names[place]}: {one.names[column]}") for column in columns]
    return found


def _overlay(one: Predicted, plain: Predicted | None, column: int) -> Drawing:
    rows = np.unique(np.linspace(0, len(one.time_s) - 1, MOST_POINTS).astype(int))
    time_s = one.time_s[rows]
    curves = [Line(name="recorded", x=time_s, y=one.recorded[rows, column])]
    low = None if one.low is None else one.low[rows, column]
    high = None if one.high is None else one.high[rows, column]
    curves.append(Line(name="predicted", x=time_s, y=one.expected[rows, column], low=low, high=high))
    if plain is not None and len(plain.time_s) == len(one.time_s):
        curves.append(Line(name="as it came", x=time_s, y=plain.expected[rows, column], dashed=True))
    return lines(curves, x=Axis("t [s]"), y=Axis(f"{one.names[column]} [{one.units[column]}]"))


def _line(progress: Progress) -> str:
    of = f" of {progress.total:,}" if progress.total else ""
    figures = "".join(f", {name} {value:.4g}" for name, value in progress.figures.items())
    return f"{progress.stage}: {progress.done:,}{of}{figures}"
