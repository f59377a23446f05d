"""`simops crank`: learn the simulator, train in it, validate, try on the robot, and again."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
Every step is kept by the digest of what it depends on. A crank that was stopped, even by `kill -9`, goes on with
the same command and comes to the same. `simops plan` says what would run, and why.

  simops crank examples/crank_pendulum/crank.yaml --turns 3
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml) with a trainer, a validation and a reality")
    parser.add_argument("--turns", type=int, default=3, help="turns after the first (default: %(default)s)")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: out/crank-<task>-<digest>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError, GateRefused
    from simops.ops import crank
    from simops.ops.crank_display import live, table, words
    from simops.ops.crank_page import draw, report
    from simops.ops.hardening import criteria

    console = Console(soft_wrap=True, markup=False, highlight=False)
    order = crank.load_order(args.spec, turns=args.turns, overrides=args.overrides, out=args.out)
    console.print(f"cranking {order.loaded.value.scene.task.name}, to {order.out}")
    try:
        with live(console) as watch:
            seen = crank.crank(order, watch)
    except KeyboardInterrupt:
        console.print(f"stopped; every finished step is kept in {order.out}, the same command goes on from there")
        raise
    turns = seen.standing.turns if seen.standing is not None else ()
    console.print(table(turns))
    for one in turns:
        console.print(words(one))
    if any(one.waiting for one in turns):
        console.print(f"proposed: simops patch show {order.out} --spec {args.spec}")
    console.print(f"ended: {seen.ended}")
    for one in criteria(turns, order.loaded.value.hardened):
        console.print(f"hardened, {one.name}: {'yes' if one.met else 'not yet'}; {one.words}")
    console.print(f"report: {report(seen)}")
    try:
        console.print(f"picture: {draw(turns, order.out / 'crank.png')}")
    except ExtraError as error:
        console.print(f"no picture: {error.what}; {error.attempt}")
    console.print(f"simops ui {order.out.parent} shows it, and every other run there")
    refused = all(one.ending in {"refused", "unchanged"} for one in turns)
    return GateRefused.exit_code if refused else 0
