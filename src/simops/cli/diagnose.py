"""`simops diagnose`: what failed in a turn of a crank, made small, and what it comes from."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
Each kind of failure is shown by its smallest scenario, which replays anywhere by its hash. The cause is a first
guess by counterfactual replays, with the numbers that say so; `simops patch show` says what follows from it.

  simops diagnose out/crank-pendulum-1f0c3a2b --turn 1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take a run and a turn."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, help="folder of a crank")
    parser.add_argument("--turn", type=int, help="(default: the last that had failures)")
    parser.add_argument("--json", action="store_true", help="everything, scenarios included")


def run(args: argparse.Namespace) -> int:
    """Say it."""
    import json

    from rich.console import Console

    from simops.core.errors import DataError
    from simops.core.failure import words
    from simops.ops.kept import diagnosis

    found = diagnosis(args.run, args.turn)
    if found is None:
        raise DataError("no turn had failures to diagnose", where=str(args.run), attempt="simops show")
    turn, said = found
    if args.json:
        print(json.dumps(said, indent=1))
        return 0
    console = Console(soft_wrap=True, markup=False, highlight=False)
    console.print(f"turn {turn}: {said['cause']}: {said['why']}")
    for name, value in said["evidence"].items():
        console.print(f"  {name} {value:.4g}")
    for one in said["clusters"]:
        console.print(words(one))
    for patch in said["patches"]:
        console.print(f"patch at the level {patch['level']}: {', '.join(e['path'] for e in patch['edits'])}")
    return 0
