"""`simops policy`: which policies there are, where they come from, and which is what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.console import wide

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from simops.ops.registry import Registry

EPILOG = """\
  simops policy add out/go2/bundle go2 --why "longer training"
  simops policy tag go2@3 champion --why "passed the gate" --verdict out/gate-velocity-1a2b3c4d/verdict.json
  simops policy lineage go2@champion --dot | dot -Tsvg > lineage.svg
"""
HOME = Path("registry")


def configure(parser: argparse.ArgumentParser) -> None:
    """Take one of six actions."""
    from argparse import RawDescriptionHelpFormatter

    parser.epilog = EPILOG
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.add_argument("--registry", type=Path, default=HOME, metavar="FOLDER", help="(default: %(default)s)")
    actions = parser.add_subparsers(dest="action", metavar="{list,show,add,tag,lineage,gc}", required=True)
    actions.add_parser("list", help="say which policies there are")
    show = actions.add_parser("show", help="say what versions a policy has and what happened to it, or about one")
    show.add_argument("ref", metavar="NAME[@VERSION]", help="a version is a number or a tag")
    add = actions.add_parser("add", help="keep a bundle as the next version of a policy")
    add.add_argument("bundle", type=Path)
    add.add_argument("name", help="1 to 64 of a-z, 0-9, '.', '_' and '-'")
    add.add_argument("--parent", action="append", default=[], metavar="NAME@VERSION", help="what it was made out of")
    add.add_argument("--why", default="", help="for whoever asks later")
    tag = actions.add_parser("tag", help="put a tag on a version, or take it off, or pin a version")
    tag.add_argument("ref", metavar="NAME[@VERSION]")
    tag.add_argument("tag", nargs="?", default="", help="as champion; leave out with --pin and --unpin")
    tag.add_argument("--why", required=True, help="for whoever asks later")
    tag.add_argument("--was", type=int, metavar="N", help="only if it is on version N now; 0 for none")
    tag.add_argument("--verdict", type=Path, help="what lets it through: champion and production want a passing one")
    how = tag.add_mutually_exclusive_group()
    how.add_argument("--off", action="store_true", help="take the tag off")
    how.add_argument("--pin", action="store_true", help="never remove the version's content")
    how.add_argument("--unpin", action="store_true", help="let gc remove it again")
    lineage = actions.add_parser("lineage", help="print where a version comes from")
    lineage.add_argument("ref", metavar="NAME[@VERSION]")
    lineage.add_argument("--dot", action="store_true", help="for Graphviz")
    gc = actions.add_parser("gc", help="remove the content of versions without a tag, now or before, or a pin")
    gc.add_argument("--keep", type=int, default=3, help="latest versions of each name that stay (default: %(default)s)")
    gc.add_argument("--dry-run", action="store_true", help="only say which")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    from simops.ops.registry import Registry

    actions: Mapping[str, Callable[[argparse.Namespace, Registry, Console], None]] = {
        "list": _list,
        "show": _show,
        "add": _add,
        "tag": _tag,
        "lineage": _lineage,
        "gc": _gc,
    }
    console = wide()
    with Registry(args.registry, create=args.action == "add") as registry:
        actions[args.action](args, registry, console)
    return 0


def _list(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    del args
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("policy", "versions", "latest", "tags"):
        table.add_column(heading, overflow="fold")
    for name in registry.names():
        versions = registry.versions(name)
        tags = ", ".join(f"{tag} {found.version}" for found in versions for tag in found.tags)
        table.add_row(name, str(len(versions)), versions[-1].at[:19], tags)
    console.print(table)


def _show(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    from rich.table import Table

    name, at, _ = args.ref.partition("@")
    chosen = (registry.find(args.ref),) if at else registry.versions(name)
    table = Table(box=None, pad_edge=False)
    for heading in ("version", "content", "added", "by", "tags", "state"):
        table.add_column(heading, overflow="fold")
    for found in chosen:
        state = ", ".join([found.state, *(["pinned"] if found.pinned else [])])
        table.add_row(found.ref, found.digest[:12], found.at[:19], found.who, ", ".join(found.tags), state)
    console.print(table)
    if at:
        console.print(f"folder: {registry.fetch(args.ref)}", soft_wrap=True)
    console.print()
    events = Table(box=None, pad_edge=False)
    for heading in ("when", "who", "what", "why"):
        events.add_column(heading, overflow="fold")
    for event in registry.history(name):
        if not at or event.version == chosen[0].version:
            what = f"{event.action} {event.label}".rstrip()
            events.add_row(event.at[:19], event.who, f"{name}@{event.version} {what}", event.why)
    console.print(events)


def _add(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    from simops.ops.adopt import adopt

    found = adopt(registry, args.name, args.bundle, parents=args.parent, why=args.why)
    console.print(f"{found.ref}  {found.digest[:12]}")


def _tag(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    from simops.core.errors import Problem, SpecError
    from simops.core.verdict import Verdict
    from simops.spec.load import text_of as read_text

    if bool(args.tag) == (args.pin or args.unpin):
        attempt = "a tag, as champion, or one of --pin and --unpin"
        raise SpecError("command line", [Problem("tag", "wants either", attempt=attempt)])
    if args.off:
        registry.untag(args.ref.partition("@")[0], args.tag, why=args.why)
        console.print(f"{args.tag} is off")
        return
    if args.pin or args.unpin:
        found = registry.pin(args.ref, why=args.why, pinned=args.pin)
    else:
        verdict = Verdict.parse(read_text(args.verdict)) if args.verdict else None
        found = registry.tag(args.ref, args.tag, why=args.why, was=args.was, verdict=verdict)
    console.print(f"{found.ref}: {', '.join([*found.tags, *(['pinned'] if found.pinned else [])]) or 'no tags'}")


def _lineage(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    from simops.ops.lineage import dot, tree

    root, nodes = registry.graph(args.ref)
    console.print(dot(nodes) if args.dot else tree(nodes, root), soft_wrap=True)


def _gc(args: argparse.Namespace, registry: Registry, console: Console) -> None:
    removed = registry.gc(keep=args.keep, dry_run=args.dry_run)
    words = "would be removed" if args.dry_run else "removed"
    for found in removed:
        console.print(f"{words}: {found.key}  {found.digest[:12]}")
    console.print(f"{len(removed)} {words}; names, numbers, lineage and history stay")
