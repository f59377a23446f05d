"""`simops schema`: prints the JSON Schema of a spec, for editors."""

from __future__ import annotations

import argparse
import json

EPILOG = """\
KIND is rollout, train, learn, validate, falsify, doctor (two worlds), crank, or reality (the file of a sealed one).
Keep it in a file and begin a spec with: # yaml-language-server: $schema=FILE

  simops schema train > train.schema.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take which spec is meant; the head of a spec says where the schema is kept."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("kind", nargs="?", default="rollout", metavar="KIND", help="which spec (default: rollout)")


def run(args: argparse.Namespace) -> int:
    """Print the schema of a spec, with every installed plugin and its fields."""
    from simops.core.errors import Problem, SpecError, nearest
    from simops.spec.kinds import KINDS
    from simops.spec.plugins import installed_plugins
    from simops.spec.schema import json_schema

    if args.kind not in KINDS:
        attempt = nearest(args.kind, KINDS) or ", ".join(KINDS)
        raise SpecError("command line", [Problem("KIND", f"no spec is called {args.kind!r}", attempt=attempt)])
    print(json.dumps(json_schema(KINDS[args.kind], plugins=installed_plugins()), indent=2))
    return 0
