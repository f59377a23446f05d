"""Applies `--set a.b=value` to the tree of a spec, before anything in it is checked."""

from __future__ import annotations

from dataclasses import replace

from simops.core.errors import Problem
from simops.spec.node import Items, Leaf, Node, Table
from simops.spec.text import parse


def overridden(root: Node | None, override: str, problems: list[Problem]) -> Node | None:
    """Give `root` with one `a.b=value` written into it; note why where it cannot be."""
    path, equals, value = override.partition("=")
    path = path.strip()
    if not equals or not all(part for part in path.split(".")):
        problems.append(Problem(f"--set {override}", "names no key", attempt="--set a.b=value"))
        return root
    given = parse(value.strip())
    problems.extend(replace(problem, path=f"--set {path}", line=None) for problem in given.problems)
    if given.root is None or root is None or given.problems:
        return root
    try:
        return _placed(root, path.split("."), _without_lines(given.root))
    except LookupError as error:
        problems.append(Problem(f"--set {path}", str(error.args[0]), fault="CFG-001"))
        return root


def _placed(root: Node, keys: list[str], node: Node) -> Node:
    """Give `root` with `node` at `keys`, making maps on the way; a plugin's bare name becomes its `use`."""
    if not keys:
        return node
    key, *rest = keys
    if isinstance(root, Items):
        if not key.isdigit() or int(key) >= len(root.items):
            raise LookupError(f"{key!r} is no member of a list of {len(root.items)}")
        members = list(root.items)
        members[int(key)] = _placed(members[int(key)], rest, node)
        return replace(root, items=tuple(members))
    if isinstance(root, Leaf):
        bare = {"use": root} if isinstance(root.value, str) else {}
        if root.value is not None and not bare:
            raise LookupError(f"stands below {root.value!r}, which has no keys")
        root = Table(bare, root.line, dict.fromkeys(bare, root.line))
    below = root.entries.get(key, Table({}, None, {}))
    return root.with_entry(key, _placed(below, rest, node))


def _without_lines(node: Node) -> Node:
    match node:
        case Leaf(value):
            return Leaf(value, None)
        case Items(items):
            return Items(tuple(_without_lines(item) for item in items), None)
        case Table(entries):
            kept = {key: _without_lines(member) for key, member in entries.items()}
            return Table(kept, None, dict.fromkeys(kept))
