"""Reads the sentences under a dataclass's fields, so that they reach the schema and the help."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def field_docs(make: Callable[..., object]) -> dict[str, str]:
    """The docstring under each field of a class, its bases included; nothing for a function or where no source is."""
    if not isinstance(make, type):
        return {}
    found: dict[str, str] = {}
    for cls in reversed(make.__mro__):
        found.update(_own_docs(cls))
    return found


def first_sentence(make: Callable[..., object]) -> str:
    """The first line of a class's or function's own docstring, unless `dataclass` wrote it."""
    doc = inspect.cleandoc(make.__doc__ or "").partition("\n")[0]
    name = getattr(make, "__name__", "")
    return "" if doc.startswith(f"{name}(") else doc


def _own_docs(cls: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            docs[field.target.id] = " ".join(inspect.cleandoc(below.value.value).split())
    return docs
