"""`simops data`: look at trajectories on disk, ask them, check them, carry them out and in."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simops.cli import recordings
from simops.cli.console import wide
from simops.core.errors import Problem, SpecError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from simops.data.store import Dataset

"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take one of seven actions."""
    actions = parser.add_subparsers(
        dest="action", metavar="{show,query,check,doctor,sensors,export,import}", required=True
    )
    show = actions.add_parser("show", help="say what is in a dataset, or in recordings")
    show.add_argument("path", type=Path)
    query = actions.add_parser("query", help="ask one SELECT over the tables steps, episodes and frames")
    query.add_argument("path", type=Path)
    query.add_argument("sql", help="as 'SELECT outcome, count(*) FROM episodes GROUP BY outcome'")
    query.add_argument("--csv", action="store_true", help="print comma separated values, all of them")
    query.add_argument("--rows", type=int, default=100, help="rows of the table at most (default: %(default)s)")
    query.add_argument("--unverified", action="store_true", help="do not verify the files first: faster, for a look")
    check = actions.add_parser("check", help="verify every file to the last bit")
    check.add_argument("path", type=Path)
    check.add_argument("--repair", action="store_true", help="move what is bad to quarantine")
    doctor = actions.add_parser(
        "doctor", help="find swapped joints, wrong signs and units, gaps and ends in recordings"
    )
    doctor.add_argument("path", type=Path, help="recordings that were imported")
    sensors = actions.add_parser("sensors", help="learn from recordings what sensors get wrong, as a spec can say it")
    sensors.add_argument("path", type=Path, help="recordings that were imported")
    sensors.add_argument("--signal", action="append", default=[], help="only these; all that is measured by default")
    sensors.add_argument("--out", type=Path, help="write the sensors of a spec there")
    export = actions.add_parser("export", help="write a dataset for another program")
    export.add_argument("path", type=Path)
    export.add_argument("--to", choices=("lerobot",), required=True)
    export.add_argument("--out", type=Path, required=True, help="a new folder")
    export.add_argument("--task", default="", help="the instruction in words, for policies that read one")
    export.add_argument("--outcome", action="append", choices=("success", "failure", "timeout"), help="only these")
    come = actions.add_parser("import", help="read what a robot or another program wrote")
    come.add_argument("source", type=Path, help="a file, or a folder of them")
    come.add_argument("--out", type=Path, required=True, help="the new folder")
    come.add_argument("--map", default="", help="what the columns mean: a shipped map, as xl330_servo, or a .yaml")
    come.add_argument("--format", dest="form", default="", help="the importer, if looking at the files does not tell")
    come.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="over the map")
    come.add_argument("--from", dest="format", choices=("lerobot",), help="make a dataset to train from instead")
    come.add_argument("--origin", choices=("robot", "sim"), help="where the data of such a dataset comes from")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    actions: Mapping[str, Callable[[argparse.Namespace, Console], int]] = {
        "show": _show,
        "query": _query,
        "check": _check,
        "sensors": lambda args, console: recordings.sensors(args.path, console, args.signal, args.out),
        "doctor": lambda args, console: recordings.doctor(args.path, console),
        "export": _export,
        "import": _import,
    }

    return actions[args.action](args, wide())


def _show(args: argparse.Namespace, console: Console) -> int:
    from simops.data.recordings import there

    if there(args.path):
        return recordings.show(args.path, console)
    from rich.table import Table

    from simops.data import files
    from simops.data.frames import films
    from simops.data.store import Dataset

    dataset = Dataset.open(args.path)
    count, stored, header = len(dataset), dataset.bytes, dataset.header
    rows = sum(one.rows for one in dataset.shards)
    facts = {
        "episodes": f"{count:,}",
        "steps": f"{rows - count:,} ({(rows - count) * header.control_dt_s:,.0f} s at {header.control_dt_s:g} s)",
        **{f"  {name}": f"{number:,} ({number / count:.1%})" for name, number in sorted(dataset.outcomes.items())},
        "on disk": f"{files.size(stored)} in {len(dataset.shards)} shards"
        + (f", {stored / count:,.0f} bytes a trajectory" if count else ""),
        "films": f"{len(films(dataset.path)):,}",
        **_troubles(dataset),
        **{name: _said(value) for name, value in vars(header.provenance).items()},
        "params": ", ".join(f"{name} [{unit}]" if unit else name for name, unit in header.params.items()) or "none",
        "rewards": ", ".join(header.terms) or "none",
        "contract": header.schema.digest[:12],
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)
    signals = Table(box=None, pad_edge=False, title_justify="left")
    for heading in ("signal", "shape", "unit", "frame", "elements"):
        signals.add_column(heading, overflow="fold")
    for signal in header.schema.signals:
        shape = " × ".join(map(str, signal.shape)) or "1"
        signals.add_row(signal.name, shape, signal.unit or "1", signal.frame, ", ".join(signal.labels))
    console.print()
    console.print(signals)
    return 0


def _troubles(dataset: Dataset) -> dict[str, str]:
    """What a reader should know first."""
    found: dict[str, str] = {}
    if dataset.quarantined:
        found["quarantine"] = ", ".join(f"shard {number}" for number in dataset.quarantined)
    if dataset.unfinished:
        found["unfinished"] = "1 shard: a writer is at work, or was stopped"
    return found


def _said(value: object) -> str:
    return ", ".join(map(str, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else str(value)


def _query(args: argparse.Namespace, console: Console) -> int:
    from simops.data.query import query

    answer = query(args.path, args.sql, verify=not args.unverified)
    if args.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name, first in zip(answer.columns, answer.rows[0] if answer.rows else answer.columns, strict=True):
        table.add_column(name, justify="right" if isinstance(first, int | float) else "left", overflow="fold")
    for row in answer.rows[: args.rows]:
        table.add_row(*(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row))
    console.print(table)
    if len(answer.rows) > args.rows:
        console.print(f"and {len(answer.rows) - args.rows:,} rows more; --rows or --csv shows them")
    return 0


def _check(args: argparse.Namespace, console: Console) -> int:
    from simops.data import files
    from simops.data import recordings as kept
    from simops.data.check import check
    from simops.data.store import UNFINISHED

    if kept.there(args.path):
        return recordings.check(args.path, console)
    with _progress(console) as progress:
        found = check(args.path, repair=args.repair, watch=_watch(progress, "verifying"))
    for bad in found.bad:
        console.print(f"{bad.fault} {bad.name}: {bad.what}")
    verdict = f"{found.episodes:,} episodes in {found.shards} shards, {files.size(found.bytes)}: every bit as written"
    console.print(verdict if found.shards or not found.bad else "nothing sound is left")
    if found.unfinished:
        console.print(f"{UNFINISHED} 1 unfinished shard; whoever writes next discards it")
    if found.bad and found.repaired:
        console.print(f"moved to {args.path / 'quarantine'}; run again what made them")
    elif found.bad:
        console.print(f"simops data check {args.path} --repair moves them to quarantine")
    return 2 if found.bad else 0


def _export(args: argparse.Namespace, console: Console) -> int:
    from simops.data import lerobot

    outcomes = tuple(args.outcome or ("success", "failure", "timeout"))
    with _progress(console) as progress:
        watch = _watch(progress, "exporting")
        done = lerobot.export(args.path, args.out, task=args.task, outcomes=outcomes, watch=watch)
    console.print(f"{done.episodes:,} episodes, {done.frames:,} frames, as LeRobot {lerobot.VERSION} in {done.path}")
    for note in done.notes:
        console.print(f"note: {note}")
    return 0


def _import(args: argparse.Namespace, console: Console) -> int:
    if args.format is None:
        return _bring(args, console)
    from simops.data.lerobot_read import adopt

    if args.out.exists() and args.out.resolve() == args.source.resolve():
        raise SpecError("command line", [Problem("--out", "is the folder to read", attempt="another folder")])
    with _progress(console) as progress:
        done = adopt(args.source, args.out, origin=args.origin, watch=_watch(progress, "importing"))
    console.print(f"{done.episodes:,} episodes, {done.frames:,} frames, in {args.out}")
    for note in done.notes:
        console.print(f"note: {note}")
    return 0


def _bring(args: argparse.Namespace, console: Console) -> int:
    from simops.ops.recordings import bring

    with _progress(console) as progress:
        bar = _watch(progress, "importing")
        found = bring(
            args.source,
            args.out,
            how=args.map,
            form=args.form,
            settings=args.settings,
            watch=lambda done: bar(done, 0),
        )
    rows = sum(one.rows for one in found.episodes)
    console.print(f"{len(found):,} recording{'' if len(found) == 1 else 's'}, {rows:,} rows, in {args.out}")
    for note in dict.fromkeys(note for one in found.episodes for note in one.notes):
        console.print(f"note: {note}")
    return 0


def _progress(console: Console) -> Progress:
    """A bar on a terminal, nothing in a pipe."""
    from rich.progress import Progress

    return Progress(console=console, transient=True, disable=not console.is_terminal)


def _watch(progress: Progress, what: str) -> Callable[[int, int], None]:
    task = progress.add_task(what, total=None)

    def watch(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)

    return watch
