# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at, and its numbers are tested.
"""A search for failures, as a person sees it: live, as a picture of the map, and as a page."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from simops.core.errors import ExtraError
from simops.core.signal import Array
from simops.data.files import publish
from simops.gate.space import Axis
from simops.ops import screen
from simops.ops.axes import Axis as Scale
from simops.ops.axes import short
from simops.ops.falsify import Found, Progress, Watch
from simops.ops.page import Page
from simops.ops.plot import Line, heat, lines

INK, SHADE = "#22303c", "#e9ecea"
SHOWN = 40
"""Rows of the page's table."""


def live(console: Console) -> AbstractContextManager[Watch]:
    """Give a watcher that draws progress on `console`, or says a line now and then where it is no terminal."""
    return screen.live(console, picture, _line)


def _line(progress: Progress) -> str:
    if progress.ended is not None:
        return ""
    said = f"{progress.phase}: {len(progress.tried):,} of {progress.total:,} episodes"
    return f"{said}, {progress.failures:,} failed"


def picture(progress: Progress) -> RenderableType:
    """Bar, phase, failures, the worst so far and what is left."""
    done, fresh = len(progress.tried), len(progress.tried) - progress.kept
    table = Table.grid(padding=(0, 2))
    table.add_row("episodes", f"{done:,} of {progress.total:,}")
    table.add_row("failed", f"{progress.failures:,}, {1000 * progress.failures / max(done, 1):.0f} in 1,000")
    if progress.tried:
        table.add_row("least margin", f"{min(one.margin for one in progress.tried):.3g}")
    rate = fresh / max(progress.elapsed_s, 1e-9)
    left = f"{(progress.total - done) / rate:.0f} s" if fresh else "not known yet"
    table.add_row("left", left)
    bar = ProgressBar(total=progress.total, completed=done, width=64)
    words = {"look": "looking evenly", "descend": "going down to a failure", "spread": "spreading over failures"}
    return Group(Text(f"{progress.task}: {words[progress.phase]}", style="bold"), Padding(bar, 0), table)


def summary(found: Found) -> Table:
    """What a search came to."""
    progress = found.progress
    table = Table(title="search for failures", title_justify="left", show_header=False)
    tried = len(progress.tried)
    table.add_row("episodes", f"{tried:,}" + (f", {progress.kept:,} there before" if progress.kept else ""))
    table.add_row("failed", f"{progress.failures:,}, {1000 * progress.failures / max(tried, 1):.0f} in 1,000")
    look = [one.margin < 0 for one in progress.tried if one.phase == "look"]
    table.add_row("of those drawn evenly", f"{sum(look):,} of {len(look):,}")
    names = " and ".join(found.order.space.axes[place].name for place in found.order.map)
    table.add_row("cells that fail", f"{len(found.map.failing):,} of {len(found.map.found):,} tried, over {names}")
    if progress.failures:
        worst = min(progress.tried, key=lambda one: one.margin)
        table.add_row("worst", f"{worst.hash[:16]}, margin {worst.margin:.3g}, {worst.outcome}")
    table.add_row("wall time", f"{progress.elapsed_s:.1f} s")
    return table


def field_of(found: Found) -> Array:
    """The least margin of each cell, down the second axis and across the first; NaN where nothing was tried."""
    cells = found.order.cells
    field = np.full((cells if len(found.order.map) > 1 else 1, cells), np.nan)
    for cell in found.map.found:
        across, *down = cell.place
        field[(*down, 0)[0], across] = cell.margin
    return field


def draw(found: Found, out: Path) -> Path:
    """Draw the map of failures into a PNG: red where the worst episode of a cell failed, green where none did."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import TwoSlopeNorm
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("pictures need matplotlib", attempt="pip install 'simops[render]'") from error
    field, axes = field_of(found), [found.order.space.axes[place] for place in found.order.map]
    known = field[np.isfinite(field)]
    figure = Figure(figsize=(7.2, 5.4 if len(axes) > 1 else 2.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.set_facecolor(SHADE)
    low, high = min(float(known.min(initial=0.0)), -1e-3), max(float(known.max(initial=0.0)), 1e-3)
    across, down = axes[0], axes[-1] if len(axes) > 1 else Axis("", 0.0, 1.0)
    shown = axis.imshow(
        field,
        origin="lower",
        aspect="auto",
        cmap="RdYlGn",
        norm=TwoSlopeNorm(0.0, low, high),
        extent=(across.low, across.high, down.low, down.high),
        interpolation="nearest",
    )
    axis.set_xlabel(_label(across), color=INK)
    axis.set_ylabel(_label(down), color=INK)
    if len(axes) == 1:
        axis.set_yticks([])
    figure.colorbar(shown, ax=axis, label="margin of the worst episode (below 0: failed)")
    failed, tried = found.progress.failures, len(found.progress.tried)
    axis.set_title(f"{found.progress.task}: {failed:,} of {tried:,} episodes fail; grey: nothing tried", fontsize=10)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    publish(out, drawn.getbuffer())
    return out


def page(found: Found, out: Path) -> Path:
    """Write a page with the map, how the search went, and the worst scenario of each failing cell."""
    progress, axes = found.progress, found.order.space.axes
    tried = len(progress.tried)
    made = Page(f"Failures of {progress.task}", lead=f"{progress.failures:,} of {tried:,} episodes fail")
    made.section("Map", "Each cell shows by how much its worst episode succeeded, above 0, or failed, below 0.")
    shown = [axes[place] for place in found.order.map]
    across, down = shown[0], shown[-1]
    cells, field = found.order.cells, field_of(found)
    names = [[short(a.at((i + 0.5) / cells)) for i in range(cells)] for a in (across, down)]
    rows = names[1] if len(found.order.map) > 1 else [""]
    flipped = field[::-1]  # up is more
    made.draw(
        heat(
            -flipped,
            across=names[0],
            down=rows[::-1],
            x=_label(across),
            y=_label(down) if len(rows) > 1 else "",
            split=True,
        ),
        "Red: the worst episode failed, the darker the worse; green: none did; open: nothing was tried.",
    )
    made.section("How it went")
    lap = np.arange(0, tried, found.order.together)
    failed = np.array([one.margin < 0 for one in progress.tried], float)
    share = [float(failed[at : at + found.order.together].mean()) for at in lap]
    made.draw(
        lines([Line(x=lap, y=share, dots=True)], x=Scale("episode"), y=Scale("share that fails", low=0.0, high=1.0))
    )
    made.section("The worst of each cell", f"At most {SHOWN} are listed; every failure is a file in failures/.")
    worst = sorted(found.map.failing, key=lambda cell: cell.margin)[:SHOWN]
    columns = ("scenario", "margin", "outcome", *(axis.name for axis in axes))
    made.table(columns, [_row(found, cell.worst) for cell in worst], sortable=True)
    return made.write(out)


def _row(found: Found, number: int) -> tuple[str | float, ...]:
    one = found.progress.tried[number]
    numbers = (axis.at(share) for axis, share in zip(found.order.space.axes, one.point, strict=True))
    return (one.hash[:16], one.margin, one.outcome, *numbers)


def _label(axis: Axis) -> str:
    return f"{axis.name} [{axis.unit}]" if axis.unit else axis.name
