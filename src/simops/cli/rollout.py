"""`simops rollout`: a spec in, randomised trajectories out."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
A run that was stopped, even by `kill -9`, goes on where it was: the same command again. Asking for more
episodes continues too. Anything else that changes what an episode is wants another --out.

  simops rollout spec.yaml --set rollout.parallel_envs=64 --set engine.threads=1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml), or the spec.lock of an earlier run")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--out", type=Path, help="folder for the dataset (default: out/<task>-<digest>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError
    from simops.ops.build import load_pass
    from simops.ops.chart import chart
    from simops.ops.display import display, summary
    from simops.ops.factory import run as produce

    console = Console(soft_wrap=True, markup=False, highlight=False)  # a path stays whole, whatever is in it
    order = load_pass(args.spec, overrides=args.overrides, out=args.out)
    console.print(f"{order.episodes:,} episodes of {order.recipe.task.name} to {order.out}")
    try:
        with display(console) as watch:
            progress = produce(order, watch)
    except KeyboardInterrupt:
        console.print(f"stopped; every finished wave is kept in {order.out}, the same command goes on from there")
        raise
    console.print(summary(progress))
    try:
        console.print(f"chart: {chart(order.out, order.out / 'summary.png')}")
    except ExtraError as error:
        console.print(f"no chart: {error.what}; {error.attempt}")
    console.print(f"look at it: simops data show {order.out}")
    return 0
