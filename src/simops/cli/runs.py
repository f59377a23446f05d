"""`simops runs`: which cranks there are, and what they came to."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
  simops runs out
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take a folder."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, nargs="?", default=Path("out"), help="(default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Say it."""
    from rich.console import Console
    from rich.table import Table

    from simops.ops.kept import runs, turns

    table = Table(box=None, pad_edge=False)
    for heading in ("run", "turns", "live success", "champion", "ended"):
        table.add_column(heading, overflow="fold")
    for path, said in runs(args.folder):
        done = turns(path)
        rates = [one["live_success"] for one in done if one["live_success"] is not None]
        champion = str(said["champion"])[:12] if said else ""
        ended = str(said["ended"]) if said else "not over"
        table.add_row(str(path), str(len(done)), f"{rates[-1]:.0%}" if rates else "", champion, ended)
    Console(soft_wrap=True, markup=False, highlight=False).print(table)
    return 0
