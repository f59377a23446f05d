"""`simops export`: a checkpoint in, a bundle out."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
The network is compared with what was trained on 10,000 observations, and leaves only if it gives the same actions.

  simops export out/pendulum --out bundles/pendulum
  simops bundle show bundles/pendulum
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", type=Path, help="a checkpoint (.safetensors), or the folder of a training")
    parser.add_argument("--out", type=Path, required=True, help="the bundle to make, a new folder")
    parser.add_argument("--task", default="", help="where its golden observations come from (default: its own task)")
    parser.add_argument("--engine", default="mujoco", help="the same (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from simops.core.plugin import Registry
    from simops.core.protocols import Engine
    from simops.core.task import Task
    from simops.ops.export import export_checkpoint

    root = Path.cwd()
    engine = Registry[Engine]("engine").load(args.engine, allow_files=True, root=root)()
    task = Registry[Task]("task").load(args.task, allow_files=True, root=root)() if args.task else None
    made = export_checkpoint(args.source, args.out, engine=engine, task=task)
    parity = made.parity
    print(f"{made.folder}: {made.bundle.digest}")
    print(f"largest difference of an action over {parity.rows:,} observations: {parity.action:.2g}", end="")
    print(f" (the network's own rounding is {parity.rounding:.2g}); rows side by side: ", end="")
    print("the same bytes" if parity.together else "other bytes, so they go one by one")
    return 0
