"""What a long run is doing right now, in a small file that is written anew twice a second for whoever looks.

Nothing depends on it: no result reads it, it is not synced, and a disk that refuses it stops nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast, final

NOW = "now.json"
EVERY_S = 0.5
LARGEST = 65536
"""Bytes of the file, at most, that a reader takes."""


@final
class Beat:
    """Write `said()` down, with the time, until the end; a context manager."""

    def __init__(self, folder: Path, said: Callable[[], Mapping[str, Any]]) -> None:
        """Say what is written; it is called from a thread of its own."""
        self._path, self._said = folder / NOW, said
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="beat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._write("" if kind is None else "stopped" if issubclass(kind, KeyboardInterrupt) else "failed", over=True)

    def _beat(self) -> None:
        while True:
            self._write("", over=False)
            if self._over.wait(EVERY_S):
                return

    def _write(self, how: str, *, over: bool) -> None:
        body = {**self._said(), "at": time.time(), "pid": os.getpid(), "over": over, "how": how}
        temporary = self._path.with_name(f".{NOW}.tmp")
        with contextlib.suppress(OSError, ValueError):
            temporary.write_text(json.dumps(body, allow_nan=False), encoding="utf-8")
            temporary.replace(self._path)


def heard(folder: Path) -> dict[str, Any] | None:
    """What was written last; nothing where nothing was, or nothing that can be read."""
    path = folder / NOW
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return None
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", body) if isinstance(body, dict) else None
