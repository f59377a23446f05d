"""What docs/reference.md must say: the help of every command, and the built-in plugins.

`python -m tests.house.reference` (or `make docs`) writes it there; a test checks that it is so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast
from unittest import mock

from simops.cli.main import COMMANDS, parser_of, top_parser
from simops.core.plugin import listing
from tests.house.tree import ROOT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "reference.md"
SECTION = "## `{}`\n"


def wanted() -> dict[str, str]:
    """The block that stands under each heading."""
    with mock.patch.dict("os.environ", {"COLUMNS": "100"}):
        blocks = {"simops": top_parser().format_help()}
        for command in COMMANDS:
            blocks |= {parser.prog: parser.format_help() for parser in _parsers(parser_of(command))}
    rows = [f"{row.kind:<7} {row.name:<22} {row.value}" for row in listing() if row.distribution == "simops"]
    return {**blocks, "plugins": "\n".join(rows) + "\n"}


def block(page: str, heading: str) -> str | None:
    """The first fenced block under `heading`, or None when the page lacks it."""
    found = re.search(_pattern(heading), page)
    return found[2] if found else None


def rewritten(page: str) -> str:
    """The page with every block as it should be; missing headings go to the end."""
    for heading, text in wanted().items():
        if block(page, heading) is None:
            page = f"{page.rstrip()}\n\n{SECTION.format(heading)}\n```text\n{text}```\n"
        else:
            page = re.sub(_pattern(heading), lambda found, text=text: found[1] + text + "```\n", page)
    return page


def _pattern(heading: str) -> str:
    return rf"({re.escape(SECTION.format(heading))}(?:(?!\n## |```)[\s\S])*```text\n)([\s\S]*?)```\n"


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A command's parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] argparse has no public way down
        choices = cast("object", action.choices)
        if isinstance(choices, dict):
            for child in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from _parsers(child)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
