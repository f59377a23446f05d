"""`simops show`: one crank, turn by turn: what was learned, tried and decided, and what failed and why."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
  simops show out/crank-pendulum-1f0c3a2b
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take a run."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, help="folder of a crank")


def run(args: argparse.Namespace) -> int:
    """Say it."""
    from rich.console import Console
    from rich.table import Table

    from simops.ops.kept import summary, turns

    console = Console(soft_wrap=True, markup=False, highlight=False)
    said = summary(args.run)
    table = Table(box=None, pad_edge=False)
    for heading in ("turn", "error", "validated", "sealed", "live", "became", "changed", "proposed"):
        table.add_column(heading, overflow="fold")
    for one in turns(args.run):
        error = "" if one["error_after"] is None else f"{one['error_before']:.3f} to {one['error_after']:.3f}"
        shares = ["" if one[k] is None else f"{one[k]:.0%}" for k in ("validated", "success", "live_success")]
        changed = [*one["applied"], *(["simulator"] if one["kept_simulator"] else [])]
        waiting = ", ".join(one["waiting"])
        table.add_row(str(one["turn"]), error, *shares, one["ending"], ", ".join(changed), waiting)
    console.print(table)
    for one in turns(args.run):
        console.print(f"turn {one['turn']}: {one['why']}")
        if one["diagnosed"]:
            console.print(f"  failures come from: {one['diagnosed']['cause']}; {one['diagnosed']['why']}")
        for stage, name, digest in one["steps"]:
            console.print(f"  {stage}: {name} came to {digest[:12]}")
    console.print(f"ended: {said['ended']}" if said else "not over: the same `simops crank` goes on with it")
    return 0
