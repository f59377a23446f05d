"""Where commands print their tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200
"""Columns when nobody's terminal decides, so that `| grep` meets whole rows."""


def wide(*, soft_wrap: bool = False) -> Console:
    """As wide as the terminal, or wide enough for whole rows where there is none; prints words as they are."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, soft_wrap=soft_wrap, markup=False, highlight=False)
