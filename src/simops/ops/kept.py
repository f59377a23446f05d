"""What a crank left, read back: by itself, and light, so that whoever only looks loads neither engine nor network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from simops.core.errors import DataError, SimOpsError
from simops.core.patch import Patch
from simops.core.verdict import Finding, Verdict
from simops.data.files import unseal
from simops.gate import rate
from simops.ops.patches import Patches
from simops.ops.steps import RECORD, TOOK

SPEC, LOCKED, SUMMARY, STEPS = "spec.yaml", "spec.lock", "crank.json", "steps"
FAILURES = "failures.json"
ALPHA = 0.05
"""Of the intervals that are shown."""
_NAME = re.compile(r"[a-z-]{1,32}-[0-9a-f]{12}")


class Rate(NamedTuple):
    """How often something succeeded, and where the true share lies, at any look."""

    good: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """As it was seen."""
        return self.good / self.of

    def __str__(self) -> str:
        return f"{self.good} of {self.of} [{self.low:.0%}, {self.high:.0%}]"


@final
@dataclass(frozen=True, kw_only=True)
class Kept:
    """One step that was done."""

    stage: str
    name: str
    """Of its folder."""
    digest: str
    """Of what came out."""
    inputs: Mapping[str, str]
    said: Mapping[str, Any]
    took_s: float
    folder: Path


@final
@dataclass(frozen=True, kw_only=True)
class Told:
    """One turn, as it was written down."""

    said: Mapping[str, Any]
    steps: tuple[Kept, ...]
    applied: tuple[Patch, ...]
    waiting: tuple[Patch, ...]
    spec: str
    """Its text in this turn."""
    faults: tuple[str, ...] = ()
    """What of it could not be read."""

    @property
    def number(self) -> int:
        """Of the turn; the first is 0."""
        return int(self.said["turn"])

    def step(self, stage: str) -> Kept | None:
        """The first of a stage."""
        return next((one for one in self.steps if one.stage == stage), None)

    @property
    def bundle(self) -> str:
        """Digest of the candidate; empty where none was made."""
        found = self.step("export")
        return "" if found is None else str(found.said["bundle"])

    @property
    def tried(self) -> Rate | None:
        """How the candidate did on the robot."""
        return _rate([one for one in self._trials if one.inputs["policy"] == self.bundle])

    @property
    def beside(self) -> Rate | None:
        """How what was live did on the same trials."""
        return _rate([one for one in self._trials if one.inputs["policy"] != self.bundle])

    @property
    def live(self) -> Rate | None:
        """Trials of what is live after this turn."""
        return self.tried if self.said["ending"] == "promoted" else self.beside

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the gate said of the candidate."""
        gate = self.step("validate")
        return () if gate is None else Verdict.parse(str(gate.said["verdict"])).findings

    @property
    def _trials(self) -> list[Kept]:
        return [one for one in self.steps if one.stage == "trials"]


def there(run: Path) -> bool:
    """Whether a crank is in a folder; a dataset has steps and a lock too, and nobody's own text."""
    return (run / STEPS).is_dir() and (run / SPEC).is_file()


def runs(root: Path) -> list[tuple[Path, Mapping[str, Any] | None]]:
    """Every crank below a folder, and what it came to; nothing where it is not over."""
    found = sorted({path.parent for path in root.glob(f"**/{LOCKED}") if there(path.parent)})
    return [(path, summary(path)) for path in found]


def summary(run: Path) -> Mapping[str, Any] | None:
    """What a crank came to."""
    if not there(run):
        raise DataError("there is no crank", where=str(run), attempt="simops runs")
    return unseal(run / SUMMARY) if (run / SUMMARY).is_file() else None


def turns(run: Path) -> list[Mapping[str, Any]]:
    """What its turns came to, as far as it is."""
    found = sorted(run.glob("turn-*.json"), key=lambda path: int(path.stem.removeprefix("turn-")))
    return [unseal(path) for path in found]


def diagnosis(run: Path, number: int | None) -> tuple[int, Mapping[str, Any]] | None:
    """What the failures of a turn came to, or of the last that had some."""
    for one in reversed(turns(run)):
        named = [name for stage, name, _ in one["steps"] if stage == "diagnose"]
        if named and number in {None, one["turn"]}:
            return int(one["turn"]), unseal(run / STEPS / named[0] / RECORD)["said"]
    return None


def told(run: Path) -> tuple[Told, ...]:
    """Every turn with its steps and patches; what cannot be read is said, and the rest is shown."""
    return tuple(_told(run, said) for said in turns(run))


def step(folder: Path, digest: str = "") -> Kept:
    """One step, from its record."""
    body = unseal(folder / RECORD)
    return Kept(
        stage=str(body["stage"]),
        name=folder.name,
        digest=digest,
        inputs=body["inputs"],
        said=body["said"],
        took_s=_took(folder),
        folder=folder,
    )


def _told(run: Path, said: Mapping[str, Any]) -> Told:
    steps, faults = list[Kept](), list[str]()
    for _, name, digest in said["steps"]:
        try:
            if not _NAME.fullmatch(str(name)):
                raise DataError(f"{name!r} is no step", where=str(run))
            steps.append(step(run / STEPS / str(name), str(digest)))
        except (SimOpsError, KeyError, TypeError) as error:
            faults.append(f"{name}: {error}")
    kept, patches = Patches(run), dict[str, tuple[Patch, ...]]()
    for group in ("applied", "waiting"):
        found: list[Patch] = []
        for name in said[group]:
            try:
                found.append(kept.find(str(name)))
            except (SimOpsError, OSError) as error:
                faults.append(str(error))
        patches[group] = tuple(found)
    path = run / f"turn-{said['turn']}.yaml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return Told(said=said, steps=tuple(steps), spec=text, faults=tuple(faults), **patches)


def _rate(trials: list[Kept]) -> Rate | None:
    outcomes = [str(outcome) for one in trials for outcome in one.said["outcomes"]]
    if not outcomes:
        return None
    good = outcomes.count("success")
    return Rate(good, len(outcomes), *rate.interval(good, len(outcomes) - good, ALPHA))


def _took(folder: Path) -> float:
    try:
        return float(json.loads((folder / TOOK).read_text())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
