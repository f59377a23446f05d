"""`simops init`: a project that runs, to be changed into one's own."""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Say which arguments the command takes."""
    parser.add_argument("folder", type=Path, help="where to; made if it is not there")


def run(args: argparse.Namespace) -> int:
    """Do it, and give the exit code."""
    from simops.ops.scaffold import scaffold

    for path in scaffold(args.folder):
        print(path)
    print(f"now: cd {args.folder} && simops rollout spec.yaml")
    return 0
