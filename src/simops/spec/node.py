"""The tree that a spec is before its types are known: leaves, items and tables that remember their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

Scalar = bool | int | float | str | None
"""What a YAML 1.2 scalar can be."""

Plain = Scalar | list["Plain"] | dict[str, "Plain"]
"""What JSON can say: a spec without its types."""


@final
@dataclass(frozen=True)
class Leaf:
    """One scalar."""

    value: Scalar
    line: int | None
    """Counted from one; absent when it came from `--set`."""


@final
@dataclass(frozen=True)
class Items:
    """A sequence."""

    items: tuple[Node, ...]
    line: int | None


@final
@dataclass(frozen=True)
class Table:
    """A mapping from names."""

    entries: Mapping[str, Node]
    line: int | None
    key_lines: Mapping[str, int | None]
    """Where each key stands."""

    def with_entry(self, key: str, node: Node) -> Table:
        """Give a copy in which `key` holds `node`."""
        return replace(self, entries={**self.entries, key: node}, key_lines={**self.key_lines, key: node.line})


Node = Leaf | Items | Table


def join(path: str, key: str | int) -> str:
    """Write the key path of a member: `sensors[0].std`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def named(node: Node) -> str:
    """Quote what stands there and name its type, for an error message."""
    match node:
        case Items():
            return "it is a list"
        case Table():
            return "it is a map"
        case Leaf(None):
            return "nothing is given"
        case Leaf(bool(value)):
            return f"{str(value).lower()} is a bool"
        case Leaf(value):
            text = repr(value)
            short = text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"
            kind = type(value).__name__
            return f"{short} is {'an' if kind == 'int' else 'a'} {kind}"
