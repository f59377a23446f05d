"""`simops simulator`: which simulators there are, in what they differ, and which one to train in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.console import wide

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from simops.ops.registry import Registry
    from simops.ops.simulators import Kept

EPILOG = """\
  simops learn learn.yaml --out out/arm
  simops simulator promote out/arm arm --why "first identification"     # exit 3 when it is not better
  simops simulator diff arm@1 arm@2
  simops simulator rollback arm --why "drifted"
"""
HOME = Path("registry")


def configure(parser: argparse.ArgumentParser) -> None:
    """Take one of five actions."""
    from argparse import RawDescriptionHelpFormatter

    parser.epilog = EPILOG
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("--registry", type=Path, default=HOME, metavar="FOLDER", help="(default: %(default)s)")
    actions = parser.add_subparsers(dest="action", metavar="{list,show,diff,promote,rollback}", required=True)
    actions.add_parser("list", help="say which simulators there are")
    show = actions.add_parser("show", help="say what is believed in a simulator, and what nobody could tell")
    show.add_argument("ref", metavar="NAME[@VERSION]|FOLDER", help="a version is a number or a tag")
    diff = actions.add_parser("diff", help="say in what two simulators differ")
    diff.add_argument("before", metavar="NAME[@VERSION]|FOLDER")
    diff.add_argument("after", metavar="NAME[@VERSION]|FOLDER")
    promote = actions.add_parser("promote", help="make a candidate champion if it is better on what was held out")
    promote.add_argument("folder", type=Path, help="what `simops learn` left")
    promote.add_argument("name", help="1 to 64 of a-z, 0-9, '.', '_' and '-'")
    promote.add_argument("--data", type=Path, metavar="PATH", help="recordings to judge by; those held back by default")
    promote.add_argument("--why", default="", help="for whoever asks later")
    rollback = actions.add_parser("rollback", help="make champion again what was champion before")
    rollback.add_argument("name")
    rollback.add_argument("--why", required=True, help="for whoever asks later")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    actions: Mapping[str, Callable[[argparse.Namespace, Console], None]] = {
        "list": _list,
        "show": _show,
        "diff": _diff,
        "promote": _promote,
        "rollback": _rollback,
    }
    console = wide()
    actions[args.action](args, console)
    return 0


def _open(args: argparse.Namespace, *, create: bool = False) -> Registry:
    from simops.ops.registry import Registry

    return Registry(args.registry, create=create)


def _kept(args: argparse.Namespace, ref: str) -> Kept:
    from simops.ops.release import KIND
    from simops.ops.simulators import MANIFEST, read

    folder = Path(ref)
    for place in (folder, folder / "simulator"):
        if (place / MANIFEST).is_file():
            return read(place)
    with _open(args) as registry:
        return read(registry.fetch(ref, kind=KIND))


def _list(args: argparse.Namespace, console: Console) -> None:
    from rich.table import Table

    from simops.ops.release import KIND

    table = Table(box=None, pad_edge=False)
    for heading in ("simulator", "versions", "latest", "tags"):
        table.add_column(heading, overflow="fold")
    with _open(args) as registry:
        for name in registry.names(kind=KIND):
            versions = registry.versions(name, kind=KIND)
            tags = ", ".join(f"{tag} {found.version}" for found in versions for tag in found.tags)
            table.add_row(name, str(len(versions)), versions[-1].at[:19], tags)
    console.print(table)


def _show(args: argparse.Namespace, console: Console) -> None:
    from rich.table import Table

    kept = _kept(args, args.ref)
    console.print(f"{kept.task.name}, {kept.candidate.name}, sha256 {kept.digest}", soft_wrap=True)
    console.print(f"engine: {kept.candidate.engine!r}", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for heading in ("param", "as it came", "learned", "spread", "spread gone", ""):
        table.add_column(heading, overflow="fold")
    for told in kept.candidate.told:
        gone = f"{100 * max(0.0, told.contraction):.0f} %"
        cells = (f"{told.nominal:.5g}", f"{told.mean:.5g}", f"{told.spread:.2g}", gone)
        table.add_row(told.name, *cells, "" if told.trusted else "not told")
    console.print(table)
    for name, figures in kept.facts.get("figures", {}).items():
        said = ", ".join(f"{what} {value:.4g}" for what, value in figures.items())
        console.print(f"held out, {name}: {said}", soft_wrap=True)
    for name in sorted(kept.candidate.parts):
        console.print(f"part: {name}, {len(kept.candidate.parts[name]):,} bytes")
    for note in kept.candidate.notes:
        console.print(f"note: {note}", soft_wrap=True)


def _diff(args: argparse.Namespace, console: Console) -> None:
    from rich.table import Table

    from simops.ops.release import difference

    found = difference(_kept(args, args.before), _kept(args, args.after))
    if not found:
        console.print("they are the same")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "before", "after"):
        table.add_column(heading, overflow="fold")
    for row in found:
        table.add_row(*row)
    console.print(table)


def _promote(args: argparse.Namespace, console: Console) -> None:
    from simops.ops.lesson import live
    from simops.ops.release import promote

    with _open(args, create=True) as registry, live(console) as watch:
        found = promote(registry, args.name, args.folder, data=args.data, why=args.why, watch=watch)
    for other, verdict in found.verdicts.items():
        console.print(f"over {other}: {verdict.status}, {verdict.findings[0].note}", soft_wrap=True)
    console.print(f"{found.version.ref}: {', '.join(found.version.tags)}")


def _rollback(args: argparse.Namespace, console: Console) -> None:
    from simops.ops.release import rollback

    with _open(args) as registry:
        found = rollback(registry, args.name, why=args.why)
    console.print(f"{found.ref}: {', '.join(found.tags)}")
