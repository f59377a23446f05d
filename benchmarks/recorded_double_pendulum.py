"""Rows of the double pendulum: one second ahead on held-out runs, beside the identified model that comes with it.

That model is given the best for it of the commanded and the measured torque, and of the recorded velocity and the slope
of the positions to start in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.recorded_emps import unwatched
from simops.core.rig import POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.learn.physical import Physical, drawn
from simops.learn.replay import Stretches, Track, cut, replaying, track
from simops.ops import study

SPEC = Path(__file__).parent.parent / "examples" / "identify_double_pendulum" / "learn.yaml"
AHEAD_S = 1.0
EVERY_S = 0.05
"""Between two stretches: so many that none of them decides, however it falls."""
BAR = 0.7


def rows(data: Path, full: bool) -> Iterator[tuple[str, str, str, bool | None]]:  # noqa: FBT001 (a flag of the command)
    more = ("learner.rows=20000", "learner.most=160", "learner.fit.iterations=12") if full else ()
    with TemporaryDirectory() as folder:
        order = study.load_order(SPEC, data=data / "sysid.parquet", out=Path(folder) / "out", overrides=more)
    learner, rig = order.spec.learner, order.material.rig
    assert isinstance(learner, Physical)
    assert rig is not None
    candidate = learner.learn(order.material, unwatched).candidates[1]
    cut_hz = learner.cut_hz
    held = windows(rig, [track(rig, one, cut_hz=cut_hz) for one in order.held])
    with replaying(rig.task(candidate.belief), candidate.engine, len(held)) as replay:
        mine = replay(held, drawn(candidate.belief, 1))[0][:, -1, :2] - held.recorded[:, -1, :2]
    numbers, theirs = published(data / "model_parameters.yml"), list[Array]()
    for drive, velocity in product(("command_effort", "effort"), ("velocity", "")):
        driven = replace(rig, command=drive, velocity=velocity)
        same = windows(driven, [track(driven, one, cut_hz=cut_hz) for one in order.held])
        ends = rolled(same.begins[POSITION], same.begins[VELOCITY], same.commands, rig.dt_s, numbers)
        theirs.append(ends - same.recorded[:, -1, :2])
    yield from beside(mine, theirs, held.sessions, [one.name for one in order.held])
    with learner.predicting(candidate, order.material.task, rig) as predict:
        inside = [found.coverage for one in order.held if (found := predict(one)).coverage is not None]
    share = float(np.mean([one for one in inside if one is not None]))
    yield "coverage of the 90 % interval", f"{share:.1%}", "85 to 95 %", 0.85 <= share <= 0.95


def windows(rig: Rig, tracks: Sequence[Track]) -> Stretches:
    """Every stretch of a second of held-out runs that begins at a multiple of `EVERY_S`, whole ones only."""
    found = cut(tracks, (POSITION, VELOCITY), steps=round(AHEAD_S / rig.dt_s), stride=round(EVERY_S / rig.dt_s))
    return found.pick(np.flatnonzero(np.isfinite(found.recorded).all(axis=(1, 2))))


def beside(
    mine: Array, theirs: Sequence[Array], sessions: Array, names: Sequence[str]
) -> Iterator[tuple[str, str, str, bool | None]]:
    """Three figures of the error a second ahead beside those of the other model, each at that model's best."""
    for word, figure in FIGURES.items():
        best = min(figure(off) for off in theirs)
        ratio = figure(mine) / best
        yield (
            f"{word}, {len(mine)} stretches: {figure(mine):.4f}, the other model {best:.4f} rad",
            f"{ratio:.2f}",
            f"{BAR}",
            ratio <= BAR,
        )
    shares = [
        f"{name} {size(mine[sessions == i]) / min(size(off[sessions == i]) for off in theirs):.2f}"
        for i, name in enumerate(names)
    ]
    yield "RMS ratio run by run", " ".join(shares), "", None


def size(off: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(off**2)))


FIGURES: Mapping[str, Callable[[Array], float]] = {
    "RMS": size,
    "mean error": lambda off: float(np.mean(np.abs(off))),
    "median error": lambda off: float(np.median(np.abs(off))),
}


def published(path: Path) -> Mapping[str, float]:
    """The numbers that come with the data."""
    lines = [line.split(":") for line in path.read_text().splitlines() if ":" in line]
    return {key.strip(): float(value) for key, value in lines}


def rolled(position: Array, velocity: Array, torque: Array, dt_s: float, p: Mapping[str, float]) -> Array:
    """Angles at the end of stretches, by the published equations of motion and Runge and Kutta."""
    state = np.concatenate([position, velocity], axis=1)
    for step in range(torque.shape[1]):
        u = torque[:, step]
        one = slope(state, u, p)
        two = slope(state + dt_s / 2 * one, u, p)
        three = slope(state + dt_s / 2 * two, u, p)
        four = slope(state + dt_s * three, u, p)
        state = state + dt_s / 6 * (one + 2 * two + 2 * three + four)
    return state[:, :2]


def slope(state: Array, u: Array, p: Mapping[str, float]) -> Array:
    """Rates of angles and velocities."""
    q1, q2, d1, d2 = state.T
    lever, rotor = p["m2"] * p["l1"] * p["r2"], p["gr"] ** 2 * p["Ir"]
    m11 = p["I1"] + p["I2"] + p["m2"] * p["l1"] ** 2 + 2 * lever * np.cos(q2) + rotor + p["Ir"]
    m12 = p["I2"] + lever * np.cos(q2) - p["gr"] * p["Ir"]
    m22 = p["I2"] + rotor
    turn = lever * np.sin(q2)
    fall2 = p["g"] * p["m2"] * p["r2"] * np.sin(q1 + q2)
    fall1 = p["g"] * (p["m1"] * p["r1"] + p["m2"] * p["l1"]) * np.sin(q1) + fall2
    want1 = u[:, 0] - fall1 + turn * (2 * d1 * d2 + d2**2) - p["b1"] * d1 - p["cf1"] * np.arctan(100 * d1)
    want2 = u[:, 1] - fall2 - turn * d1**2 - p["b2"] * d2 - p["cf2"] * np.arctan(100 * d2)
    area = m11 * m22 - m12**2
    return np.stack([d1, d2, (m22 * want1 - m12 * want2) / area, (m11 * want2 - m12 * want1) / area], axis=1)
