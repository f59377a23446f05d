# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at, and its numbers are tested.
"""Learning curves, drawn in a terminal while they grow and into a PNG when they are done."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from simops.core.errors import ExtraError
from simops.core.training import Lap
from simops.data.files import publish
from simops.ops import screen
from simops.ops.screen import span
from simops.ops.train import Run, Watch

BARS = "▁▂▃▄▅▆▇█"
INK, GOOD = "#22303c", "#2a7f62"
SHOWN = ("reward", "success", "episode_s", "loss", "held_out/data")


def live(console: Console) -> AbstractContextManager[Watch]:
    """Give a watcher that draws curves on `console`, or says a line now and then where it is no terminal."""
    return screen.live(console, picture, _line)


def _line(run: Run) -> str:
    if not run.history or len(run.history) >= run.laps:
        return ""
    f = run.history[-1].figures
    told = ", ".join(f"{name} {f[name]:.3g}" for name in (*SHOWN, "steps_per_s") if name in f)
    return f"lap {run.history[-1].number} of {run.laps}: {told}, {span(run.left_s)} left"


def picture(run: Run) -> RenderableType:
    """Curves, terms and the split of the time, as they are now."""
    if not run.history:
        return Text(f"{run.task}: starting")
    now = run.history[-1].figures
    table = Table.grid(padding=(0, 2))
    for name in SHOWN:
        if name in now:
            table.add_row(name, f"{now[name]:.3g}", spark([lap.figures.get(name, np.nan) for lap in run.history]))
    for name in sorted(now):
        if name.startswith("term/"):
            line = spark([lap.figures.get(name, np.nan) for lap in run.history])
            table.add_row(Text(f"  {name[5:]}", style="dim"), f"{now[name]:.3g}", line)
    table.add_row("steps", f"{now.get('steps', 0):,.0f}", f"{now.get('steps_per_s', 0):,.0f}/s")
    table.add_row("time", _split([run.history[-1]]), "")
    table.add_row("left", span(run.left_s), f"learning rate {now.get('learning_rate', 0):.2g}")
    bar = ProgressBar(total=run.laps, completed=len(run.history), width=64)
    return Group(Text(f"{run.task}: lap {len(run.history)} of {run.laps}", style="bold"), Padding(bar, 0), table)


def summary(run: Run) -> Table:
    """What a training came to."""
    table = Table(title="training", title_justify="left", show_header=False)
    fresh = run.history[run.resumed :]
    last = run.history[-1].figures if run.history else {}
    table.add_row(
        "laps", f"{len(run.history):,} of {run.laps:,}" + (f", {run.resumed:,} before" if run.resumed else "")
    )
    table.add_row("steps", f"{last.get('steps', 0):,.0f}")
    table.add_row("wall time", span(run.trained_s))
    if fresh:
        table.add_row("split", _split(fresh))
    if "reward" in last:
        table.add_row("while learning", ", ".join(f"{name} {last[name]:.3g}" for name in SHOWN if name in last))
    if run.outcomes:
        tried = sum(run.outcomes.values())
        told = ", ".join(f"{name} {count / tried:.1%}" for name, count in run.outcomes.items() if count)
        table.add_row("trained", f"{told} of {tried:,} fresh episodes")
    if run.dumps:
        table.add_row("broken", f"{run.dumps:,} episodes, kept in {run.out / 'broken'}")
    return table


def spark(numbers: Sequence[float], width: int = 40) -> str:
    """A curve of one line."""
    known = np.array([number for number in numbers if np.isfinite(number)])
    if not len(known):
        return ""
    parts = np.array([part.mean() for part in np.array_split(known, min(width, len(known)))])
    low, high = parts.min(), parts.max()
    level = (parts - low) / (high - low) if high > low else np.zeros(len(parts))
    return "".join(BARS[round(share * (len(BARS) - 1))] for share in level)


def draw(history: Sequence[Lap], out: Path, *, title: str) -> Path:
    """Draw the curves of a training into a PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("curves need matplotlib", attempt="pip install 'simops[render]'") from error
    names = [name for name in SHOWN if any(name in lap.figures for lap in history)]
    names += sorted({name for lap in history for name in lap.figures if name.startswith("term/")})
    names += [name for name in ("noise", "learning_rate", "level", "steps_per_s") if name in history[-1].figures]
    columns = 4
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.1 * rows), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axis, name in zip(axes, names, strict=False):
        told = [(lap.figures["steps"], lap.figures[name]) for lap in history if name in lap.figures]
        axis.plot(*zip(*told, strict=True), color=GOOD, linewidth=1.2)
        axis.set_title(name.removeprefix("term/"), fontsize=8, color=INK)
        axis.tick_params(labelsize=6)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    figure.suptitle(title, color=INK)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    publish(out, drawn.getbuffer())
    return out


def _split(laps: Sequence[Lap]) -> str:
    parts = {
        name: sum(lap.figures.get(f"{name}_s", 0.0) for lap in laps) for name in ("physics", "collection", "learning")
    }
    whole = max(sum(parts.values()), 1e-9)
    words = {"physics": "physics", "collection": "other collection", "learning": "learning"}
    return ", ".join(f"{words[name]} {spent / whole:.0%}" for name, spent in parts.items())
