"""What lies below the folder that is shown, by id: nobody who asks ever names a path."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, final

Kind: TypeAlias = Literal[
    "crank", "search", "gate", "training", "learning", "identification", "registry", "bundle", "dataset", "recordings"
]


class Sign(NamedTuple):
    """By what a folder is known."""

    kind: Kind
    names: frozenset[str]
    """That it holds."""
    clock: str
    """The file whose age is that of the whole."""


SIGNS: tuple[Sign, ...] = (
    Sign("crank", frozenset({"spec.yaml", "spec.lock", "steps"}), "."),
    Sign("search", frozenset({"falsify.json"}), "tried.jsonl"),
    Sign("gate", frozenset({"suite.json", "candidate"}), "candidate/manifest"),
    Sign("gate", frozenset({"suite.json", "verdict.json"}), "verdict.json"),
    Sign("training", frozenset({"metrics.jsonl"}), "metrics.jsonl"),
    Sign("identification", frozenset({"numbers.json", "report.html"}), "report.html"),
    Sign("learning", frozenset({"spec.lock", "report.html", "simulator"}), "report.html"),
    Sign("registry", frozenset({"registry.sqlite"}), "registry.sqlite"),
    Sign("bundle", frozenset({"contract.json", "manifest.json"}), "manifest.json"),
    Sign("dataset", frozenset({"dataset.json"}), "manifest"),
    Sign("recordings", frozenset({"recordings.json"}), "recordings.json"),
)
"""The first that fits."""
PARTED = frozenset({"crank", "gate", "search", "learning"})
"""Kinds that hold parts of other kinds, as logs and registries; a dataset or a bundle is whole."""
ID = re.compile(r"[0-9a-f]{16}")
DEEPEST, MOST = 8, 50_000
"""Levels and folders that are looked through, at most."""
FRESH_S = 2.0
"""For how long what was found is believed."""


@final
@dataclass(frozen=True)
class Place:
    """One folder that holds something to see."""

    id: str
    kind: Kind
    path: Path
    name: str
    """Below the folder that is shown."""
    at: float
    """When something changed there last, seconds since 1970."""


@final
class Places:
    """Everything below one folder, looked for now and then."""

    def __init__(self, root: Path) -> None:
        """Show what lies below `root`."""
        self.shown, self.root = root, root.resolve()
        self._turn = threading.Lock()
        self._listed: dict[str, Place] = {}
        self._inside: dict[str, Place] = {}
        self._at = -1e9
        self._deep_at = -1e9

    def all(self) -> list[Place]:
        """What lies there, newest first; not what is part of another."""
        with self._turn:
            if time.monotonic() - self._at > FRESH_S:
                self._listed = {one.id: one for one in self._walk(self.root, "", 0, [MOST], deep=False)}
                self._at = time.monotonic()
            return sorted(self._listed.values(), key=lambda one: (-one.at, one.name))

    def find(self, id_: str) -> Place | None:
        """One of them, or a part of one."""
        if not ID.fullmatch(id_):
            return None
        found = next((one for one in self.all() if one.id == id_), None) or self._inside.get(id_)
        if found is not None and found.path.is_dir():
            return found
        with self._turn:
            if time.monotonic() - self._deep_at < FRESH_S:
                return None
            self._deep_at = time.monotonic()
            self._inside = {one.id: one for one in self._walk(self.root, "", 0, [MOST], deep=True)}
        return self._inside.get(id_)

    def inside(self, place: Place) -> list[Place]:
        """The parts of one, as the logs of a crank."""
        below = str(place.path.relative_to(self.root)) if place.path != self.root else ""
        found = list(self._walk(place.path, below, 0, [MOST // 10], deep=True))
        parts = [one for one in found if one.id != place.id]
        with self._turn:
            self._inside.update({one.id: one for one in parts})
        return sorted(parts, key=lambda one: one.name)

    def _walk(self, folder: Path, name: str, depth: int, left: list[int], *, deep: bool) -> Iterator[Place]:
        if depth > DEEPEST or left[0] <= 0:
            return
        left[0] -= 1
        try:
            with os.scandir(folder) as entries:
                below = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries if not entry.is_symlink()}
        except OSError:
            return
        sign = next((one for one in SIGNS if one.names <= below.keys()), None)
        if sign is not None:
            yield Place(_id(name), sign.kind, folder, name or folder.name, _at(folder / sign.clock, folder))
            if not deep or sign.kind not in PARTED:
                return
        for each, is_folder in sorted(below.items()):
            if is_folder and not each.startswith("."):
                yield from self._walk(folder / each, f"{name}/{each}" if name else each, depth + 1, left, deep=deep)


def _id(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:16]


def _at(clock: Path, folder: Path) -> float:
    for path in (clock, folder):
        try:
            return path.stat().st_mtime
        except OSError:
            continue
    return 0.0
