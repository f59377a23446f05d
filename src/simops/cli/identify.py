"""`simops identify`: joints from recordings of commands and positions."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

EPILOG = """\
Every prediction is from the first instant and the commands alone, over whole recordings. DIR gets numbers.json and
report.html: error beside that of simpler guesses, numbers with their spread, what the recordings do not tell.

  simops identify logs.parquet --map xl330_servo --rig rig.yaml --hold sin_sin-kp400      # a servo on a load
  simops identify motions.parquet --map so101_arm --rig rig.yaml --hold multisine         # an arm, joint by joint
  simops identify go2.parquet --scene go2.xml --gains go2.json --until 0.7                # a robot held in the air
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", type=Path, help="recordings (.parquet, .csv, a folder, or a log)")
    parser.add_argument("--map", default="", help="what the columns are: a shipped map or a .yaml; guessed by name")
    parser.add_argument("--rig", type=Path, metavar="FILE", help="a .yaml: chains under gravity, gains, tolerance")
    parser.add_argument("--hold", nargs="+", default=[], metavar="NAME", help="recordings to keep from the fit")
    parser.add_argument("--scene", type=Path, metavar="FILE", help="MJCF of the robot that was held in the air")
    parser.add_argument("--gains", type=Path, metavar="FILE", help="JSON with kp and kd, one number a joint")
    parser.add_argument("--until", type=float, default=1.0, help="share of the recording to learn from (default: all)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: out/identify-<name>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console
    from rich.table import Table

    from simops.core.errors import Problem, SpecError
    from simops.ops import chirp, identify, joints
    from simops.spec.load import load

    console = Console(soft_wrap=True, markup=False, highlight=False)
    if bool(args.scene) != bool(args.gains):
        raise SpecError("command line", [Problem("--scene", "comes with --gains", attempt="both or neither")])
    if not 0.1 <= args.until <= 1.0:
        raise SpecError("command line", [Problem("--until", f"is {args.until}", attempt="0.1 to 1")])
    recordings = identify.read(args.source, args.map)
    with console.status(f"identifying {args.source.name}"):
        if args.scene:
            outcome = identify.robot(recordings[0], args.scene, args.gains, chirp.How(until=args.until))
        else:
            rig = load(args.rig or "", joints.Rig).value
            outcome = identify.servos(recordings, rig, args.hold)
    table = Table(box=None, pad_edge=False)
    for heading in ("predicted by", "rms, learned from", "rms, held out", "mean, held out"):
        table.add_column(heading, justify="left" if heading == "predicted by" else "right")
    for way in outcome.scores[0].rms_rad:
        seen = outcome.total(way, held=False)
        unseen = [outcome.total(way, held=True, what=what) for what in ("rms", "mean")]
        table.add_row(way, f"{seen:.4f} rad", *("-" if math.isnan(u) else f"{u:.4f} rad" for u in unseen))
    console.print(table)
    report = identify.write(outcome, args.out or Path("out") / f"identify-{outcome.name}")
    console.print(f"numbers: {report.with_name('numbers.json')}")
    console.print(f"report: {report}")
    return 0
