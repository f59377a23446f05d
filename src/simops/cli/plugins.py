"""`simops plugins`: what is installed, read from package metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simops.cli.console import wide
from simops.core import plugin

if TYPE_CHECKING:
    import argparse

"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take an optional kind."""
    parser.add_argument("kind", nargs="?", choices=plugin.KINDS, help="only plugins of this kind")


def run(args: argparse.Namespace) -> int:
    """Print one row a plugin; imports none of them."""
    from rich.table import Table

    kinds = (args.kind,) if args.kind else ()
    table = Table(box=None, pad_edge=False)
    for heading in ("kind", "name", "object", "package"):
        table.add_column(heading, overflow="fold")
    for row in plugin.listing(*kinds):
        table.add_row(row.kind, row.name, row.value, row.origin)
    wide().print(table)
    return 0
