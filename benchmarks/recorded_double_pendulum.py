"""Rows of the double pendulum: one second ahead on held-out runs, beside the identified model that comes with it.

That model is given the best for it of the commanded and the measured torque, and of the recorded velocity and the slope
of the positions to start in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.recorded_emps import unwatched
from simops.core.rig import POSITION, VELOCITY
from simops.core.signal import Array
from simops.learn.physical import Physical, drawn
from simops.learn.replay import cut, replaying, track
from simops.ops import study

SPEC = Path(__file__).parent.parent / "examples" / "identify_double_pendulum" / "learn.yaml"
AHEAD_S = 1.0
BAR = 0.7


def rows(data: Path, full: bool) -> Iterator[tuple[str, str, str, bool | None]]:  # noqa: FBT001 (a flag of the command)
    more = ("learner.rows=20000", "learner.most=160", "learner.fit.iterations=12") if full else ()
    with TemporaryDirectory() as folder:
        order = study.load_order(SPEC, data=data / "sysid.parquet", out=Path(folder) / "out", overrides=more)
    learner, rig = order.spec.learner, order.material.rig
    assert isinstance(learner, Physical)
    assert rig is not None
    candidate = learner.learn(order.material, unwatched).candidates[1]
    steps = round(AHEAD_S / rig.dt_s)
    held = cut([track(rig, one, cut_hz=learner.cut_hz) for one in order.held], (POSITION, VELOCITY), steps=steps)
    whole = held.pick(np.flatnonzero(np.isfinite(held.recorded).all(axis=(1, 2))))
    with replaying(rig.task(candidate.belief), candidate.engine, len(whole)) as replay:
        mine = replay(whole, drawn(candidate.belief, 1))[0][:, -1, :2] - whole.recorded[:, -1, :2]
    theirs, typical, alike = np.inf, np.inf, np.inf
    numbers = published(data / "model_parameters.yml")
    for drive, velocity in product(("command_effort", "effort"), ("velocity", "")):
        driven = replace(rig, command=drive, velocity=velocity)
        tracks = [track(driven, one, cut_hz=learner.cut_hz) for one in order.held]
        same = cut(tracks, (POSITION, VELOCITY), steps=steps)
        same = same.pick(np.flatnonzero(np.isfinite(same.recorded).all(axis=(1, 2))))
        ends = rolled(same.begins[POSITION], same.begins[VELOCITY], same.commands, rig.dt_s, numbers)
        off = ends - same.recorded[:, -1, :2]
        theirs, typical = min(theirs, size(off)), min(typical, float(np.median(np.abs(off))))
        alike = size(off) if (drive, velocity) == (rig.command, rig.velocity) else alike
    ratio = size(mine) / theirs
    runs = ", ".join(one.name for one in order.held)
    yield f"angles {AHEAD_S:g} s ahead, RMS, {len(whole)} stretches", f"{size(mine):.4f} rad", "", None
    yield "the identified model that comes with it, at its best", f"{theirs:.4f} rad", "", None
    yield "the same from the same starts and drive", f"{alike:.4f} rad", "", None
    yield f"ratio of RMS, on {runs}", f"{ratio:.2f}", f"{BAR}", ratio <= BAR
    middle = float(np.median(np.abs(mine))) / typical
    yield "ratio of medians, where one fall to the other side counts once", f"{middle:.2f}", f"{BAR}", middle <= BAR
    with learner.predicting(candidate, order.material.task, rig) as predict:
        inside = [found.coverage for one in order.held if (found := predict(one)).coverage is not None]
    share = float(np.mean([one for one in inside if one is not None]))
    yield "coverage of the 90 % interval", f"{share:.1%}", "85 to 95 %", 0.85 <= share <= 0.95


def size(off: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(off**2)))


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
