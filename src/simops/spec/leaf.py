"""Reads scalars: each gives its value, or the reason why it has none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from simops.core.errors import nearest
from simops.spec.bounds import broken
from simops.spec.node import Items, Leaf, Node, Plain, Table, named
from simops.spec.shape import (
    Choice,
    Either,
    Fixed,
    Interval,
    Listing,
    Names,
    Number,
    Opaque,
    Plug,
    Record,
    Shape,
    Text,
    Truth,
)

_TOO_BIG = 2**64
_INTERPOLATION = re.compile(r"\$\{[^}]*\}")


class Read(NamedTuple):
    """A typed value, and what a spec with every default written out would say for it."""

    value: object
    plain: Plain
    said: bool = True
    """Whether a spec has words for it; a default that only Python can make has none."""


class Wrong(NamedTuple):
    """Why something has no value."""

    what: str
    fault: str = "CFG-002"
    attempt: str = ""


def fits(node: Node, shape: Shape) -> bool:
    """Whether `node` is of the right kind at first sight, whatever it holds."""
    value = node.value if isinstance(node, Leaf) else None
    match shape:
        case Truth():
            good = isinstance(value, bool)
        case Number(whole):
            good = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        case Text():
            good = isinstance(value, str)
        case Choice(values):
            good = isinstance(node, Leaf) and any(type(known) is type(value) and known == value for known in values)
        case Interval() | Listing() | Fixed():
            good = isinstance(node, Items)
        case Names() | Record():
            good = isinstance(node, Table)
        case Plug():
            good = isinstance(value, str) or isinstance(node, Table)
        case Either(options):
            good = any(fits(node, option) for option in options)
        case Opaque():
            good = False
    return good


def mismatch(node: Node, shape: Shape) -> Wrong:
    """Say that `node` is not what `shape` wants."""
    options = shape.options if isinstance(shape, Either) else (shape,)
    words = [str(word) for option in options if isinstance(option, Choice) for word in option.values]
    close = nearest(node.value, words) if isinstance(node, Leaf) and isinstance(node.value, str) else ""
    return Wrong(f"{named(node)}, want {shape.want}", attempt=close)


def read_leaf(node: Node, shape: Truth | Number | Text | Choice | Opaque) -> Read | Wrong:
    """Give the value of a scalar."""
    if not fits(node, shape) or not isinstance(node, Leaf):
        return mismatch(node, shape)
    match shape, node.value:
        case Number(), (int() | float()) as number:
            return _number(number, shape)
        case Text(), str(text):
            return _text(text, shape)
        case Choice(values), value:
            return Read(values[value], value)
        case _, value:
            return Read(value, value)


def _number(given: float, shape: Number) -> Read | Wrong:
    if shape.whole and abs(given) >= _TOO_BIG:
        return Wrong(f"{given!r} does not fit in 64 bits", "CFG-005")
    number = given if shape.whole else float(given)
    wrong = broken(number, shape.bounds)
    return Wrong(wrong, "CFG-005") if wrong else Read(number, number)


def _text(text: str, shape: Text) -> Read | Wrong:
    if _INTERPOLATION.search(text):
        return Wrong(f"{text!r} asks for interpolation, which is off", "SEC-002", "writing the value out")
    for pattern in shape.patterns:
        if not pattern.holds(text):
            return Wrong(f"{text!r} is refused, want {pattern}", "CFG-005")
    return Read(Path(text), Path(text).as_posix()) if shape.path else Read(text, text)
