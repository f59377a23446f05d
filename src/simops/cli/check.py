"""`simops check`: says everything that is wrong with a spec, or that nothing is."""

from __future__ import annotations

import argparse
from pathlib import Path

from simops.core.errors import Problem, SpecError

EPILOG = """\
Any spec will do: of rollout, train, learn, validate, falsify, doctor (two worlds) and crank, the file of a sealed
reality, and a suite of scenarios. Which one it is, its keys tell; where they would do for several, --as says it.

  simops check train.yaml --set trainer.epochs=4
  simops check gate.yaml --as validate
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take a spec, changes to it, and where to write its lock."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("spec", type=Path, help="a spec (.yaml), a lock (.lock) or a suite (.json)")
    parser.add_argument(
        "--as", dest="kind", default="", metavar="KIND", help="the command it is for, reality, or suite"
    )
    parser.add_argument("--set", action="append", default=[], metavar="a.b=c", help="change one key; may be repeated")
    parser.add_argument("--lock", type=Path, metavar="FILE", help="also write the spec with every default to FILE")


def run(args: argparse.Namespace) -> int:
    """Print the digest of a spec that holds; raise with every problem of one that does not."""
    from simops.ops.checked import check

    checked = check(args.spec, kind=args.kind, overrides=args.set)
    if args.lock is not None:
        if not checked.lock:
            raise SpecError(str(args.spec), [Problem("--lock", "a suite leaves nothing out", attempt="no --lock")])
        try:
            args.lock.write_text(checked.lock, encoding="utf-8")
        except OSError as error:
            problem = Problem("--lock", f"cannot be written: {error.strerror}", attempt="a folder that is there")
            raise SpecError(str(args.lock), [problem]) from error
    said = f", {checked.said}" if checked.said else ""
    print(f"{args.spec}: OK as {checked.kind}{said}, {checked.digest}")
    if checked.others:
        print(f"  its keys would do for {', '.join(checked.others)} too: --as KIND checks that")
    return 0
