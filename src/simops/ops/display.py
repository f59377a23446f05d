"""What a person sees while the factory runs: a live panel in a terminal, a line now and then in a log."""

from __future__ import annotations

import resource
from contextlib import AbstractContextManager

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from simops.ops.factory import Progress, Watch
from simops.ops.screen import live, span

PUBLISHED_RATE = 780_000 / (11 * 3600)
"""Trajectories a second of a published run of 780,000 in 11 hours on data-centre GPUs."""


def display(console: Console) -> AbstractContextManager[Watch]:
    """Give a watcher that draws progress on `console`, at most ten times a second."""
    return live(console, panel, _line, pause_s=0.1)


def panel(progress: Progress) -> RenderableType:
    """The live picture: bar, counts, rates, time left, disk."""
    finished = sum(progress.outcomes.values())
    share = progress.outcomes["success"] / finished if finished else float("nan")
    done = progress.done - progress.fresh + progress.settled
    table = Table.grid(padding=(0, 2))
    table.add_row("episodes", f"{progress.done:,} of {progress.total:,} on disk, {progress.in_flight:,} in flight")
    table.add_row("rate", f"{progress.rate:,.1f}/s")
    table.add_row("success", f"{share:.1%} of {finished:,}" if finished else "after the first wave")
    table.add_row("left", span(progress.left_s))
    if progress.filmed:
        table.add_row("filmed", f"{progress.filmed:,} episodes")
    table.add_row("disk", f"{_bytes(progress.bytes)} written, {_bytes(progress.free_bytes)} free")
    bar = ProgressBar(total=progress.total, completed=min(done, progress.total), width=64)
    return Group(Text(progress.stage, style="bold"), Padding(bar, 0), table)  # a bare bar ends no line


def summary(progress: Progress) -> Table:
    """What a run came to, beside the published yardstick."""
    table = Table(title="factory pass", title_justify="left", show_header=False)
    n, wall = max(progress.fresh, 1), max(progress.elapsed_s, 1e-9)
    kept = progress.done - progress.fresh
    rows = [
        ("trajectories", f"{progress.fresh:,} new" + (f", {kept:,} there before" if kept else "")),
        ("outcomes", ", ".join(f"{name} {count:,}" for name, count in progress.outcomes.items() if count) or "none"),
        ("wall time", span(wall)),
        ("rate", f"{progress.fresh / wall:,.1f} trajectories/s"),
        ("a yardstick", f"{PUBLISHED_RATE:.1f} trajectories/s: 780,000 in 11 h, published, on GPUs"),
        ("times real time", f"{progress.simulated_s / wall:,.0f}"),
        ("inside physics", f"{progress.physics_s / wall:.0%} of wall time, writing {progress.writing_s / wall:.0%}"),
        ("on disk", f"{_bytes(progress.bytes)}, {progress.bytes / n:,.0f} bytes a trajectory"),
        ("peak memory", _bytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _line(progress: Progress) -> str:
    if progress.stage == "done":
        return ""
    left = progress.left_s
    return (
        f"{progress.stage}: {progress.done:,} of {progress.total:,} episodes on disk, {progress.in_flight:,} in flight"
        + ("" if left is None else f", {progress.rate:,.1f}/s, {span(left)} left")
    )


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
