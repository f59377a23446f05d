"""`simops train`: a spec in, a trained policy out."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
A training that was stopped, even by `kill -9`, goes on with --resume and comes to the same bytes. The folder
holds checkpoint.safetensors, metrics.jsonl, curves.png and event files for TensorBoard.

  simops train spec.yaml --set trainer.laps=300 --set reward.track_velocity=2
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml), or the spec.lock of an earlier training")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: out/<task>-<digest>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError
    from simops.ops import train
    from simops.ops.curves import draw, live, summary

    console = Console(soft_wrap=True, markup=False, highlight=False)  # a path stays whole, whatever is in it
    order = train.load_order(args.spec, overrides=args.overrides, out=args.out)
    console.print(f"learning {order.course.task.name}, to {order.out}")
    with live(console) as watch:
        seen = train.run(order, watch, resume=args.resume)
    console.print(summary(seen))
    console.print(f"checkpoint: {order.out / train.CHECKPOINT}, sha256 {seen.checkpoint}")
    try:
        if seen.history:
            console.print(f"curves: {draw(seen.history, order.out / 'curves.png', title=order.course.task.name)}")
    except ExtraError as error:
        console.print(f"no curves: {error.what}; {error.attempt}")
    if seen.stopped:
        console.print(f"stopped; as it was: {order.out / train.STOPPED}; the same command with --resume goes on")
        return 130
    return 0
