"""What a person sees while a gate runs: every kind of scenario with its interval, which shrinks until it decides."""

from __future__ import annotations

from contextlib import AbstractContextManager

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from simops.core.verdict import Status
from simops.gate.judge import Standing
from simops.ops.screen import live
from simops.ops.validate import Gate, Seen, Watch

COLOURS: dict[Status, str] = {"pass": "green", "fail": "red", "marginal": "yellow", "not enough evidence": "cyan"}
WIDTH = 40


def display(console: Console) -> AbstractContextManager[Watch]:
    """Give a watcher that draws on `console`: live in a terminal, a line now and then in a log."""
    return live(console, panel, _line, pause_s=0.125)


def _line(seen: Seen) -> str:
    if seen.stage == "done":
        return ""
    each = "; ".join(f"{s.category} {s.successes} of {s.counted}, above {s.interval.low:.3f}" for s in seen.standings)
    return f"{seen.stage}: {each or 'nothing yet'}"


def panel(seen: Seen) -> RenderableType:
    """The live picture."""
    said = f"{seen.stage}   {seen.episodes:,} episodes"
    if seen.flagged or seen.lost:
        said += f", {seen.flagged} that the audit does not believe, {seen.lost} that never ended"
    return Group(Text(said, style="bold"), table(seen.standings))


def table(standings: tuple[Standing, ...]) -> Table:
    """A row for each kind of scenario."""
    made = Table(box=None, pad_edge=False)
    for heading, right in (("scenarios", False), ("succeeded", True), ("of", True), ("0", False), ("asked", True)):
        made.add_column(heading, justify="right" if right else "left", no_wrap=True)
    made.add_column("interval", no_wrap=True)
    made.add_column("", no_wrap=True)
    for s in standings:
        ends = f"[{s.interval.low:.3f}, {s.interval.high:.3f}]"
        status = Text(s.status, style=COLOURS[s.status])
        made.add_row(s.category, str(s.successes), str(s.counted), bar(s), f"{s.asked:g}", ends, status)
    return made


def bar(standing: Standing) -> Text:
    """The interval between 0 and 1, and what is asked."""
    low, high = (round(end * (WIDTH - 1)) for end in standing.interval)
    asked = round(standing.asked * (WIDTH - 1))
    colour = COLOURS[standing.status]
    made = Text()
    for i in range(WIDTH):
        inside = low <= i <= high
        sign = "┃" if i == asked else "━" if inside else "·"
        made.append(sign, style="bold" if i == asked else colour if inside else "dim")
    return made


def summary(gate: Gate, console: Console) -> None:
    """What a gate came to, on a terminal or in a log."""
    console.print(table(gate.standings))
    for finding in gate.verdict.findings:
        if finding.check != "success rate":
            console.print(Text(str(finding), style=COLOURS[finding.status] if finding.status != "pass" else ""))
    for finding in gate.gap:
        console.print(Text(str(finding), style="" if finding.status == "pass" else "yellow"))
    console.print(Text(f"verdict: {gate.verdict.status}", style=f"bold {COLOURS[gate.verdict.status]}"))
