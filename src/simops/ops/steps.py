"""Steps of a long run, each a function of digests: what was done is not done twice, and a killed run goes on.

A step lies in a folder named after everything that it depends on. It counts as done when its record does, which is
written last; what a kill left half done is begun anew, or gone on with where the step knows how to.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, final

from simops.core.errors import DataError
from simops.data.files import digest, make_folder, publish, seal, unseal

T = TypeVar("T")
RECORD, TOOK = "step.json", "took.json"
VERSION = 1
"""Of what the steps of this version do: a step of another is done anew."""


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do, and what it depends on."""

    stage: str
    """As `train`."""
    turn: int
    inputs: Mapping[str, str]
    """By name: digests, or short text, of everything that what comes out depends on."""
    work: Callable[[Path], Mapping[str, Any]] = field(repr=False, compare=False)
    """Do it in this folder, and say in JSON's own types what came out; digests of whatever others depend on too."""
    about: str = ""
    """What it does, for a plan."""

    @property
    def key(self) -> str:
        """SHA-256 over everything it depends on."""
        body = json.dumps({"version": VERSION, "stage": self.stage, "inputs": dict(self.inputs)}, sort_keys=True)
        return hashlib.sha256(body.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.stage.replace(' ', '-')}-{self.key[:12]}"


@final
@dataclass(frozen=True)
class Done:
    """A step that was done."""

    step: Step
    folder: Path
    said: Mapping[str, Any]
    """What came out."""
    fresh: bool
    """Whether it was done now, and not before."""
    took_s: float

    @property
    def digest(self) -> str:
        """SHA-256 of what came out."""
        return hashlib.sha256(json.dumps(self.said, sort_keys=True).encode()).hexdigest()


Steps: TypeAlias = Generator[Step, Done, T]
"""Yields steps, is sent what came of them, and returns what follows."""


def look(home: Path, step: Step) -> Done | None:
    """What came of a step that was done before; raises where it was, and is no longer what it was."""
    folder = home / step.name
    if not (folder / RECORD).is_file():
        return None
    body = unseal(folder / RECORD)
    if body.get("key") != step.key:
        return None
    files: Mapping[str, str] = body["files"]
    for name, sha in files.items():
        path = folder / name
        if not path.is_file() or digest(path.read_bytes()) != sha:
            raise DataError(
                f"{name} is not what the step left there",
                where=str(folder),
                attempt=f"removing {folder}: it is done again, to the same",
                fault="CRK-003",
            )
    return Done(step, folder, body["said"], fresh=False, took_s=_took(folder))


def do(home: Path, step: Step) -> Done:
    """Do a step, unless it was done before."""
    found = look(home, step)
    if found is not None:
        return found
    folder = home / step.name
    make_folder(folder)
    began = time.perf_counter()
    said = json.loads(json.dumps(step.work(folder), allow_nan=False))
    took_s = time.perf_counter() - began
    publish(folder / TOOK, json.dumps({"seconds": took_s}).encode())
    kept = {str(path.relative_to(folder)): digest(path.read_bytes()) for path in _files(folder)}
    body = {"key": step.key, "stage": step.stage, "inputs": dict(step.inputs), "said": said, "files": kept}
    publish(folder / RECORD, seal(body))
    return Done(step, folder, said, fresh=True, took_s=took_s)


def changed(home: Path, step: Step) -> str:
    """Why a step has to be done: which of its inputs are others than in what was done before."""
    nearest: list[str] | None = None
    for folder in sorted(home.glob(f"{step.stage.replace(' ', '-')}-*")):
        if not (folder / RECORD).is_file():
            continue
        before: Mapping[str, str] = unseal(folder / RECORD)["inputs"]
        names = sorted(n for n in {*before, *step.inputs} if before.get(n) != step.inputs.get(n))
        if nearest is None or len(names) < len(nearest):
            nearest = names
    if nearest is None:
        return "was never done"
    return f"{', '.join(nearest)} changed" if nearest else "another version of simops did it"


def _files(folder: Path) -> list[Path]:
    """Everything a step left, but for what differs from time to time."""
    loose = {RECORD, TOOK, "lock", "stopped.safetensors"}
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in loose]
    return [path for path in found if not path.name.startswith(".") and "tfevents" not in path.name]


def _took(folder: Path) -> float:
    try:
        return float(json.loads((folder / TOOK).read_text())["seconds"])
    except (OSError, ValueError, KeyError):
        return 0.0
