"""`simops patch`: look at what a crank would change in a spec, do it, or take it back."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """\
A patch edits the spec as you wrote it: comments, order and everything that it is not about stay. A spec that would
not hold any more is not written.

  simops patch show out/crank-pendulum --spec crank.yaml
  simops patch apply out/crank-pendulum capacity-1f0c --spec crank.yaml
  simops patch revert out/crank-pendulum capacity-1f0c --spec crank.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take one of three actions."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("show", "apply", "revert"))
    parser.add_argument("run", type=Path, help="folder of a crank")
    parser.add_argument("names", nargs="*", metavar="PATCH", help="names, or how they begin (default of show: all)")
    parser.add_argument("--spec", type=Path, help="the spec to change (default: the crank's own copy)")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    from simops.core.errors import Problem, SpecError
    from simops.ops.crank import SPEC
    from simops.ops.patches import Patches, applied, reverted, shown, write

    kept, spec = Patches(args.run), args.spec or args.run / SPEC
    names = args.names or (kept.names() if args.action == "show" else ())
    if args.action == "show":
        print("\n\n".join(shown(spec, kept.find(name)) for name in names) or f"{args.run} proposes nothing")
        return 0
    if not names or args.spec is None:
        what = "names no patch" if not names else "names no spec to change"
        attempt = ", ".join(kept.names()) if not names else "--spec crank.yaml"
        raise SpecError("command line", [Problem(f"patch {args.action}", what, attempt=attempt)])
    patches = [kept.find(name) for name in names]
    write(spec, applied(spec, patches) if args.action == "apply" else reverted(spec, patches))
    print(
        f"{spec}: {', '.join(patch.name for patch in patches)} {'applied' if args.action == 'apply' else 'taken back'}"
    )
    return 0
