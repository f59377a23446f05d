"""The lock: a spec with every default written out and one digest, so that a run can be asked for again.

write: path.write_text(lock(loaded))        read: read_lock(path, Run, plugins=...), or load_file(path, Run)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from simops.core.errors import Problem, SpecError
from simops.spec.canonical import canonical
from simops.spec.load import Loaded, load, load_tree, text_of
from simops.spec.node import Leaf, Node, Table
from simops.spec.plugins import Plugins, installed_plugins
from simops.spec.text import parse

T = TypeVar("T")
SUFFIX = ".lock"
VERSION = 1
_HEAD = "# Every default of the spec, written out. Made by simops; change the spec instead.\n"


def lock(loaded: Loaded[T]) -> str:
    """Write a spec out in full."""
    head = canonical({"lock": VERSION, "digest": loaded.digest})
    return f"{_HEAD}{head}{canonical({'spec': dict(loaded.plain)})}"


def read_lock(source: Path | str, kind: type[T], *, plugins: Plugins | None = None) -> Loaded[T]:
    """Read what `lock` wrote; refuse it if a byte that matters has changed since."""
    name = str(source) if isinstance(source, Path) else "lock"
    root, problems = parse(text_of(source))
    entries: Mapping[str, Node] = root.entries if isinstance(root, Table) else {}
    head = {key: member.value for key, member in entries.items() if isinstance(member, Leaf)}
    if problems:
        raise SpecError(name, problems)
    if set(entries) != {"lock", "digest", "spec"} or head.get("lock") != VERSION:
        problem = Problem("", f"is no lock of version {VERSION}", attempt="locking the spec again", fault="CFG-008")
        raise SpecError(name, [problem])
    loaded = load_tree(entries["spec"], kind, source=name, path="spec", plugins=plugins)
    if loaded.digest != head.get("digest"):
        what = f"the spec was changed after it was locked, or simops reads it otherwise: it now has {loaded.digest}"
        line = entries["digest"].line
        problem = Problem("digest", what, line=line, attempt="locking the spec again", fault="CFG-008")
        raise SpecError(name, [problem])
    return loaded


def load_file(path: Path, kind: type[T], *, overrides: Sequence[str] = ()) -> Loaded[T]:
    """Load a spec, or a lock if `path` ends in `.lock`, with installed plugins and code files of its project.

    That is the folder of a spec; a lock lies anywhere, as in its dataset, so for a lock it is the working folder.
    """
    if path.suffix != SUFFIX:
        return load(path, kind, plugins=installed_plugins(path.parent), overrides=overrides)
    if overrides:
        problem = Problem(f"--set {overrides[0]}", "a lock cannot be changed", attempt="the spec", fault="CFG-008")
        raise SpecError(str(path), [problem])
    return read_lock(path, kind, plugins=installed_plugins(Path()))
