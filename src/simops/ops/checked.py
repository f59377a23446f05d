"""Checks a file for the spec it is, or for a suite of scenarios, and says what it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from simops.core.errors import Problem, SpecError, nearest
from simops.core.plugin import Registry
from simops.core.task import Task
from simops.ops import suite_text
from simops.spec.kinds import KINDS, keys_of, tell
from simops.spec.load import text_of
from simops.spec.lock import load_file, lock
from simops.spec.node import Leaf, Table
from simops.spec.run import Run
from simops.spec.text import parse

SUITE = "suite"
"""The kind that no command's spec is: scenarios, as a gate or a search writes them."""


class Checked(NamedTuple):
    """A file in which nothing is wrong."""

    kind: str
    others: tuple[str, ...]
    """Kinds that its keys would do for as well."""
    said: str
    """How much it asks for, where that can be counted."""
    digest: str
    lock: str
    """With every default written out; empty for a suite, which has none."""


def check(path: Path, *, kind: str = "", overrides: Sequence[str] = ()) -> Checked:
    """Read the file as a spec of `kind`, told by its keys if none is given; raise every problem there is."""
    if kind and kind not in (*KINDS, SUITE):
        attempt = nearest(kind, (*KINDS, SUITE)) or ", ".join((*KINDS, SUITE))
        raise SpecError("command line", [Problem("--as", f"no spec is called {kind!r}", attempt=attempt)])
    if kind == SUITE or (not kind and keys_of(path) >= {"format", "scenarios"}):
        return _suite(path, overrides)
    kinds = (kind,) if kind else tell(path, overrides)
    loaded = load_file(path, KINDS[kinds[0]], overrides=overrides)
    value: object = loaded.value
    said = f"{value.rollout.episodes:,} episodes" if isinstance(value, Run) else ""
    return Checked(kinds[0], kinds[1:], said, loaded.digest, lock(loaded))


def _suite(path: Path, overrides: Sequence[str]) -> Checked:
    if overrides:
        problem = Problem(f"--set {overrides[0]}", "a suite cannot be changed", attempt="the spec", fault="CFG-008")
        raise SpecError(str(path), [problem])
    root = parse(text_of(path)).root
    named = root.entries.get("task") if isinstance(root, Table) else None
    if not isinstance(named, Leaf) or not isinstance(named.value, str):
        raise SpecError(str(path), [Problem("task", "a suite names its task", attempt='"task": "pendulum"')])
    suite = suite_text.read(path, Registry[Task]("task").load(named.value)())
    return Checked(SUITE, (), f"{len(suite):,} scenarios", f"sha256:{suite.digest}", "")
