# pyright: basic
# ruamel's tree has no types; what is made of it here is compared as text.
"""Applies patches to the text of a spec: comments, order and the look of everything else stay as they are.

after = patched(text, [patch])          # raises where two patches want a key to be different things
print(diff(text, after))
"""

from __future__ import annotations

import difflib
import io
import json
from collections.abc import Sequence
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from simops.core.errors import Problem, SpecError
from simops.core.patch import Edit, Patch, contradictions


def patched(text: str, patches: Sequence[Patch], *, source: str = "spec") -> str:
    """The text with every patch applied, or a `SpecError` that names what cannot be."""
    problems = [
        Problem(
            path, f"{one.name} and {other.name} want it to be different things", attempt="one of them", fault="CRK-004"
        )
        for path, one, other in contradictions(patches)
    ]
    edits = [edit for patch in patches for edit in patch.edits]
    if problems:
        raise SpecError(source, problems)
    return edited(text, edits, source=source)


def reverted(text: str, patches: Sequence[Patch], *, source: str = "spec") -> str:
    """The text as it was before these patches; raises where a value is no longer what they made it."""
    back = [Edit(e.path, e.before, e.after) for patch in reversed(patches) for e in reversed(patch.edits)]
    return edited(text, back, source=source)


def edited(text: str, edits: Sequence[Edit], *, source: str = "spec") -> str:
    """The text with these values changed; each must be now what its edit says it was."""
    yaml, problems = _yaml(text), list[Problem]()
    try:
        root = yaml.load(text)
    except (YAMLError, RecursionError) as error:
        raise SpecError(source, [Problem("", f"is no YAML: {type(error).__name__}")]) from error
    if not isinstance(root, CommentedMap):
        raise SpecError(source, [Problem("", "is no table", attempt="a spec")])
    plain = _dumped(yaml, root)
    for edit in edits:
        wrong = _apply(root, edit)
        if wrong:
            problems.append(Problem(edit.path, wrong, attempt="a patch made for this spec", fault="CRK-005"))
    if problems:
        raise SpecError(source, problems)
    return _woven(text, plain, _dumped(yaml, root))


def value(text: str, path: str) -> str:
    """What stands at a key path, as JSON; empty where nothing does."""
    node = _yaml(text).load(text)
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            return ""
        node = cast("dict[str, Any]", node)[key]
    return _json(node)


def overridden(text: str, overrides: Sequence[str], *, source: str = "spec") -> str:
    """The text with every `a.b=value` written into it, as `--set` has it; values are YAML."""
    for override in overrides:
        path, equals, said = override.partition("=")
        if not equals or not path.strip():
            raise SpecError(source, [Problem(f"--set {override}", "names no key", attempt="--set a.b=value")])
        try:
            given = YAML(typ="safe", pure=True).load(said)
        except YAMLError as error:
            raise SpecError(source, [Problem(f"--set {override}", f"is no YAML: {error}")]) from None
        path = path.strip()
        text = edited(text, [Edit(path, json.dumps(given), value(text, path))], source=source)
    return text


def diff(before: str, after: str, *, name: str = "spec.yaml") -> str:
    """What changed, as a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines)


def _yaml(text: str) -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.version = (1, 2)
    if any(line.startswith("  - ") for line in text.splitlines()):
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dumped(yaml: YAML, root: Any) -> str:  # noqa: ANN401 (ruamel's tree)
    out = io.StringIO()
    yaml.dump(root, out)
    return "".join(line for line in out.getvalue().splitlines(keepends=True) if line not in {"%YAML 1.2\n", "---\n"})


def _apply(root: CommentedMap, edit: Edit) -> str:
    """Change one value; what is wrong with that, in words, or nothing."""
    *way, last = edit.path.split(".")
    node = root
    for key in way:
        below = node.get(key)
        if below is None:
            below = CommentedMap()
            below.fa.set_block_style()
            node[key] = below
        elif isinstance(below, str):  # a plugin's bare name
            below = CommentedMap({"use": below})
            below.fa.set_flow_style()
            node[key] = below
        if not isinstance(below, CommentedMap):
            return f"{key} is no table"
        node = below
    now = _json(node[last]) if last in node else ""
    if now != (json.dumps(json.loads(edit.before), sort_keys=True) if edit.before else ""):
        return f"it is {now or 'not there'} now, and the patch was made for {edit.before or 'none'}"
    if not edit.after:
        del node[last]
        _prune(root, way)
        return ""
    old = node.get(last)
    new = _styled(json.loads(edit.after))
    if isinstance(old, CommentedSeq) and isinstance(new, CommentedSeq) and not old.fa.flow_style():
        new.fa.set_block_style()
    node[last] = new
    return ""


def _prune(root: CommentedMap, way: list[str]) -> None:
    """Take tables away that hold nothing any more."""
    for depth in range(len(way), 0, -1):
        above = root
        for key in way[: depth - 1]:
            above = above[key]
        if len(above[way[depth - 1]]):
            return
        del above[way[depth - 1]]


def _styled(said: Any) -> Any:  # noqa: ANN401 (JSON's own types)
    """Lists of numbers on one line; lists of tables a line each."""
    if isinstance(said, list):
        items = cast("list[Any]", said)
        made = CommentedSeq([_flow(one) if isinstance(one, dict) else one for one in items])
        if any(isinstance(one, dict) for one in items):
            made.fa.set_block_style()
        else:
            made.fa.set_flow_style()
        return made
    return _flow(cast("dict[str, Any]", said)) if isinstance(said, dict) else said


def _flow(said: dict[str, Any]) -> CommentedMap:
    made = CommentedMap({key: _flow(v) if isinstance(v, dict) else v for key, v in said.items()})  # type: ignore[reportUnknownArgumentType]
    made.fa.set_flow_style()
    return made


def _json(node: Any) -> str:  # noqa: ANN401 (ruamel's tree)
    return json.dumps(_bare(node), sort_keys=True)


def _bare(node: Any) -> Any:  # noqa: ANN401 (ruamel's tree)
    if isinstance(node, dict):
        return {str(key): _bare(value) for key, value in cast("dict[Any, Any]", node).items()}
    if isinstance(node, list):
        return [_bare(value) for value in cast("list[Any]", node)]
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, float):
        return float(node)
    return int(node) if isinstance(node, int) else str(node)


def _woven(text: str, plain: str, changed: str) -> str:
    """The text as it was written, with the lines that differ between `plain` and `changed` in their place."""
    mine, before, after = (each.splitlines(keepends=True) for each in (text, plain, changed))
    bare = [[tuple(line.split()) for line in lines] for lines in (mine, before)]
    pieces = difflib.SequenceMatcher(None, *bare, autojunk=False).get_opcodes()
    out, at = list[str](), 0
    for tag, low, high, start, stop in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        first, begin = _edge(pieces, low, (len(before), len(mine)))
        last, end = (first, begin) if low == high == first else _end(pieces, high)
        begin = max(begin, at)
        out += [*mine[at:begin], *before[first:low], *after[start:stop], *before[high:last]]
        at = max(end, begin)
    return "".join([*out, *mine[at:]])


def _edge(pieces: Sequence[tuple[str, int, int, int, int]], at: int, end: tuple[int, int]) -> tuple[int, int]:
    """Where a line of the plain text stands in the one that was written: both, moved to where that can be said."""
    for tag, mine, _, low, high in pieces:
        if low <= at < high:
            return (at, mine + at - low) if tag == "equal" else (low, mine)
    return end


def _end(pieces: Sequence[tuple[str, int, int, int, int]], at: int) -> tuple[int, int]:
    """The same, behind the line before."""
    for tag, mine, over, low, high in pieces:
        if low < at <= high:
            return (at, mine + at - low) if tag == "equal" else (high, over)
    return 0, 0
