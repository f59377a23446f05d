"""`simops engines`: which there are, and how far each is from physics with known answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simops.cli.console import wide

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from simops.ops.engines import Answers
    from simops.testing.truths import Truth

"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take nothing, or `check` and the engines to check."""
    commands = parser.add_subparsers(dest="verb", metavar="check")
    check = commands.add_parser(
        "check",
        help="ask engines what has a known answer; exit 2 if one is further off than it may be",
        description="Ask engines what has a known answer; exit 2 if one is further off than it may be.",
    )
    check.add_argument("engine", nargs="+", help="an installed engine, or ./file.py:Thing")


def run(args: argparse.Namespace) -> int:
    """Print the engines, or the error table of each that is named."""
    from pathlib import Path

    from simops.ops import engines

    console = wide()
    if args.verb is None:
        for name in engines.names():
            console.print(name)
        return 0
    code = 0
    for name in args.engine:
        answers = engines.ask(name, root=Path())
        _print(console, answers)
        code = 2 if answers.broken else code
    return code


def _print(console: Console, answers: Answers) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("truth", "unit"):
        table.add_column(heading)
    for heading in ("expected", "got", "error", "bound"):
        table.add_column(heading, justify="right")
    table.add_column("ok")
    for truth in answers.truths:
        table.add_row(truth.name, truth.unit, *_figures(truth))
    console.print(answers.recipe, soft_wrap=True)
    console.print(table)
    held, unasked = answers.asked - len(answers.broken), len(answers.truths) - answers.asked
    console.print(f"{answers.engine}: {held} of {answers.asked} hold, {unasked} not asked")


def _figures(truth: Truth) -> tuple[str, str, str, str, str]:
    expected, bound = f"{truth.expected:.6g}", f"{truth.bound:.2g}"
    if truth.value is None or truth.error is None:
        return expected, "", "", bound, "not applicable"
    return expected, f"{truth.value:.6g}", f"{truth.error:.2g}", bound, "yes" if truth.holds else "NO"
