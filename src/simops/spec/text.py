"""Reads YAML 1.2, and only that: core-schema scalars, no tags, no merge keys, no duplicate keys, every line kept.

Size, depth and aliases are capped while parsing, before anything is built from them.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple, final

from simops.core.errors import Problem
from simops.spec.events import Event, NotYamlError, events
from simops.spec.node import Items, Leaf, Node, Scalar, Table, join

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_NODES = 100_000
"""Counted with every alias written out."""

_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)")
_NAN = re.compile(r"\.nan|\.NaN|\.NAN")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BASES = {"0o": 8, "0x": 16}


class Parsed(NamedTuple):
    """A tree, unless the text could not be read at all, and everything wrong with it so far."""

    root: Node | None
    problems: list[Problem]


def parse(text: str) -> Parsed:
    """Read one YAML document."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        what = f"the spec has {size:,} bytes, the most is {MAX_BYTES:,}"
        return Parsed(None, [Problem("", what, attempt="moving data out of the spec", fault="CFG-011")])
    composer = _Composer(text)
    try:
        root = composer.document()
    except _RefusedError as refused:
        return Parsed(None, [*composer.problems, refused.problem])
    except NotYamlError as error:
        return Parsed(None, [*composer.problems, Problem("", f"not YAML: {error.what}", line=error.line)])
    return Parsed(root, composer.problems)


def resolve_scalar(text: str) -> Scalar:
    """Give a plain scalar its YAML 1.2 core-schema value: `no` is text, `010` is ten, `1e3` is a float."""
    value: Scalar = text
    if _NULL.fullmatch(text):
        value = None
    elif _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        value = bool(_TRUE.fullmatch(text))
    elif _INT.fullmatch(text):
        base = _BASES.get(text[:2], 10)
        # more digits than any 64-bit number has: as good as infinite, and slow to convert
        value = math.inf if len(text) > 80 else int(text.removeprefix("0o").removeprefix("0x"), base)
    elif _FLOAT.fullmatch(text):
        value = float(text)
    elif _INFINITE.fullmatch(text):
        value = math.copysign(math.inf, -1.0 if text.startswith("-") else 1.0)
    elif _NAN.fullmatch(text):
        value = math.nan
    return value


@final
class _RefusedError(Exception):
    """Reading stops here."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.what)


class _Built(NamedTuple):
    """A node, how many nodes it stands for and how deep it goes."""

    node: Node
    size: int
    height: int


@final
class _Composer:
    """Builds the tree from parser events; recursion is bounded by the depth cap."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._events: Iterator[Event] = events(text)
        self._anchors: dict[str, _Built] = {}
        self._nodes = 0

    def document(self) -> Node:
        """Read the one document; an empty text is null."""
        next(self._events)
        event = next(self._events)
        if event.kind == "stream_end":
            return Leaf(None, 1)
        if event.version not in {None, (1, 2)}:
            raise _RefusedError(Problem("", "want YAML 1.2", line=1, attempt="leaving out the %YAML line"))
        root = self._node(next(self._events), "", 1).node
        next(self._events)
        event = next(self._events)
        if event.kind != "stream_end":
            raise _RefusedError(Problem("", "a second document starts here, want one", line=event.line))
        return root

    def _node(self, event: Event, path: str, depth: int) -> _Built:
        line = event.line
        if depth > MAX_DEPTH:
            raise _RefusedError(Problem(path, f"nested deeper than {MAX_DEPTH} levels", line=line, fault="CFG-011"))
        if event.kind == "alias":
            built = self._alias(event.anchor, path, line)
            if depth + built.height > MAX_DEPTH + 1:
                what = f"an alias nests deeper than {MAX_DEPTH} levels"
                raise _RefusedError(Problem(path, what, line=line, fault="CFG-011"))
            self._count(built.size, path, line)
            return built
        self._count(1, path, line)
        if event.tag is not None:
            what = f"the tag {event.tag} is refused: a spec holds data, not types"
            self.problems.append(Problem(path, what, line=line, fault="SEC-001"))
        if event.kind == "map":
            built = self._table(path, line, depth)
        elif event.kind == "items":
            built = self._items(path, line, depth)
        else:
            built = _Built(Leaf(self._scalar(event, path), line), 1, 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = built
        return built

    def _count(self, nodes: int, path: str, line: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            what = f"more than {MAX_NODES:,} values once its aliases are written out"
            raise _RefusedError(Problem(path, what, line=line, fault="CFG-011"))

    def _alias(self, anchor: str | None, path: str, line: int) -> _Built:
        if anchor is None or anchor not in self._anchors:
            raise _RefusedError(Problem(path, f"no anchor is called {anchor!r} before this line", line=line))
        return self._anchors[anchor]

    def _scalar(self, event: Event, path: str) -> Scalar:
        text, line = event.text, event.line
        if _SURROGATE.search(text):
            self.problems.append(Problem(path, "half of a surrogate pair is not text", line=line, fault="CFG-002"))
            return ""
        if not event.plain:
            return text
        value = resolve_scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            what = f"{text[:40]} is not a finite number"
            self.problems.append(Problem(path, what, line=line, fault="CFG-004"))
            return 0.0
        return value

    def _items(self, path: str, line: int, depth: int) -> _Built:
        members: list[_Built] = []
        while (event := next(self._events)).kind != "items_end":
            members.append(self._node(event, join(path, len(members)), depth + 1))
        node = Items(tuple(member.node for member in members), line)
        return _sized(node, members)

    def _table(self, path: str, line: int, depth: int) -> _Built:
        entries: dict[str, Node] = {}
        key_lines: dict[str, int | None] = {}
        members: list[_Built] = []
        while (event := next(self._events)).kind != "map_end":
            key = self._key(event, path, depth)
            member = self._node(next(self._events), join(path, "?" if key is None else key), depth + 1)
            members.append(member)
            if key is None:
                continue
            if key in entries:
                what = f"given twice, on lines {key_lines[key]} and {event.line}"
                self.problems.append(Problem(join(path, key), what, line=event.line, fault="CFG-003"))
                continue
            entries[key] = member.node
            key_lines[key] = event.line
        return _sized(Table(entries, line, key_lines), members)

    def _key(self, event: Event, path: str, depth: int) -> str | None:
        line = event.line
        key = self._node(event, join(path, "?"), depth + 1).node
        if not isinstance(key, Leaf) or not isinstance(key.value, str):
            shown = key.value if isinstance(key, Leaf) else "a collection"
            problem = Problem(path, f"{shown} is not a name, want a key", line=line, fault="CFG-002")
        elif key.value == "<<" and event.plain:
            problem = Problem(
                path, "merge keys are not YAML 1.2", line=line, attempt="writing the keys out", fault="CFG-001"
            )
        else:
            return key.value
        self.problems.append(problem)
        return None


def _sized(node: Node, members: list[_Built]) -> _Built:
    size = 1 + sum(member.size for member in members)
    return _Built(node, size, 1 + max((member.height for member in members), default=0))
