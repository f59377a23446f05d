"""Lines beside a dataset: what an audit thinks of an episode, and which episodes never came to an end."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, final

from simops.core.errors import DataError
from simops.data.files import refusal
from simops.gate.audit import Suspicion


@final
class Notes:
    """A file that only grows; a line that a kill cut short is none."""

    def __init__(self, path: Path) -> None:
        """Read what is there."""
        self.path = path
        self.suspicions: dict[str, tuple[Suspicion, ...]] = {}
        self.lost: dict[str, str] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                said = cast("dict[str, Any]", json.loads(line))
                self._read(said)
            except (ValueError, KeyError, TypeError) as error:
                if number < len(lines):
                    raise DataError(f"line {number} is not what was written", where=str(path)) from error

    def suspect(self, found: Mapping[str, tuple[Suspicion, ...]]) -> None:
        """Write down what an audit found."""
        for scenario, suspicions in found.items():
            self._add({"scenario": scenario, "suspicions": [list(one) for one in suspicions]})
            self.suspicions[scenario] = suspicions

    def lose(self, scenario: str, why: str) -> None:
        """Write down that an episode never came to an end."""
        self._add({"scenario": scenario, "lost": why})
        self.lost[scenario] = why

    def _read(self, said: Mapping[str, Any]) -> None:
        if "lost" in said:
            self.lost[said["scenario"]] = str(said["lost"])
        else:
            self.suspicions[said["scenario"]] = tuple(Suspicion(*one) for one in said["suspicions"])

    def _add(self, said: Mapping[str, object]) -> None:
        line = json.dumps(said).encode() + b"\n"
        fresh = not self.path.exists() or self.path.read_bytes().endswith(b"\n")
        try:
            with self.path.open("ab") as file:
                file.write(line if fresh or self.path.stat().st_size == 0 else b"\n" + line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise refusal(error, self.path, len(line)) from error
