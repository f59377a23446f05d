"""Loads a spec: YAML in, a typed frozen object out, or every problem at once.

loaded = load(Path("run.yaml"), Run, plugins=installed_plugins(), overrides=("rollout.seed=3",))
loaded.value       # the Run
loaded.plain       # what it says with every default written out
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar, cast, final

from simops.core.errors import Problem, SpecError, nearest
from simops.spec.node import Items, Leaf, Node, Plain, Table
from simops.spec.override import overridden
from simops.spec.plain import UnsayableError, plain
from simops.spec.plugins import Plugins, no_plugins
from simops.spec.read import Reader
from simops.spec.shape import shape_of
from simops.spec.text import MAX_BYTES, parse

T = TypeVar("T")
MOST_PROBLEMS = 100
"""More than these are counted, not listed."""


@final
@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A spec that holds."""

    value: T
    plain: Mapping[str, Plain]
    """What the spec says with every default written out; only what JSON can say."""
    lines: Mapping[str, int]
    """Where each key path stands in the text."""
    source: str

    @property
    def digest(self) -> str:
        """SHA-256 of everything the spec says: two specs with the same digest ask for the same thing."""
        return digest(self.plain)


def load(
    source: Path | str, kind: type[T], *, plugins: Plugins | None = None, overrides: Sequence[str] = ()
) -> Loaded[T]:
    """Read a spec of type `kind` from a file, or from text.

    Args:
        source: A `Path` is a file, a `str` is the YAML itself.
        kind: A frozen dataclass.
        plugins: What the spec may name; nothing by default.
        overrides: `a.b=value`, applied before anything is checked; values are YAML.
    """
    name = str(source) if isinstance(source, Path) else "spec"
    root, problems = parse(text_of(source))
    root = Table({}, 1, {}) if root == Leaf(None, 1) else root
    for override in overrides:
        root = overridden(root, override, problems)
    if root is None:
        raise SpecError(name, _listed(problems))
    return load_tree(root, kind, source=name, plugins=plugins, problems=problems)


def load_tree(
    root: Node,
    kind: type[T],
    *,
    source: str,
    path: str = "",
    plugins: Plugins | None = None,
    problems: Sequence[Problem] = (),
) -> Loaded[T]:
    """Read a spec that has been parsed, and stands at key `path` of `source`; `problems` were found on the way."""
    # of a key given twice the first value counts, and it may be wrong too
    doubted = frozenset(p.path.removeprefix("--set ") for p in problems if p.fault != "CFG-003")
    reader = Reader(plugins or no_plugins(), list(problems), doubted=doubted)
    found = reader.read(root, shape_of(kind), path)
    if reader.problems or found is None:
        raise SpecError(source, _listed(reader.problems))
    lines = {key: line for key, line in reader.lines.items() if line is not None}
    return Loaded(cast("T", found.value), cast("dict[str, Plain]", found.plain), lines, source)


def freeze(value: T, *, plugins: Plugins | None = None) -> Loaded[T]:
    """Hold a spec written in Python to the same rules as one written in YAML."""
    kind = type(value)
    try:
        said = plain(value, shape_of(kind), plugins or no_plugins())
    except UnsayableError as error:
        problem = Problem("", f"a spec cannot say {error}", attempt="naming a plugin")
        raise SpecError(kind.__name__, [problem]) from error
    try:
        return load_tree(_node(said), kind, source=kind.__name__, plugins=plugins)
    except SpecError as error:
        problems = [replace(problem, path=problem.path.removeprefix("--set ")) for problem in error.problems]
        raise SpecError(kind.__name__, problems) from error


def digest(said: Mapping[str, Plain]) -> str:
    """SHA-256 over canonical JSON: sorted keys, floats as they round-trip."""
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def text_of(source: Path | str) -> str:
    """The text of a file, once it is known to be small enough to be a spec; text is itself."""
    if isinstance(source, str):
        return source
    try:
        if source.stat().st_size > MAX_BYTES:
            what = f"the file has {source.stat().st_size:,} bytes, the most is {MAX_BYTES:,}"
            raise SpecError(str(source), [Problem("", what, attempt="moving data out of the spec", fault="CFG-011")])
        return source.read_text(encoding="utf-8")
    except OSError as error:
        beside = [path.name for path in source.parent.glob("*.y*ml")] if source.parent.is_dir() else []
        problem = Problem("", f"cannot be read: {error.strerror}", attempt=nearest(source.name, beside))
        raise SpecError(str(source), [problem]) from error
    except UnicodeDecodeError as error:
        problem = Problem("", f"is not UTF-8 text: {error.reason} at byte {error.start}")
        raise SpecError(str(source), [problem]) from error


def _listed(problems: list[Problem]) -> list[Problem]:
    """The first problems in the order of the file, those of flags last."""
    ordered = sorted(problems, key=lambda problem: (problem.line is None, problem.line or 0))
    if len(ordered) <= MOST_PROBLEMS:
        return ordered
    return [*ordered[:MOST_PROBLEMS], Problem("", f"and {len(ordered) - MOST_PROBLEMS} more")]


def _node(said: Plain) -> Node:
    if isinstance(said, dict):
        members = {key: _node(member) for key, member in said.items()}
        return Table(members, None, dict.fromkeys(members))
    if isinstance(said, list):
        return Items(tuple(_node(member) for member in said), None)
    return Leaf(said, None)
