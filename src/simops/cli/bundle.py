"""`simops bundle`: look at an exported policy, check it, compare two, make it smaller or quicker."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.console import wide

if TYPE_CHECKING:
    from rich.console import Console

    from simops.core.task import Task
    from simops.ops.variants import Proof

EPILOG = """\
  simops bundle check bundles/go2 --task velocity
  simops bundle optimise bundles/go2 --kind prune --keep 0.5 --out bundles/go2-half

A variant is a candidate only if its success was measured in the simulator and is not below its parent's by more
than the margin; whether it pays is measured on this machine.
"""
"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take one of four actions."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="{show,check,diff,optimise}", required=True)
    show = actions.add_parser("show", help="say what a bundle is")
    show.add_argument("path", type=Path)
    check = actions.add_parser("check", help="verify every byte and ask the golden questions")
    check.add_argument("path", type=Path)
    check.add_argument("--task", default="", help="compare the contract with this task's")
    diff = actions.add_parser("diff", help="say what two bundles differ in")
    diff.add_argument("one", type=Path)
    diff.add_argument("other", type=Path)
    optimise = actions.add_parser("optimise", help="make a variant, and measure what it costs and gains")
    optimise.add_argument("path", type=Path)
    optimise.add_argument("--kind", required=True, metavar="KIND", help="float16, int8, int8-dynamic, prune or student")
    optimise.add_argument("--out", type=Path, required=True, help="a new folder")
    optimise.add_argument("--task", default="", help="where success is measured (default: the policy's own task)")
    optimise.add_argument("--engine", default="mujoco", help="the same (default: %(default)s)")
    optimise.add_argument("--episodes", type=int, default=200, help="the same (default: %(default)s)")
    optimise.add_argument("--margin", type=float, default=0.05, help="how much lower success may be (default: 0.05)")
    optimise.add_argument("--data", type=Path, help="calibrate and teach on the observations of this dataset")
    optimise.add_argument("--keep", type=float, default=0.5, help="share of neurons that pruning keeps (default: 0.5)")
    optimise.add_argument(
        "--hidden", type=int, nargs="+", default=[64, 64], help="widths of a student (default: 64 64)"
    )
    optimise.add_argument("--unmeasured", action="store_true", help="do not measure success: never a candidate")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    actions: Mapping[str, Callable[[argparse.Namespace, Console], int]] = {
        "show": _show,
        "check": _check,
        "diff": _diff,
        "optimise": _optimise,
    }
    return actions[args.action](args, wide())


def _show(args: argparse.Namespace, console: Console) -> int:
    from rich.table import Table

    from simops.deploy.bundle import load

    bundle = load(args.path)
    contract = bundle.contract
    facts = {
        "digest": bundle.digest,
        "task": f"{contract.task}, robot {contract.robot or 'none'}",
        "acts": f"every {contract.control_dt_s:g} s ({1 / contract.control_dt_s:g} Hz)",
        "remembers": ", ".join(f"{s.name} {s.shape}" for s in contract.memory) or "nothing",
        "rows side by side": "the same bytes as one by one" if bundle.network.together else "one by one",
        "self-test": f"actions within {bundle.tested.action:.2g} of the trained ones, {bundle.tolerance:.1g} allowed",
        "on disk": f"{sum(bundle.sizes.values()):,} bytes, the graph {bundle.sizes['policy_1.onnx']:,}",
        **{name: str(value) for name, value in bundle.provenance.items()},
    }
    if bundle.report:
        facts["verdict"] = bundle.report["verdict"]
    grid = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        grid.add_row(name, value)
    console.print(grid)
    table = Table("", "signal", "shape", "unit", "frame", "elements", "low", "high")
    for how, signals in (("reads", contract.observation.signals), ("writes", (contract.action,))):
        for signal in signals:
            ends = (" ".join(f"{end:g}" for end in side) for side in (signal.low, signal.high))
            words = (how, signal.name, str(signal.shape), signal.unit, signal.frame, " ".join(signal.labels), *ends)
            table.add_row(*words)
    console.print(table)
    return 0


def _check(args: argparse.Namespace, console: Console) -> int:
    from simops.core.contract import Contract
    from simops.deploy.bundle import load

    bundle = load(args.path, contract=Contract.of(_task(args.task)) if args.task else None)
    console.print(f"{len(bundle.sizes)} files: every byte is the one that was exported")
    console.print(f"golden vectors: within {bundle.tested.action:.2g}, {bundle.tolerance:.1g} is allowed")
    if args.task:
        console.print(f"contract: that of {args.task}")
    return 0


def _diff(args: argparse.Namespace, console: Console) -> int:
    from rich.table import Table

    from simops.ops.beside import beside

    found = beside(args.one, args.other)
    if found.same:
        console.print("the same policy")
        return 0
    table = Table("", "", str(args.one), str(args.other))
    for what, rows in (("contract", found.contract), ("provenance", found.provenance)):
        for row in rows:
            table.add_row(what, row.what, row.mine, row.theirs)
    console.print(table)
    for name, worst in (found.tensors or {}).items():
        console.print(f"tensor {name}: largest difference {worst:.3g}")
    if found.tensors is None:
        console.print("tensors: not compared, that needs pip install 'simops[learn]'")
    elif not found.tensors:
        console.print("tensors: none is in both with the same shape")
    answers = "the contracts do not fit" if found.answers is None else f"largest difference {found.answers:.3g}"
    console.print(f"golden answers: {answers}")
    return 0


def _optimise(args: argparse.Namespace, console: Console) -> int:
    from simops.deploy.bundle import load
    from simops.ops.asked import recorded
    from simops.ops.variants import Recipe, joined, kind_of, optimise, replayed

    recipe = Recipe(kind=kind_of(args.kind), keep=args.keep, hidden=tuple(args.hidden))
    parent = load(args.path)
    asked = None
    if args.data is not None:
        from simops.data.store import Dataset

        sequences = recorded(Dataset.open(args.data), parent.contract)
        asked = joined([each for sequence in sequences for each in replayed(parent, sequence)])
    proof = None if args.unmeasured else _proof(args, parent.contract.task)
    made = optimise(args.path, args.out, recipe, proof=proof, asked=asked)
    step, cost = made.report["one_step"], made.report["cost"]
    console.print(f"{args.out}: {made.digest}")
    console.print(
        f"one step: largest difference {step['worst']:.3g}, rms {step['rms']:.3g} of {step['action_spread']:.3g}"
    )
    for who in ("parent", "variant"):
        one = cost[who]
        console.print(
            f"{who}: act {one['p50_us']:.1f} us at the median, {one['p99_us']:.1f} us at 99 %; "
            f"graph {one['graph_bytes']:,} bytes; process {one['peak_bytes'] / 1e6:.0f} MB"
        )
    console.print(made.report["verdict"])
    return 0


def _proof(args: argparse.Namespace, trained_for: str) -> Proof:
    from simops.core.plugin import Registry
    from simops.core.protocols import Engine
    from simops.ops.variants import Proof

    engine = Registry[Engine]("engine").load(args.engine, allow_files=True, root=Path.cwd())()
    task = _task(args.task or trained_for)
    return Proof(task=task, engine=engine, episodes=args.episodes, margin=args.margin)


def _task(name: str) -> Task:
    from simops.core.plugin import Registry
    from simops.core.task import Task

    return Registry[Task]("task").load(name, allow_files=True, root=Path.cwd())()
