"""What a person sees while the crank turns: the turn, the stage, the numbers that moved, the time left."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from simops.gate import rate
from simops.ops.crank import FIGURES, Run, Watch
from simops.ops.turn import Turn

STAGES = ("learn", "train", "export", "explore", "validate", "trials", "diagnose")

LONGEST = 60
"""Letters of a changed value that a line shows."""


@contextmanager
def live(console: Console) -> Generator[Watch]:
    """Give a watcher that draws on `console`, or says a line for each step where it is no terminal."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4, transient=True) as panel:
            yield lambda run: panel.update(picture(run))
    else:
        yield _Lines(console).show


@final
class _Lines:
    def __init__(self, console: Console, every_s: float = 15.0) -> None:
        self._console, self._every_s, self._said, self._at = console, every_s, ("", -1), 0.0

    def show(self, run: Run) -> None:
        """A line when a step begins, and now and then while one lasts."""
        now, here = time.perf_counter(), (run.about, run.turn)
        if here != self._said and run.about:
            self._said, self._at = here, now
            self._console.print(f"turn {run.turn}: {run.stage}: {run.about}")
        elif run.training is not None and now - self._at > self._every_s:
            self._at = now
            self._console.print(f"turn {run.turn}: {run.stage}: {_lap(run)}")


def picture(run: Run) -> RenderableType:
    """The live panel."""
    whole = run.order.turns + 1
    head = Text(f"turn {run.turn} of {run.order.turns}: {run.stage}", style="bold")
    share = run.turn + (STAGES.index(run.stage) / len(STAGES) if run.stage in STAGES else 0.0)
    rows = Table.grid(padding=(0, 2))
    rows.add_row("doing", run.about)
    if run.training is not None and run.training.history:
        rows.add_row("training", _lap(run))
    rows.add_row("left", _left(run))
    parts: list[RenderableType] = [head, Padding(ProgressBar(total=whole, completed=share, width=64), 0), rows]
    if run.standing is not None and run.standing.turns:
        parts.append(table(run.standing.turns))
    return Group(*parts)


def table(turns: Sequence[Turn]) -> Table:
    """A row a turn: what was learned, what was tried, what became of it."""
    found = Table(title="turns", title_justify="left")
    for name in ("turn", "prediction error", "validated", "sealed success", "champion beside", "what became of it"):
        found.add_column(name, overflow="fold")
    for one in turns:
        found.add_row(
            str(one.number), _errors(one), _percent(None if one.validated is None else one.validated["success"]),
            _counted(one.tried), _counted(one.beside), one.ending,
        )  # fmt: skip
    return found


def words(one: Turn) -> str:
    """What became of a turn's candidate, and why."""
    said = [f"turn {one.number}: {one.ending}; {one.why}"]
    if one.diagnosed is not None:
        said.append(f"  failures come from: {one.diagnosed['cause']}; {one.diagnosed['why']}")
    said += [
        f"  changed: {edit.path} {_short(edit.before)} to {_short(edit.after)}" for p in one.applied for edit in p.edits
    ]
    said += [f"  proposed: {patch.name}" for patch in one.waiting]
    return "\n".join(said)


def _errors(one: Turn) -> str:
    if one.learned is None:
        return "nothing to learn from"
    said = f"{one.learned['before']:.3f} to {one.learned['after']:.3f}"
    return said if one.kept_simulator else f"{said}, not kept"


def _counted(said: Mapping[str, Any] | None) -> str:
    if said is None:
        return ""
    outcomes: list[str] = said["outcomes"]
    good = outcomes.count("success")
    within = rate.interval(good, len(outcomes) - good, 0.05)
    return f"{good} of {len(outcomes)} [{within.low:.0%}, {within.high:.0%}]"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _lap(run: Run) -> str:
    seen = run.training
    if seen is None or not seen.history:
        return ""
    figures = seen.history[-1].figures
    told = ", ".join(f"{name} {figures[name]:.3g}" for name in FIGURES if name in figures)
    return f"lap {len(seen.history)} of {seen.laps}, {told}"


def _left(run: Run) -> str:
    """By what the turns so far took; the first one knows no better than its training."""
    if run.left_s is None:
        return "not known yet"
    return f"about {run.left_s:.0f} s" if run.turn else f"{run.left_s:.0f} s of this training, then more"


def _short(value: str) -> str:
    """A value as it stands in a line; the whole of it is in the patch."""
    return value if 0 < len(value) <= LONGEST else f"{value[: LONGEST - 4]} ..." if value else "none"
