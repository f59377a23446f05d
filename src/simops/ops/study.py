"""A lesson from end to end: recordings in, a candidate simulator and a report out.

What the learner hands back is a ladder, from the simulator as it comes upwards. Every rung predicts recordings that
no learner has seen; a rung with learned parts stands only if it is better than the one below with its whole interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.errors import DataError, Problem, SpecError
from simops.core.learning import NOMINAL, PHYSICAL, Candidate, Learned, Learner, Material, Predicted, Progress
from simops.core.recording import Recording
from simops.core.signal import Array
from simops.core.verdict import Verdict
from simops.data.files import Lock, make_folder, publish
from simops.ops import material as sources
from simops.ops.learn import judged
from simops.ops.simulators import Kept, write
from simops.spec.learn import Learn, load_learn, task_of
from simops.spec.lock import lock

OUT = Path("out")
CHECKPOINT, SPEC, FOLDER = "learner.checkpoint", "spec.lock", "simulator"
BESIDE = "beside"
SHOWN = 3
"""Recordings whose predictions are kept to be drawn."""


@final
@dataclass(frozen=True)
class Order:
    """What is to be learned from what, and where it goes."""

    spec: Learn
    material: Material
    held: tuple[Recording, ...]
    out: Path
    lock: str
    source: Path
    """The folder that the spec lies in."""


@final
@dataclass(frozen=True)
class Tried:
    """One rung on what was held out."""

    candidate: Candidate
    errors: Mapping[str, float]
    """Recording to its error."""
    named: Mapping[str, float]
    """Every named error, averaged over sessions."""
    sessions: Mapping[str, float]
    """Session to its error."""
    coverage: float | None
    shown: tuple[Predicted, ...] = ()
    ahead: tuple[Array, Array] | None = None
    """How far ahead, and the share of the motion that is not explained there."""


@final
@dataclass(frozen=True)
class Studied:
    """What came of a lesson."""

    order: Order
    learned: Learned
    tried: tuple[Tried, ...]
    """One a candidate, in the order of the ladder."""
    verdicts: Mapping[str, Verdict]
    """`physical over nominal` to what held-out recordings say of it."""
    best: Candidate
    kept: Kept
    notes: tuple[str, ...]


Watch = Callable[[Progress], None]


def load_order(
    path: Path, *, overrides: Sequence[str] = (), data: Path | None = None, out: Path | None = None
) -> Order:
    """Read a spec and its recordings, and say what would be learned; writes nothing."""
    loaded = load_learn(path, overrides=overrides)
    spec = loaded.value
    if data is not None:
        spec = replace(spec, recordings=replace(spec.recordings, path=data.resolve()))
    task, rig = task_of(spec, folder=path.parent)
    recordings = sources.gather(spec.recordings, folder=path.parent)
    parted = sources.part(recordings, spec.split)
    material = Material(
        task=task, rig=rig, engine=spec.engine, recordings=parted.train, sensors=spec.sensors, seed=spec.seed
    )
    folder = out or spec.out or OUT / f"learn-{task.name}-{loaded.digest.removeprefix('sha256:')[:8]}"
    return Order(spec, material, parted.held, folder, lock(loaded), path.parent.resolve())


def run(order: Order, watch: Watch, *, resume: bool = False) -> Studied:
    """Learn, judge what was learned on what was held out, and put down the best of it."""
    path = order.out / CHECKPOINT
    if (order.out / FOLDER).exists() or (path.exists() and not resume):
        problem = Problem("", f"{order.out} holds a lesson", attempt="another --out, or --resume", fault="CFG-008")
        raise SpecError("command line", [problem])
    make_folder(order.out)
    writer = Lock(order.out)
    try:
        publish(order.out / SPEC, order.lock.encode())

        def told(progress: Progress) -> None:
            if progress.checkpoint:
                publish(path, progress.checkpoint)
            watch(replace(progress, checkpoint=b""))

        learner = order.spec.learner
        held = path.read_bytes() if resume and path.exists() else b""
        learned = learner.learn(order.material, told, checkpoint=held)
        tried = tuple(try_out(learner, one, order, order.held, told) for one in learned.candidates)
        studied = _judged(order, learned, tried)
        for one in learned.candidates:
            if one.name != studied.best.name:
                write(_kept(order, one, studied.kept.facts), order.out / BESIDE / one.name)
        write(studied.kept, order.out / FOLDER)
        return studied
    finally:
        writer.release()


def try_out(
    learner: Learner, candidate: Candidate, order: Order, recordings: Sequence[Recording], watch: Watch
) -> Tried:
    """Let a candidate predict recordings."""
    errors, named, sessions = dict[str, float](), dict[str, list[float]](), dict[str, list[float]]()
    inside, shown, far = list[float](), list[Predicted](), list[tuple[Array, Array]]()
    with learner.predicting(candidate, order.material.task, order.material.rig) as predict:
        for i, one in enumerate(recordings):
            watch(Progress(stage=f"predicting with the {candidate.name} one", done=i, total=len(recordings)))
            found = predict(one)
            errors[one.name] = found.error
            sessions.setdefault(one.session or one.name, []).append(found.error)
            for name, value in (found.errors or {"unexplained": found.unexplained}).items():
                named.setdefault(name, []).append(value)
            if (coverage := found.coverage) is not None:
                inside.append(coverage)
            far.append(_by_ahead(found))
            if len(shown) < SHOWN:
                shown.append(found)
    return Tried(
        candidate,
        errors,
        {name: float(np.mean(values)) for name, values in named.items()},
        {name: float(np.mean(values)) for name, values in sessions.items()},
        float(np.mean(inside)) if inside else None,
        tuple(shown),
        _merged(far),
    )


def compared(champion: Tried, challenger: Tried, *, about: str, suite: str, alpha: float = 0.05) -> Verdict:
    """Whether a challenger is better than a champion on the same recordings, session by session."""
    names = sorted(set(champion.sessions) & set(challenger.sessions))
    pair = [np.array([one.sessions[name] for name in names]) for one in (champion, challenger)]
    return judged(pair[0], pair[1], about=about, suite=suite, alpha=alpha, name=champion.candidate.name)


def _judged(order: Order, learned: Learned, tried: tuple[Tried, ...]) -> Studied:
    if not tried or tried[0].candidate.name != NOMINAL:
        raise DataError("a learner's first candidate is the simulator as it comes, `nominal`", fault="LRN-006")
    verdicts, notes = dict[str, Verdict](), list(learned.notes)
    suite = sources.digest_of(order.held)
    best = tried[0]
    for one in tried[1:]:
        name = one.candidate.name
        against = {best.candidate.name: best, NOMINAL: tried[0]}
        found = {
            other: compared(rung, one, about=_kept(order, one.candidate, {}).digest, suite=suite)
            for other, rung in against.items()
        }
        verdicts |= {f"{name} over {other}": verdict for other, verdict in found.items()}
        better = all(verdict.status == "pass" for verdict in found.values())
        plain = name == PHYSICAL and one.candidate.told and _mean(one) < _mean(best)
        if better or plain:
            best = one
        else:
            notes.append(f"{name} is not shipped: on recordings held out it does not beat {best.candidate.name}")
    facts = _facts(order, tried, verdicts)
    return Studied(order, learned, tried, verdicts, best.candidate, _kept(order, best.candidate, facts), tuple(notes))


def _mean(one: Tried) -> float:
    return float(np.mean(list(one.sessions.values()))) if one.sessions else math.inf


def _kept(order: Order, candidate: Candidate, facts: Mapping[str, Any]) -> Kept:
    spec, material = order.spec, order.material
    return Kept(
        folder=None,
        candidate=candidate,
        learner=spec.learner,
        task=material.task,
        rig=material.rig,
        task_name="" if material.rig else material.task.name,
        facts=facts,
    )


def _facts(order: Order, tried: Sequence[Tried], verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    source = order.spec.recordings
    return {
        "recordings": {
            "path": str((order.source / source.path).resolve()) if source.path else "",
            "map": source.map,
            "format": source.format,
            "trained": {one.name: sources.digest_of([one]) for one in order.material.recordings},
            "held": {one.name: sources.digest_of([one]) for one in order.held},
        },
        "spec": order.lock,
        "seed": order.spec.seed,
        "packages": [f"{name} {version(name)}" for name in ("simops", "numpy", "mujoco")],
        "errors": {one.candidate.name: dict(one.sessions) for one in tried},
        "figures": {one.candidate.name: dict(one.named) for one in tried},
        "coverage": {one.candidate.name: one.coverage for one in tried},
        "verdicts": {name: _said(verdict) for name, verdict in verdicts.items()},
    }


def _said(verdict: Verdict) -> dict[str, Any]:
    found = verdict.findings[0]
    within = [found.interval.low, found.interval.high] if found.interval else None
    return {"status": verdict.status, "value": found.value, "interval": within, "sessions": found.count}


def _by_ahead(found: Predicted) -> tuple[Array, Array]:
    """How far ahead, and the square of the share that is not explained there."""
    spread = np.std(found.recorded, axis=0)
    moving = spread > 0
    off = np.nan_to_num((found.expected - found.recorded)[:, moving] / spread[moving], nan=10.0)
    square = np.mean(np.minimum(off**2, 100.0), axis=1) if moving.any() else np.zeros(len(off))
    return found.ahead_s, square


def _merged(parts: Sequence[tuple[Array, Array]], bins: int = 40) -> tuple[Array, Array] | None:
    if not parts:
        return None
    ahead, square = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    if not len(ahead):
        return None
    edges = np.linspace(0, float(ahead.max()) + 1e-12, bins + 1)
    which = np.clip(np.searchsorted(edges, ahead, side="right") - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    total = np.bincount(which, weights=square, minlength=bins)
    there = count > 0
    return (edges[1:])[there], np.sqrt(total[there] / count[there])


def story(studied: Studied) -> str:
    """What was learned, as JSON for whoever reads on."""
    return json.dumps(studied.kept.facts, indent=1)
