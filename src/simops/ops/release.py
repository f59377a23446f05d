"""Releases of simulators: nothing trains in a candidate before it is better than what it replaces.

    verdicts = promote(registry, "arm", Path("out/arm/simulator"))     # raises GateRefused when it is not better

A challenger is compared on recordings that neither it nor the champion has learned from, session by session, with the
champion, with its own physics without learned parts, and with the simulator as it came.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import numpy as np

from simops.core import marginal
from simops.core.errors import DataError, GateRefused
from simops.core.learning import Progress
from simops.core.recording import Recording
from simops.core.verdict import Verdict
from simops.ops import material as sources
from simops.ops.learn import judged
from simops.ops.lineage import Lineage
from simops.ops.records import Version
from simops.ops.registry import Registry
from simops.ops.simulators import Kept, read
from simops.ops.study import BESIDE, Watch
from simops.spec.learn import Source

KIND, CHAMPION = "simulator", "champion"


@final
@dataclass(frozen=True)
class Promoted:
    """A simulator that was let through."""

    version: Version
    verdicts: Mapping[str, Verdict]


class Difference(NamedTuple):
    """One thing in which two simulators differ."""

    what: str
    before: str
    after: str


def promote(
    registry: Registry,
    name: str,
    folder: Path,
    *,
    data: Path | None = None,
    why: str = "",
    alpha: float = 0.05,
    watch: Watch | None = None,
) -> Promoted:
    """Keep the candidate at `folder` as the next version of `name` and make it champion, or refuse.

    Args:
        registry: Where simulators are kept.
        name: Of the simulator.
        folder: What `simops learn` left, the lesson or its `simulator` folder.
        data: Recordings to judge by; those that the lesson held back when left out.
        why: For whoever asks later.
        alpha: How often a challenger that is no better may pass.
        watch: Told what is being predicted.
    """
    challenger = read(_simulator(folder))
    recordings = held_out(challenger, data)
    rivals = _rivals(registry, name, challenger, folder)
    for other in rivals.values():
        recordings = [one for one in recordings if _unseen(other, one)]
    verdicts = judge(challenger, rivals, recordings, alpha=alpha, watch=watch)
    _require(name, verdicts)
    found = registry.add(name, _simulator(folder), kind=KIND, lineage=lineage(challenger), why=why)
    said = why or "better on what was held out"
    return Promoted(registry.tag(found.ref, CHAMPION, why=said, kind=KIND), verdicts)


def judge(
    challenger: Kept,
    rivals: Mapping[str, Kept],
    recordings: Sequence[Recording],
    *,
    alpha: float = 0.05,
    watch: Watch | None = None,
) -> dict[str, Verdict]:
    """Compare a simulator with others on recordings that none has learned from."""
    if not recordings:
        raise DataError("no recording is left that nobody has learned from", attempt="--data with another session")
    mine, suite = errors(challenger, recordings, watch), sources.digest_of(recordings)
    verdicts: dict[str, Verdict] = {}
    for name, other in rivals.items():
        theirs = errors(other, recordings, watch)
        pair = [np.array([one[key] for key in sorted(mine)]) for one in (theirs, mine)]
        verdicts[name] = judged(pair[0], pair[1], about=challenger.digest, suite=suite, alpha=alpha, name=name)
    return verdicts


def errors(kept: Kept, recordings: Sequence[Recording], watch: Watch | None = None) -> dict[str, float]:
    """Session to the mean error of a simulator."""
    found: dict[str, list[float]] = {}
    with kept.learner.predicting(kept.candidate, kept.task, kept.rig) as predict:
        for i, one in enumerate(recordings):
            if watch is not None:
                watch(Progress(stage=f"predicting with the {kept.candidate.name} one", done=i, total=len(recordings)))
            found.setdefault(one.session or one.name, []).append(predict(one).error)
    return {name: float(np.mean(values)) for name, values in found.items()}


def held_out(kept: Kept, data: Path | None) -> list[Recording]:
    """What a lesson held back, or the recordings at `data` that it has not learned from."""
    from simops.spec.learn import Learn
    from simops.spec.lock import read_lock
    from simops.spec.plugins import installed_plugins

    told = cast("dict[str, Any]", kept.facts.get("recordings", {}))
    spec = read_lock(str(kept.facts.get("spec", "")), Learn, plugins=installed_plugins()).value
    path = data or Path(str(told.get("path", "")))
    source = Source(path=path.resolve(), map=str(told.get("map", "")), format=str(told.get("format", "")))
    everything = sources.gather(source, folder=Path())
    try:
        parted = sources.part(everything, spec.split)
        every = [*parted.train, *parted.held]
    except DataError:  # too few to be split, so all of them are judged by
        every = everything
    return [one for one in every if _unseen(kept, one)]


def rollback(registry: Registry, name: str, *, why: str) -> Version:
    """Make champion again what was champion before."""
    held = [event for event in registry.history(name, tag=CHAMPION, kind=KIND) if event.action == "tagged"]
    if len(held) < 2:
        raise DataError(f"{name} had no champion before this one", attempt=f"simops simulator show {name}")
    now = held[-1].version
    before = next((event.version for event in reversed(held[:-1]) if event.version != now), 0)
    if not before:
        raise DataError(f"{name} had no champion before this one", attempt=f"simops simulator show {name}")
    return registry.tag(f"{name}@{before}", CHAMPION, why=why, kind=KIND, was=now)


def difference(before: Kept, after: Kept) -> list[Difference]:
    """In what two simulators differ, param by param and part by part."""
    one, other = before.candidate, after.candidate
    recipes = [
        ("engine", repr(one.engine), repr(other.engine)),
        ("sensors", repr(one.sensors), repr(other.sensors)),
    ]
    found = [Difference(*row) for row in recipes if row[1] != row[2]]
    said = [dict(_spoken(kept)) for kept in (before, after)]
    for name in sorted(set(said[0]) | set(said[1])):
        texts = [words.get(name, "-") for words in said]
        if texts[0] != texts[1]:
            found.append(Difference(name, *texts))
    for name in sorted(set(one.parts) | set(other.parts)):
        if one.parts.get(name) != other.parts.get(name):
            sizes = [f"{len(c.parts[name]):,} bytes" if name in c.parts else "-" for c in (one, other)]
            found.append(Difference(f"parts/{name}", *sizes))
    return found


def lineage(kept: Kept) -> Lineage:
    """Where a simulator comes from."""
    told = cast("dict[str, Any]", kept.facts.get("recordings", {}))
    trained = cast("dict[str, str]", told.get("trained", {}))
    facts = [("identity", kept.digest), ("engine", repr(kept.candidate.engine)[:1024])]
    facts += [("data", digest) for digest in list(trained.values())[:64]]
    facts += [("seed", str(kept.facts.get("seed", 0)))]
    return Lineage.of(facts)


def _spoken(kept: Kept) -> Iterator[tuple[str, str]]:
    found = marginal.moments(kept.candidate.belief)
    for param, mean, spread in zip(kept.candidate.belief.params, found.mean, found.spread, strict=True):
        yield param.name, f"{mean:.5g} ± {spread:.2g} {param.unit}".rstrip()


def _rivals(registry: Registry, name: str, challenger: Kept, folder: Path) -> dict[str, Kept]:
    rivals: dict[str, Kept] = {}
    if name in registry.names(kind=KIND):
        champions = [found for found in registry.versions(name, kind=KIND) if CHAMPION in found.tags]
        for found in champions:
            rivals[f"{CHAMPION} {found.ref}"] = read(registry.fetch(found.ref, kind=KIND))
    beside = _simulator(folder).parent / BESIDE
    for path in sorted(beside.iterdir()) if beside.is_dir() else ():
        if path.name != challenger.candidate.name:
            rivals[path.name] = read(path)
    if not rivals:
        raise DataError("there is nothing to compare with", where=str(folder), attempt="the folder of the lesson")
    for other in rivals.values():
        if other.task.name != challenger.task.name:
            what = f"{other.task.name} and {challenger.task.name} are not one rig"
            raise DataError(what, where=str(folder), fault="LRN-005")
    return rivals


def _require(name: str, verdicts: Mapping[str, Verdict]) -> None:
    against = {other: verdict for other, verdict in verdicts.items() if verdict.status != "pass"}
    if against:
        said = "; ".join(
            f"over {other}: {verdict.status}, {verdict.findings[0].note}" for other, verdict in against.items()
        )
        raise GateRefused(
            f"the challenger is not better than what it would replace: {said}", where=name,
            attempt="more recordings, of other sessions, or another lesson", fault="LRN-006",
        )  # fmt: skip


def _unseen(kept: Kept, recording: Recording) -> bool:
    told = cast("dict[str, Any]", kept.facts.get("recordings", {}))
    trained = cast("dict[str, str]", told.get("trained", {}))
    return sources.digest_of([recording]) not in trained.values()


def _simulator(folder: Path) -> Path:
    inner = folder / "simulator"
    return inner if inner.is_dir() else folder


def said(kept: Kept) -> str:
    """Everything that is known of a simulator, as JSON."""
    return json.dumps(kept.facts, indent=1)
