"""`simops learn`: recordings in, a better simulator out."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
The folder holds simulator/ (the candidate: text, weights and a manifest), report.html and report.png. Nothing trains
in a candidate before `simops simulator promote` found it better than what it replaces.

  simops learn learn.yaml --data logs/ --out out/arm
  simops learn learn.yaml --data logs/ --propose next.csv     # which motion would tell most
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml): what was recorded of which rig, and what to learn")
    parser.add_argument("--data", type=Path, metavar="PATH", help="the recordings, in place of those the spec names")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--resume", action="store_true", help="go on where an earlier lesson was stopped")
    parser.add_argument("--propose", type=Path, metavar="FILE", help="write the motion to record next, as CSV")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long that lasts (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: out/learn-<name>-<digest>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError
    from simops.ops import study
    from simops.ops.lesson import live, report, summary
    from simops.ops.lesson_chart import chart

    console = Console(soft_wrap=True, markup=False, highlight=False)
    order = study.load_order(args.spec, overrides=args.overrides, data=args.data, out=args.out)
    count = f"{len(order.material.recordings)} to learn from, {len(order.held)} held out"
    console.print(f"learning {order.material.task.name} from recordings: {count}, to {order.out}")
    with live(console) as watch:
        studied = study.run(order, watch, resume=args.resume)
    console.print(summary(studied))
    for note in (*studied.notes, *studied.best.notes):
        console.print(f"note: {note}")
    console.print(f"report: {report(studied, order.out)}")
    try:
        console.print(f"picture: {chart(studied, order.out / 'report.png')}")
    except ExtraError as error:
        console.print(f"no picture: {error.what}; {error.attempt}")
    console.print(f"candidate: {order.out / study.FOLDER}, sha256 {studied.kept.digest}")
    if args.propose is not None:
        from simops.ops.propose import propose

        for line in propose(studied, args.propose, seconds=args.seconds):
            console.print(line)
    return 0
