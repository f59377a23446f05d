"""Replays, filmed when somebody wants to see one: by our own command, one at a time, into a folder that goes away.

Nothing is put beside a run, and nothing here simulates: a process of its own does what the page says that it does.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import final

from simops.core.errors import BusyError

LIMIT_S = 120.0
MOST = 64
"""Films that are kept; the oldest goes."""
WAITING = 4
"""Films that may wait for the one that is made."""
SIZE = "400x300"


@final
@dataclass
class Film:
    """One that was asked for."""

    command: tuple[str, ...]
    """What makes it, without where it goes."""
    path: Path
    begun: float = field(default_factory=time.monotonic)
    why_not: str = ""
    """What went wrong."""
    done: bool = False


@final
class Films:
    """All of them, while the dashboard runs."""

    def __init__(self) -> None:
        """Begin with none."""
        self._turn, self._one = threading.Lock(), threading.Lock()
        self._films: dict[str, Film] = {}

    def episode(self, key: str, dataset: Path, number: int) -> Film:
        """An episode of a dataset, from what was recorded."""
        return self._wanted(key, ("render", str(dataset), "--episode", str(number), "--fast", "--size", SIZE, "--out"))

    def scenario(self, key: str, folder: Path, scenario: str) -> Film:
        """A scenario of a gate or a search, run again."""
        return self._wanted(key, ("replay", scenario, "--in", str(folder), "--render"))

    def find(self, key: str) -> Path | None:
        """One that is there."""
        found = self._films.get(key)
        return found.path if found is not None and found.done and not found.why_not else None

    def _wanted(self, key: str, command: tuple[str, ...]) -> Film:
        with self._turn:
            found = self._films.get(key)
            if found is not None:
                return found
            if sum(not one.done for one in self._films.values()) > WAITING:
                raise BusyError("enough films are being made", where="the dashboard", attempt="again in a moment")
            for old in [name for name, one in self._films.items() if one.done][: max(0, len(self._films) - MOST + 1)]:
                self._films.pop(old).path.unlink(missing_ok=True)
            film = Film(command, _folder() / f"{key}.mp4")
            self._films[key] = film
        threading.Thread(target=self._make, args=(film,), name=f"film {key}", daemon=True).start()
        return film

    def _make(self, film: Film) -> None:
        with self._one:
            film.why_not = _made(film.command, film.path)
            film.done = True


@cache
def _folder() -> Path:
    """Where films lie: this user's alone, and gone when the dashboard is."""
    made = tempfile.mkdtemp(prefix="simops-films-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _made(command: Sequence[str], path: Path) -> str:
    """Make it, and say why not if that went wrong."""
    words = [sys.executable, "-m", "simops.cli", *command, str(path)]
    try:
        done = subprocess.run(  # noqa: S603  our own command, over a folder that was found and a number
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {LIMIT_S:.0f} s"
    if path.is_file():
        return ""
    said = [line for line in done.stderr.splitlines() if line.startswith("simops:")]
    return said[-1].removeprefix("simops: ") if said else "it came to nothing; the same command says why"
