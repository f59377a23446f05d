"""`simops coverage`: how much of what is believed was tried, and what is missing?"""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
The folder holds coverage.png, where orange is what was never tried. With --close, missing.json there is a suite of
scenarios that try what was not tried, at most so many: run it, and name it beside the dataset to see the holes closed.

  simops coverage out/pick_and_place
  simops coverage out/pick_and_place out/falsify/failures --bins 10 --close 200 --out out/coverage
  simops coverage out/gate-pendulum-1a2b3c4d
  simops coverage suite.json --spec spec.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "sources",
        type=Path,
        nargs="+",
        help="all that was tried: datasets, folders of a gate or a search, suites (.json), folders of scenarios",
    )
    parser.add_argument("--spec", type=Path, help="a spec (.yaml) whose belief counts (default: the first dataset's)")
    parser.add_argument("--bins", type=int, default=8, help="into how many each param is cut (default: %(default)s)")
    parser.add_argument("--close", type=int, default=0, metavar="N", help="write at most so many missing scenarios")
    parser.add_argument("--out", type=Path, default=Path("out/coverage"), help="folder (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError, Problem, SpecError
    from simops.data.files import make_folder
    from simops.ops import coverage

    if not 2 <= args.bins <= 100:
        raise SpecError("command line", [Problem("--bins", f"is {args.bins}, want 2 to 100", fault="CFG-005")])
    belief, task = None, ""
    if args.spec is not None:
        belief, task = coverage.asked(args.spec)
    tried = coverage.measured(args.sources, belief=belief, task=task, bins=args.bins)
    console = Console(soft_wrap=True, markup=False, highlight=False)  # a path stays whole, whatever is in it
    for line in coverage.lines(tried):
        console.print(line)
    make_folder(args.out)
    try:
        console.print(f"picture: {coverage.draw(tried, args.out / 'coverage.png')}")
    except ExtraError as error:
        console.print(f"no picture: {error.what}; {error.attempt}")
    if args.close:
        path, found = coverage.close(tried, args.close, args.out)
        after = coverage.closed(tried, found).coverage
        console.print(f"{len(found)} scenarios that are missing: {path}")
        console.print(f"with them: pairs {tried.coverage.pairwise:.1%} -> {after.pairwise:.1%}")
    return 0
