"""`simops falsify`: which scenarios does a policy fail in, and where do they lie?"""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
The folder holds every failure as a scenario (failures/HASH.json), the worst of each cell as a suite for a gate
(suite.json), the map of them (map.json, map.png), a page (report.html) and all that was tried (tried.jsonl).
A search that was stopped goes on: the same command again.
A larger budget continues too.

  simops falsify spec.yaml --set search.episodes=2000
  simops falsify spec.yaml --bundle out/go2/bundle
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml), or the spec.lock of an earlier search")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--bundle", type=Path, metavar="DIR", help="the policy: a folder that an export made")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: out/falsify-<task>-<digest>)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.errors import ExtraError
    from simops.ops import falsify
    from simops.ops.failmap import draw, live, page, summary

    policy = None
    if args.bundle is not None:
        from simops.deploy.bundle import load

        policy = load(args.bundle)
    console = Console(soft_wrap=True, markup=False, highlight=False)  # a path stays whole, whatever is in it
    order = falsify.load_order(args.spec, overrides=args.overrides, out=args.out, policy=policy)
    axes = ", ".join(axis.name for axis in order.space.axes)
    console.print(f"searching {order.space.task.name} over {axes}, to {order.out}")
    try:
        with live(console) as watch:
            found = falsify.run(order, watch)
    except KeyboardInterrupt:
        console.print(f"stopped; every finished lap is kept in {order.out}, the same command goes on from there")
        raise
    console.print(summary(found))
    try:
        console.print(f"map: {draw(found, order.out / 'map.png')}")
    except ExtraError as error:
        console.print(f"no map: {error.what}; {error.attempt}")
    console.print(f"page: {page(found, order.out / 'report.html')}")
    console.print(f"failures: {order.out / falsify.FAILURES}")
    return 0
