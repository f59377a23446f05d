"""`simops plan`: what a crank would do, and why, before anything does."""

from __future__ import annotations

import argparse

EPILOG = """\
A step is done anew only where something that it depends on has changed; that is what it names. What comes after a
step that has to run depends on what comes out of it.

  simops plan crank.yaml --turns 3
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    from simops.cli.crank import configure as same

    same(parser)
    parser.epilog = EPILOG


def run(args: argparse.Namespace) -> int:
    """Say it."""
    from rich.console import Console
    from rich.table import Table

    from simops.ops.crank import load_order
    from simops.ops.planned import plan

    order = load_order(args.spec, turns=args.turns, overrides=args.overrides, out=args.out)
    table = Table(box=None, pad_edge=False)
    for heading in ("turn", "step", "", "why"):
        table.add_column(heading, overflow="fold")
    for row in plan(order):
        table.add_row(str(row.turn), row.stage, row.will, row.why)
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"{order.out}: nothing was touched")
    console.print(table)
    return 0
