"""The simulator learns: trajectories of a task that were rolled out in reality go in, a candidate simulator comes out.

    lesson = learn(trajectories, Simulator.untouched(task, engine))
    verdict = compare(champion, lesson.simulator, held_out)      # then train in lesson.simulator.believed, or do not

What is learned are the task's own params, those that change the physics, by replays of short stretches in the engine
at many points side by side. What the recordings could not tell stays as it was believed, and is said. A challenger is
compared episode by episode with the champion on trajectories that neither has seen, and is refused if not better.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, final

import numpy as np

from simops.core import marginal
from simops.core.belief import Belief
from simops.core.errors import DataError, nearest
from simops.core.params import Param, Params
from simops.core.signal import Array
from simops.core.simulator import Simulator, Told
from simops.core.trajectory import Trajectory
from simops.core.verdict import Finding, Interval, Verdict
from simops.learn.fit import Estimate, Fit, Unknowns, fit
from simops.learn.physical import settled
from simops.ops.windows import Driven, Replays, Stretches, cut, kinematic, replaying

SHORTEST_S = 2.0
"""Less recorded motion than this, all together, is not learned from."""
VISUAL = frozenset({"texture", "light", "camera_pan", "camera_tilt", "camera_roll"})


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """How to learn."""

    params: tuple[str, ...] = ()
    """What to learn; every param that changes the physics when left out."""
    window_s: float = 0.2
    """How far ahead a stretch predicts."""
    most: int = 192
    """Stretches that are replayed at every point."""
    copies: int = 1024
    """Copies of the scene that run side by side."""
    driven: Driven | None = None
    """Column that drives a replay; what was executed, or what was asked for where a delay is to be learned."""
    fit: Fit = field(default_factory=lambda: Fit(starts=2, iterations=8))


@final
@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What was learned."""

    simulator: Simulator
    """The candidate; released only once it is found better than the champion."""
    estimate: Estimate
    told: tuple[Told, ...]
    before: float
    """Error a window ahead before, as a share of how far things move in it; on the trajectories learned from."""
    after: float
    notes: tuple[str, ...]


def learn(trajectories: Sequence[Trajectory], simulator: Simulator, *, asked: Asked | None = None) -> Lesson:
    """Learn the params of `simulator` from trajectories of its task, as rolled out in reality.

    Args:
        trajectories: With the columns of the task's state, and `action` and `executed`; from a robot, from a sealed
            engine, from anywhere.
        simulator: What is believed so far: a released one, or `Simulator.untouched(task, engine)`.
        asked: What to learn and how.
    """
    asked = asked or Asked()
    task = simulator.task
    params = learnable(simulator, asked.params)
    _enough(trajectories, simulator)
    names = kinematic(task, simulator.engine)
    driven = asked.driven or ("action" if any(_delays(p) for p in params) else "executed")
    steps = max(2, round(asked.window_s / task.control_dt_s))
    stretches = cut(task, names, trajectories, steps=steps, most=asked.most, driven=driven)
    if len(stretches) < 2:
        raise DataError("no stretch of the trajectories is made of numbers", fault="LRN-001", where=task.name)
    thought = marginal.widths(marginal.beside(task.belief, simulator.belief), params)
    late = frozenset(p.name for p in params if _delays(p))
    unknowns = Unknowns(params=params, mean=thought.mean, spread=thought.spread, coarse=late)
    with replaying(task, simulator.engine, min(asked.copies, 32 * len(stretches))) as replays:
        problem = _Problem(replays, stretches, simulator, params)
        problem.weigh(thought.mean)
        rough = fit(problem, unknowns, groups=problem.groups, how=replace(asked.fit, iterations=3))
        problem.weigh(rough.mean)
        again = replace(unknowns, mean=np.clip(rough.mean, unknowns.low, unknowns.high), bound=False)
        found = fit(problem, again, groups=problem.groups, how=replace(asked.fit, starts=1))
        before, after = problem.error(thought.mean), problem.error(found.mean)
        noise = problem.noise(found.mean)
    found = replace(found, before=thought.spread)
    told, posterior = settled(found, thought.mean.tolist())
    if after >= before:
        told, posterior = tuple(replace(one, trusted=False) for one in told), None
    notes = _notes(found, told, before, after)
    belief = simulator.belief if posterior is None else marginal.beside(simulator.belief, posterior)
    candidate = replace(simulator, belief=belief, noise=noise, told=told, notes=notes)
    return Lesson(simulator=candidate, estimate=found, told=told, before=before, after=after, notes=notes)


def learnable(simulator: Simulator, names: Sequence[str] = ()) -> tuple[Param, ...]:
    """The params that change the physics, or those of them that are named."""
    physical = {
        p.name: p
        for p in marginal.beside(simulator.task.belief, simulator.belief).params
        if not p.integer and any(change.field not in VISUAL for change in p.changes)
    }
    for name in names:
        if name not in physical:
            attempt = nearest(name, physical) or ", ".join(physical)
            raise DataError(f"{name!r} is no param that changes the physics", where=simulator.named, attempt=attempt)
    if not physical:
        raise DataError(f"{simulator.named} has no param that changes its physics", attempt="params in its belief")
    return tuple(p for p in physical.values() if not names or p.name in names)


def compare(
    champion: Simulator,
    challenger: Simulator,
    held_out: Sequence[Trajectory],
    *,
    window_s: float = 0.2,
    alpha: float = 0.05,
    most: int = 384,
    copies: int = 1024,
) -> Verdict:
    """Judge a challenger on trajectories that neither simulator has learned from.

    Each is replayed at the centre of its belief, in its own engine. The verdict is about the challenger and passes
    when the mean, over trajectories, of the logarithm of its error over the champion's is below 0 with its whole
    interval; `verdict.require()` refuses otherwise.
    """
    if champion.task.name != challenger.task.name:
        raise DataError(f"{champion.task.name} and {challenger.task.name} are not one task", where=challenger.named)
    errors = [
        per_session(each, held_out, window_s=window_s, most=most, copies=copies) for each in (champion, challenger)
    ]
    return judged(errors[0], errors[1], about=digest(challenger), suite=digest_of(held_out), alpha=alpha)


def judged(
    champion: Array, challenger: Array, *, about: str, suite: str, alpha: float, name: str = "champion"
) -> Verdict:
    """The verdict on errors of two simulators, one a session, paired."""
    ratio = np.log(np.maximum(challenger, 1e-12) / np.maximum(champion, 1e-12))
    n = len(ratio)
    value = float(ratio.mean()) if n else None
    if n < 5 or value is None:
        found = Finding(
            check=f"error over {name}", value=value, bound=0.0, count=n, status="not enough evidence", fault="LRN-006",
            note=f"{n} sessions; five are the fewest that can tell",
        )  # fmt: skip
        return Verdict(policy=about, suite=suite, realm="held out", alpha=alpha, findings=(found,))
    reach = _student(n - 1, alpha) * float(ratio.std(ddof=1)) / math.sqrt(n)
    within = Interval(value - reach, value + reach)
    status = "pass" if within.high < 0 else "fail" if within.low > 0 else "marginal"
    found = Finding(
        check=f"error over {name}",
        value=value,
        bound=0.0,
        interval=within,
        count=n,
        status=status,
        fault="" if status == "pass" else "LRN-006",
        note=f"logarithm; {100 * math.expm1(value):+.1f} % error",
    )
    return Verdict(policy=about, suite=suite, realm="held out", alpha=alpha, findings=(found,))


def per_session(
    simulator: Simulator,
    trajectories: Sequence[Trajectory],
    *,
    window_s: float = 0.2,
    most: int = 384,
    copies: int = 1024,
) -> Array:
    """Error a window ahead of each trajectory, as a share of how far things move in it, at the belief's centre."""
    task = simulator.task
    steps = max(2, round(window_s / task.control_dt_s))
    driven: Driven = "action" if any(_delays(p) for p in simulator.belief.params) else "executed"
    stretches = cut(task, kinematic(task, simulator.engine), trajectories, steps=steps, most=most, driven=driven)
    params = learnable(simulator)
    centre = marginal.moments(marginal.beside(task.belief, simulator.belief)).mean
    names = [p.name for p in marginal.beside(task.belief, simulator.belief).params]
    point = np.array([centre[names.index(p.name)] for p in params])
    with replaying(task, simulator.engine, min(copies, len(stretches))) as replays:
        problem = _Problem(replays, stretches, simulator, params)
        off = problem.off(point[None])[0] / stretches.scale()
    size = np.sqrt(np.mean(np.minimum(np.nan_to_num(off, nan=10.0) ** 2, 100.0), axis=(1, 2)))
    return np.array([size[stretches.sessions == i].mean() for i in np.unique(stretches.sessions)])


def digest(simulator: Simulator) -> str:
    """SHA-256 of what a simulator is: engine, task, sensors and belief."""
    from simops.core.belief import text

    body = f"{simulator.named}\n{simulator.engine!r}\n{simulator.sensors!r}\n{text(simulator.belief)}"
    return hashlib.sha256(body.encode()).hexdigest()


def digest_of(trajectories: Sequence[Trajectory]) -> str:
    """SHA-256 over the columns of trajectories."""
    sha = hashlib.sha256()
    for one in trajectories:
        for name in one.schema.names:
            sha.update(np.ascontiguousarray(one.columns[name]).tobytes())
    return sha.hexdigest()


@final
class _Problem:
    """The residuals of stretches as a function of some params; the others stay at the centre of what is believed."""

    def __init__(self, replays: Replays, stretches: Stretches, simulator: Simulator, params: tuple[Param, ...]) -> None:
        self._replays, self._stretches = replays, stretches
        whole = marginal.beside(simulator.task.belief, simulator.belief)
        by_name = dict(zip([p.name for p in whole.params], marginal.moments(whole).mean.tolist(), strict=True))
        self._names = tuple(p.name for p in simulator.task.belief.params)
        self._rest = np.array([by_name[name] for name in self._names])
        self._index = [self._names.index(p.name) for p in params]
        self._scale = stretches.scale()

    @property
    def groups(self) -> Array:
        """One number a residual: of its trajectory, or of its stretch where there are few trajectories."""
        found = self._stretches.sessions
        if len(np.unique(found)) < 6:
            found = np.arange(len(found))
        return np.repeat(found, int(np.prod(self._stretches.recorded.shape[1:])))

    def weigh(self, point: Array) -> None:
        """Take what is left at `point` for noise: the median of its size, column by column."""
        off = np.abs(np.nan_to_num(self.off(point[None])[0]))
        typical = np.median(off.reshape(-1, off.shape[-1]), axis=0) * 1.4826
        self._scale = np.maximum(typical, 3e-3 * self._stretches.scale())

    def off(self, values: Array) -> Array:
        """(points, stretches, steps, scalars) predicted minus recorded."""
        rows = np.tile(self._rest, (len(values), 1))
        rows[:, self._index] = values
        return self._replays(self._stretches, Params(self._names, rows))

    def __call__(self, values: Array) -> Array:
        off = self.off(values) / self._scale
        return off.reshape(len(values), -1)

    def error(self, point: Array) -> float:
        """Root mean square over columns of the share of the motion that is predicted wrong."""
        off: Array = np.nan_to_num(self.off(point[None])[0], nan=1e3) / self._stretches.scale()
        return float(np.sqrt(np.mean(np.minimum(off**2, 100.0))))

    def noise(self, point: Array) -> dict[str, float]:
        """What stays unexplained at the end of a stretch, column by column."""
        off: Array = np.nan_to_num(self.off(point[None])[0][:, -1])
        size: Array = np.median(np.abs(off), axis=0)
        spread: list[float] = (size * 1.4826).astype(float).tolist()
        return dict(zip(self._stretches.scalars, spread, strict=True))


def _notes(found: Estimate, told: Sequence[Told], before: float, after: float) -> tuple[str, ...]:
    notes = [
        f"{one.name} cannot be told from these trajectories: {100 * one.contraction:.0f} % of its spread is gone"
        for one in told
        if not one.trusted
    ]
    notes += [
        f"no excitation in the direction {words}: {share:.0%} of the spread left" for share, words in found.blind()
    ]
    if after >= before:
        notes.append(f"nothing was learned: the error a window ahead is {after:.3f}, it was {before:.3f}")
    return tuple(notes)


def _enough(trajectories: Sequence[Trajectory], simulator: Simulator) -> None:
    task = simulator.task
    if not trajectories:
        raise DataError("no trajectory to learn from", where=simulator.named, fault="LRN-004")
    for one in trajectories:
        if one.provenance.task != task.name:
            raise DataError(
                f"a trajectory of {one.provenance.task}, not of {task.name}", where=task.name, fault="LRN-005",
                attempt="trajectories of this task and this robot",
            )  # fmt: skip
    long_s = sum(len(one) for one in trajectories) * task.control_dt_s
    if long_s < SHORTEST_S:
        raise DataError(
            f"{long_s:.2f} s of motion are too little to learn from", where=task.name, fault="LRN-004",
            attempt=f"at least {SHORTEST_S:g} s",
        )  # fmt: skip
    names = [r.signal.name for r in task.state]
    still = all(
        np.nanmax(np.ptp(one[name].reshape(len(one) + 1, -1), axis=0)) == 0 for one in trajectories for name in names
    )
    if still:
        raise DataError("nothing moves in these trajectories", where=task.name, fault="LRN-002")


def _delays(param: Param) -> bool:
    return any(change.field == "delay" for change in param.changes)


def _student(freedom: int, alpha: float) -> float:
    from scipy.stats import t  # pyright: ignore[reportMissingTypeStubs]

    quantile = cast("Any", t)
    return float(quantile.ppf(1 - alpha / 2, freedom))


def centre(belief: Belief) -> dict[str, float]:
    """The middle of a belief, by name."""
    found = marginal.moments(belief).mean
    return dict(zip([p.name for p in belief.params], found.tolist(), strict=True))
