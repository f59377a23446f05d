"""Rows of EMPS: published params, the effort that a held-out motion wants, and the closed loop on held-out blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from simops.core.learning import Candidate, Progress
from simops.core.recording import Recording
from simops.learn.direct import Direct, rows_of
from simops.learn.physical import Physical, drawn
from simops.learn.replay import track
from simops.ops import study

SPEC = Path(__file__).parent.parent / "examples" / "identify_emps" / "learn.yaml"
PUBLISHED = {"mass": 95.109, "motor_viscous": 203.503, "motor_coulomb": 20.394, "motor_offset": -3.165}
FOLDS = 4
CLOSED = {"position %": 0.008, "velocity %": 0.45, "effort %": 6.0}


def rows(data: Path, full: bool) -> Iterator[tuple[str, str, str, bool | None]]:  # noqa: FBT001 (a flag of the command)
    size = 40_000 if full else 12_000
    with TemporaryDirectory() as folder:
        order = study.load_order(
            SPEC, data=data / "emps.parquet", out=Path(folder) / "out", overrides=(f"learner.rows={size}",)
        )
    learner = order.spec.learner
    assert isinstance(learner, Physical)
    plain = replace(learner, params=tuple(PUBLISHED), rows=40_000)
    whole = replace(order.material, recordings=(*order.material.recordings, *order.held))
    found = {told.name: told.mean for told in plain.learn(whole, unwatched).candidates[1].told}
    for name, value in PUBLISHED.items():
        off = abs(found[name] / value - 1)
        yield f"{name} off the published, same run, same model", f"{found[name]:.3f}, {off:.2%}", "1 %", off <= 0.01
    candidate = learner.learn(order.material, unwatched).candidates[1]
    missing = percent([effort_error(order, learner, candidate, order.held)])
    yield "effort that the motion wants, the blocks of this split", f"{missing:.2f} %", "", None
    missing = percent(list(crossed(order, replace(learner, rows=size // 2))))
    yield f"effort that the motion wants, every block, {FOLDS} folds", f"{missing:.2f} %", "3.1 %", missing <= 3.1
    with learner.predicting(candidate, order.material.task, order.material.rig) as predict:
        predicted = [predict(one) for one in order.held]
    for name, bar in CLOSED.items():
        value = float(np.mean([one.errors[name] for one in predicted]))
        yield f"closed loop, {name.removesuffix(' %')}, held-out blocks", f"{value:.4f} %", f"{bar} %", value <= bar
    inside = float(np.mean([one.coverage for one in predicted if one.coverage is not None]))
    yield "coverage of the 90 % interval, held-out blocks", f"{inside:.1%}", "85 to 95 %", 0.85 <= inside <= 0.95


def crossed(order: study.Order, learner: Physical) -> Iterator[tuple[float, float]]:
    """The missing and the recorded effort of each fold, learned from the others: every block is held out once."""
    every = (*order.material.recordings, *order.held)
    for fold in range(FOLDS):
        held = every[fold::FOLDS]
        rest = tuple(one for i, one in enumerate(every) if i % FOLDS != fold)
        candidate = learner.learn(replace(order.material, recordings=rest), unwatched).candidates[1]
        yield effort_error(order, learner, candidate, held)


def effort_error(
    order: study.Order, learner: Physical, candidate: Candidate, held: Sequence[Recording]
) -> tuple[float, float]:
    """Squares of the recorded effort that the held-out motion does not ask for, and of all of it, filtered alike."""
    rig, engine = order.material.rig, order.material.engine
    assert rig is not None
    tracks = [track(rig, one, cut_hz=learner.cut_hz) for one in held]
    part = rows_of(rig, tracks, learner.cut_hz)
    with engine.open(rig.task(candidate.belief), 2048) as sim:
        direct = Direct(sim, rig, engine, learner.cut_hz)
        off = direct(part, drawn(candidate.belief, 1))[0]
    kept = direct.decimated(part)
    return float(np.sum(off[kept] ** 2)), float(np.sum(direct.filtered(part)[kept] ** 2))


def percent(parts: Sequence[tuple[float, float]]) -> float:
    """The first of each pair against the second, pooled."""
    off, whole = np.sum(parts, axis=0)
    return float(100 * np.sqrt(off / whole))


def unwatched(progress: Progress) -> None:
    """Nobody watches."""
    del progress
