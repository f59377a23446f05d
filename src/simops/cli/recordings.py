"""What `simops data` says of recordings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from simops.core.signal import Signal


def show(path: Path, console: Console) -> int:
    """Say which episodes and which signals are there."""
    from rich.table import Table

    from simops.core.recording import role_of
    from simops.data import files
    from simops.data.recordings import Recordings

    found = Recordings.open(path)
    sessions = {one.session for one in found.episodes}
    facts = {
        "recordings": f"{len(found):,} of {len(sessions):,} session{'' if len(sessions) == 1 else 's'}",
        "rows": f"{sum(one.rows for one in found.episodes):,}",
        "together": f"{sum(one.duration_s for one in found.episodes):,.1f} s",
        "robot": ", ".join(sorted({one.robot for one in found.episodes} - {""})) or "nobody said",
        "on disk": files.size(found.bytes),
        "from": f"{found.source}, by {found.recipe}",
        "origin": found.origin,
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)
    signals = Table(box=None, pad_edge=False)
    for heading in ("stream", "signal", "role", "unit", "rate", "in", "elements"):
        signals.add_column(heading, overflow="fold")
    streams: dict[tuple[str, str], list[float]] = {}
    shown: dict[tuple[str, str], Signal] = {}
    for one in found.episodes:
        for stream in one.streams:
            for signal in stream.schema.signals:
                streams.setdefault((stream.name, signal.name), []).append(stream.rate_hz)
                shown[stream.name, signal.name] = signal
    for (stream, name), rates in streams.items():
        signal = shown[stream, name]
        low, high = min(rates), max(rates)
        rate = f"{low:.4g} Hz" if high - low <= 0.01 * high else f"{low:.4g} to {high:.4g} Hz"
        elements = ", ".join(signal.labels) or (str(signal.size) if signal.shape else "")
        signals.add_row(stream, name, role_of(signal) or "-", signal.unit or "1", rate, str(len(rates)), elements)
    console.print()
    console.print(signals)
    for note in dict.fromkeys(note for one in found.episodes for note in one.notes):
        console.print(f"note: {note}")
    return 0


def check(path: Path, console: Console) -> int:
    """Verify every file to the last bit."""
    from simops.data import files, recordings

    found = recordings.check(path)
    for bad in found.bad:
        console.print(f"{bad.fault} {bad.name}: {bad.what}")
    console.print(f"{found.episodes:,} recordings, {files.size(found.bytes)}: every bit as written")
    return 2 if found.bad else 0


def doctor(path: Path, console: Console) -> int:
    """Say what looks wrong in recordings; 2 where a fit would take it for physics."""
    from simops.data.recordings import Recordings
    from simops.data.suspect import examine, listed

    kept = Recordings.open(path)
    found = examine(kept)
    if found:
        console.print(listed(found))
    grave = sum(one.grave for one in found)
    console.print(f"{len(kept):,} recordings: {grave} grave, {len(found) - grave} to know of")
    return 2 if grave else 0


def sensors(path: Path, console: Console, names: Sequence[str], out: Path | None) -> int:
    """Say what sensors get wrong, signal by signal, and write it as a spec can say it."""
    from math import isfinite

    from rich.table import Table

    from simops.data.recordings import Recordings
    from simops.ops.sensing import late, sensed, written

    kept = list(Recordings.open(path))
    found = sensed(kept, names)
    table = Table(box=None, pad_edge=False)
    for heading in ("signal", "element", "sessions", "step", "noise", "±", "lost", "at rest", "white/√Hz", "walk"):
        table.add_column(heading, justify="left" if heading in {"signal", "element"} else "right")
    for one in found:
        numbers = (one.step, one.noise, one.noise_spread, one.lost, one.bias, one.white, one.walk)
        shown = (f"{number:.3g}" if isfinite(number) else "" for number in numbers)
        table.add_row(one.signal, one.element, str(one.sessions), *shown)
    console.print(table)
    behind = late(kept)
    if behind is not None:
        words = f"{behind.seconds * 1e3:.1f} ± {behind.spread_s * 1e3:.1f} ms"
        console.print(f"positions are {words} behind their commands, the lag of drives included")
    text = written(found)
    if out is None:
        console.print(text)
    else:
        _ = out.write_text(text)
        console.print(f"written to {out}")
    return 0
