"""`simops validate`: let a policy out, or do not, with a verdict whose own error rate is known."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.console import wide

if TYPE_CHECKING:
    from rich.console import Console

EPILOG = """\
The policy runs through scenarios in an engine that did not train it, until each kind of scenario is decided: pass,
fail, marginal, or not enough evidence. Looking after every episode costs nothing, so it stops as early as it may.
A gate that was stopped, even by `kill -9`, goes on where it was: the same command again.

  simops validate spec.yaml --bundle out/pendulum/bundle
  simops validate spec.yaml --plan --rate 0.99
  simops validate spec.yaml --set engine=mujoco --set suite.nominal.scenarios=800

Exit code 0 only if the verdict is pass, 3 for every other verdict.
"""
"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml), or the spec.lock of an earlier gate")
    parser.add_argument("--bundle", type=Path, help="judge this bundle, whatever the spec names")
    parser.add_argument(
        "--set", dest="overrides", metavar="KEY=VALUE", action="append", default=[], help="change a key"
    )
    parser.add_argument("--plan", action="store_true", help="say how many episodes it will take; runs nothing")
    parser.add_argument("--rate", type=float, default=0.0, help="with --plan: the true rate that is hoped for")
    parser.add_argument("--no-pictures", action="store_true", help="a report without pictures of failures")
    parser.add_argument("--out", type=Path, help="folder for episodes, verdict and report (default: out/gate-...)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from simops.core.errors import GateRefused
    from simops.ops.gate_display import display, summary
    from simops.ops.gate_report import write
    from simops.ops.gate_spec import load_order
    from simops.ops.validate import VERDICT, validate

    console = wide(soft_wrap=True)
    if args.plan:
        return _plan(args, console)
    order = load_order(args.spec, overrides=args.overrides, out=args.out, candidate=args.bundle)
    judged = order.policy.digest.partition("(")[0][:16]  # of a bundle a hash, of a policy in code its recipe
    console.print(f"{judged} in at most {len(order.suite):,} scenarios of {order.task.name}")
    try:
        with display(console) as watch:
            gate = validate(order, watch)
    except KeyboardInterrupt:
        console.print(f"stopped; every finished episode is kept in {order.out}, the same command goes on from there")
        raise
    summary(gate, console)
    for made in (gate.out / VERDICT, *write(order, gate, pictures=not args.no_pictures)):
        console.print(str(made))
    return 0 if gate.verdict.status == "pass" else GateRefused.exit_code


def _plan(args: argparse.Namespace, console: Console) -> int:
    """Say what every kind of scenario will take."""
    from rich.table import Table

    from simops.ops.gate_plan import plans
    from simops.ops.gate_spec import load_order

    order = load_order(args.spec, overrides=args.overrides, out=args.out, candidate=args.bundle)
    table = Table(box=None, pad_edge=False)
    for heading in ("scenarios", "asked", "true rate", "at most", "passes", "half by", "nine in ten by", "fixed size"):
        table.add_column(heading, justify="left" if heading == "scenarios" else "right")
    for name, plan in plans(order, args.rate).items():
        half, most = (str(n) if n else "never" for n in (plan.planned.median, plan.planned.p90))
        found = plan.planned
        cells = (f"{found.requirement:g}", f"{found.rate:g}", str(found.budget), f"{found.power:.1%}", half, most)
        table.add_row(name, *cells, str(plan.fixed) if plan.fixed else "")
    console.print(table)
    return 0
