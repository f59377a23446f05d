"""`simops replay`: run one scenario of a gate, a search or a crank again by its hash, to the last bit, and film it."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
  simops replay 3f9ac01d22b7
  simops replay 3f9ac01d22b7 --in out/gate-pendulum-1a2b3c4d --render failure.mp4
  simops replay 3f9ac01d22b7 --engine mujoco
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("hash", help="the scenario's hash, or how it begins")
    parser.add_argument(
        "--in", dest="folder", type=Path, metavar="FOLDER", help="a gate, a search or a crank (default: any under out)"
    )
    parser.add_argument("--engine", default="", help="another engine than the gate's: nothing is compared then")
    parser.add_argument("--render", type=Path, metavar="FILE", help="film it, .mp4 or .gif")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from rich.console import Console

    from simops.core.plugin import Registry
    from simops.core.protocols import Engine
    from simops.ops.again import again, show

    console = Console(soft_wrap=True, markup=False, highlight=False)
    make = Registry[Engine]("engine").load(args.engine, allow_files=True) if args.engine else None
    found = again(args.hash, args.folder, engine=make() if make else None)
    one, ran = found.scenario, found.trajectory
    console.print(f"{one.name}  {one.hash}")
    console.print(f"  {', '.join(f'{name} {value:.4g}' for name, value in one.params.items())}")
    for disturbance in one.disturbances:
        console.print(f"  {disturbance}")
    console.print(f"{ran.outcome} after {len(ran)} steps of {found.task.control_dt_s:g} s")
    said = {True: "every byte is the one the gate recorded", False: "NOT the episode that the gate recorded"}
    console.print(said[found.same] if found.same is not None else "nothing is recorded to compare it with")
    if args.render:
        made = show(found, args.render)
        console.print(f"{made.path}  {made.frames} pictures, {made.size / 1e6:.2f} MB")
    return 0 if found.same is not False else 2
