"""Identification: the numbers of a rig from its recordings, how sure one may be, and what cannot be told.

The built-in learner. Stretches of the recordings are replayed in the engine at many points side by side, least squares
finds the point that explains them best, and the posterior is as wide as the recordings disagree.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, cast, final

import numpy as np

from simops.core import chance, marginal
from simops.core.belief import Belief, Gaussian
from simops.core.errors import DataError, nearest
from simops.core.learning import NOMINAL, PHYSICAL, Candidate, Learned, Material, Predictor, Progress, Proposal, Watch
from simops.core.params import Param, Params
from simops.core.protocols import Motor
from simops.core.rig import POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.core.simulator import Told
from simops.core.task import Task
from simops.learn.direct import Direct, DirectProblem, rows_of
from simops.learn.excite import propose
from simops.learn.fit import Estimate, Fit, Unknowns, fit
from simops.learn.foresight import NOISE, Foresight, Noise
from simops.learn.replay import Replay, Stretches, Track, cut, enough, replaying, track
from simops.spec.bounds import Above, AtLeast

TRUSTED = 0.3
"""Share of the earlier spread that must be gone before a param is moved."""


@final
@dataclass(frozen=True, kw_only=True)
class Physical:
    """How numbers are identified."""

    params: tuple[str, ...] = ()
    """What to learn; everything that the rig names when left out."""
    ahead_s: Annotated[float, Above(0.0)] = 0.25
    """How far ahead a stretch that is learned from predicts."""
    judged_s: Annotated[float, Above(0.0)] = 1.0
    """How far ahead predictions are judged; more than a recording lasts for the whole of it."""
    most: Annotated[int, AtLeast(2)] = 160
    """Stretches that are replayed at every point."""
    cut_hz: Annotated[float, Above(0.0)] = 40.0
    """Motion above this is noise: where slopes of positions are taken, and where efforts are compared."""
    by: Literal["motion", "effort", "both"] = "motion"
    """What is compared: motion over short replays, the effort that the motion wants, or first that and then motion."""
    rows: Annotated[int, AtLeast(16)] = 16_000
    """Most rows that are compared by effort."""
    copies: Annotated[int, AtLeast(1)] = field(default=2048, repr=False)
    """Copies of the scene that run side by side."""
    draws: Annotated[int, AtLeast(2)] = 24
    """Points of the posterior that an interval is made from."""
    fit: Fit = field(default_factory=lambda: Fit(starts=3, iterations=12))

    def learn(self, material: Material, watch: Watch, *, checkpoint: bytes = b"") -> Learned:
        """Identify the rig's params."""
        del checkpoint  # it takes minutes, and begins anew
        rig = _rig(material.rig, material.task)
        enough(rig, material.recordings)
        params = _chosen(rig.params, self.params)
        watch(Progress(stage="reading"))
        tracks = [track(rig, one, cut_hz=self.cut_hz) for one in material.recordings]
        nominal = _nominal(material)
        found = self._by_effort(material, rig, params, tracks, watch) if self.by != "motion" else None
        if found is None or self.by == "both":
            found = self._by_motion(material, rig, params, tracks, watch, begun=found)
        told, posterior = settled(found)
        belief = nominal.belief if posterior is None else marginal.beside(nominal.belief, posterior)
        learned = replace(nominal, name=PHYSICAL, belief=belief, told=told, notes=_notes(found, told))
        candidates = tuple(replace(one, parts=self._noise(one, material, rig, tracks)) for one in (nominal, learned))
        return Learned(candidates=candidates)

    @contextmanager
    def predicting(self, candidate: Candidate, task: Task, rig: Rig | None) -> Generator[Predictor]:
        """Replay recordings at the centre of what the candidate believes."""
        noise: Noise = json.loads(candidate.parts[NOISE]) if NOISE in candidate.parts else {}
        with self._open(candidate, _rig(rig, task), self.draws) as foresight:
            yield lambda recording: foresight.predict(recording, noise)

    def propose(self, candidate: Candidate, material: Material, *, seconds: float) -> Proposal:
        """The motion within the recorded ranges that would shrink the posterior most."""
        rig = _rig(material.rig, material.task)
        tracks = [track(rig, one, cut_hz=self.cut_hz) for one in material.recordings]
        said: Noise = json.loads(candidate.parts[NOISE]) if NOISE in candidate.parts else {}
        noise = np.array(said["spread"], float)[-1, : 2 * len(rig.joints)] if said else np.ones(2 * len(rig.joints))
        with replaying(rig.task(candidate.belief), candidate.engine, 1 + len(rig.params)) as replay:
            return propose(replay, rig, candidate.belief, tracks, noise, seconds=seconds, seed=material.seed)

    def _by_motion(
        self,
        material: Material,
        rig: Rig,
        params: tuple[Param, ...],
        tracks: list[Track],
        watch: Watch,
        *,
        begun: Estimate | None = None,
    ) -> Estimate:
        """Least squares of short replays, from what efforts said where they were asked before."""
        steps = max(2, round(self.ahead_s / rig.dt_s))
        stretches = cut(tracks, (POSITION, VELOCITY), steps=steps, most=self.most, seed=material.seed)
        if len(stretches) < 2:
            raise DataError("no stretch of the recordings is made of numbers", where=rig.name, fault="LRN-001")
        thought = marginal.widths(rig.prior, params)
        unknowns = Unknowns(params=params, mean=thought.mean, spread=thought.spread)
        if begun is not None:
            spread = np.minimum(np.maximum(4 * begun.spread, 0.05 * thought.spread), thought.spread)
            unknowns = replace(unknowns, mean=begun.mean, spread=spread, bound=False)
        copies = min(self.copies, 24 * len(stretches))
        with replaying(rig.task(), material.engine, copies) as replay:
            problem = Problem(replay, stretches, rig, params, watch)
            problem.weigh(unknowns.mean)
            rough = fit(problem, unknowns, groups=problem.groups, how=replace(self.fit, iterations=4))
            problem.weigh(rough.mean)
            again = replace(unknowns, mean=np.clip(rough.mean, unknowns.low, unknowns.high), bound=False)
            found = fit(problem, again, groups=problem.groups, how=replace(self.fit, starts=1))
        return replace(found, before=thought.spread)

    def _noise(self, candidate: Candidate, material: Material, rig: Rig, tracks: list[Track]) -> dict[str, bytes]:
        with self._open(candidate, rig, 1) as foresight:
            noise = foresight.noise(tracks, most=self.most, seed=material.seed)
        return {**candidate.parts, NOISE: noise}

    @contextmanager
    def _open(self, candidate: Candidate, rig: Rig, draws: int) -> Generator[Foresight]:
        points = drawn(candidate.belief, draws)
        motor = cast("Motor | None", getattr(candidate.engine, "motor", None))
        with replaying(rig.task(candidate.belief), candidate.engine, self.copies) as replay:
            yield Foresight(replay, rig, motor, points, cut_hz=self.cut_hz, ahead_s=self.judged_s)

    def _by_effort(
        self, material: Material, rig: Rig, params: tuple[Param, ...], tracks: list[Track], watch: Watch
    ) -> Estimate:
        """Least squares of the effort that the recorded motion would have wanted."""
        rows = rows_of(rig, tracks, self.cut_hz, most=self.rows)
        thought = marginal.widths(rig.prior, params)
        unknowns = Unknowns(params=params, mean=thought.mean, spread=thought.spread)
        few = rows_of(rig, tracks, self.cut_hz, most=max(16, self.rows // 8))
        with material.engine.open(rig.task(), min(self.copies, len(rows))) as sim:
            direct = Direct(sim, rig, material.engine, self.cut_hz)
            watch(Progress(stage="fitting efforts"))
            problem = DirectProblem(direct, few, rig, params)
            rough = fit(problem, unknowns, groups=problem.groups, how=replace(self.fit, starts=2, iterations=5))
            problem = DirectProblem(direct, rows, rig, params)
            watch(Progress(stage="fitting efforts", figures={"misfit": rough.cost}))
            problem.weigh(rough.mean)
            begun = np.clip(rough.mean, unknowns.low, unknowns.high)
            again = replace(unknowns, mean=begun, spread=0.2 * thought.spread, bound=False)
            found = fit(problem, again, groups=problem.groups, how=replace(self.fit, starts=1, iterations=5))
        return replace(found, before=thought.spread)


@final
class Problem:
    """The residuals of stretches as a function of some params; the others stay as the rig has them."""

    def __init__(self, replay: Replay, stretches: Stretches, rig: Rig, params: tuple[Param, ...], watch: Watch) -> None:
        """Ask `replay`, and tell `watch`."""
        self._replay, self._stretches, self._watch = replay, stretches, watch
        self._names = tuple(p.name for p in rig.params)
        self._rest = np.array([p.nominal for p in rig.params])
        self._index = [self._names.index(p.name) for p in params]
        self._scale = stretches.scale()
        self._asked = 0

    @property
    def groups(self) -> Array:
        """One number a residual: of its recording, or of its stretch where there are few recordings."""
        found = self._stretches.sessions
        if len(np.unique(found)) < 6:
            found = np.arange(len(found))
        return np.repeat(found, int(np.prod(self._stretches.recorded.shape[1:])))

    def weigh(self, point: Array) -> None:
        """Take what is left at `point` for noise: the median of its size, column by column."""
        off = np.abs(np.nan_to_num(self.off(point[None])[0]))
        typical = np.median(off.reshape(-1, off.shape[-1]), axis=0) * 1.4826
        self._scale = np.maximum(typical, 1e-4 * self._stretches.scale())

    def off(self, values: Array) -> Array:
        """(points, stretches, steps, columns) predicted minus recorded."""
        rows = np.tile(self._rest, (len(values), 1))
        rows[:, self._index] = values
        off = self._replay(self._stretches, Params(self._names, rows)) - self._stretches.recorded
        off[:, np.isnan(self._stretches.recorded)] = 0.0  # beyond the end there is nothing to be off from
        return off

    def __call__(self, values: Array) -> Array:
        """(points, residuals) in units of what stays unexplained."""
        off = self.off(values) / self._scale
        self._asked += len(values)
        clear = np.nan_to_num(off, nan=10.0)
        cost = np.sqrt(np.mean(np.minimum(clear**2, 100.0), axis=(1, 2, 3)))
        self._watch(Progress(stage="fitting", done=self._asked, figures={"misfit": float(cost.min())}))
        return off.reshape(len(values), -1)


def settled(found: Estimate, nominal: Sequence[float] = ()) -> tuple[tuple[Told, ...], Belief | None]:
    """Move the params that the recordings told of; leave the others to what was believed, `nominal` if it is given."""
    told = tuple(
        Told(
            p.name,
            nominal=nominal[i] if nominal else p.nominal,
            mean=float(found.mean[i]),
            spread=float(found.spread[i]),
            before=float(found.before[i]),
            trusted=bool(found.spread[i] <= (1 - TRUSTED) * found.before[i]),
        )
        for i, p in enumerate(found.params)
    )
    index = [i for i, one in enumerate(told) if one.trusted]
    if not index:
        return told, None
    rows = found.covariance[np.ix_(index, index)]
    rows = rows + np.diag(1e-18 + 1e-8 * np.diag(rows))
    mean = tuple(found.mean[index].tolist())
    return told, Gaussian(tuple(found.params[i] for i in index), mean, tuple(tuple(row) for row in rows.tolist()))


def drawn(belief: Belief, draws: int) -> Params:
    """The centre of a belief, and then points drawn from it."""
    names = tuple(p.name for p in belief.params)
    points = belief.sample(chance.seeds(0, np.arange(max(0, draws - 1)), realm="predicting")).values
    return Params(names, np.concatenate([middle(belief)[None], points]))


def middle(belief: Belief) -> Array:
    """The centre of a belief; of what was only bounded, the value it comes with."""
    found = marginal.moments(belief).mean
    parts = cast("tuple[Belief, ...]", getattr(belief, "parts", (belief,)))
    known: dict[str, float] = {}
    for part in parts:
        if isinstance(part, Gaussian):
            known |= dict(zip([p.name for p in part.params], part.mean, strict=True))
        else:
            known |= {p.name: p.nominal for p in part.params}
    return np.array([known.get(p.name, float(found[i])) for i, p in enumerate(belief.params)])


def _rig(rig: Rig | None, task: Task) -> Rig:
    if rig is None:
        what = f"{task.name}: this learner wants a rig, which says what each recorded signal is"
        raise DataError(what, attempt="rig: in the spec", fault="LRN-005")
    return rig


def _nominal(material: Material) -> Candidate:
    belief = material.task.belief
    return Candidate(name=NOMINAL, belief=belief, engine=material.engine, sensors=material.sensors)


def _chosen(params: tuple[Param, ...], names: tuple[str, ...]) -> tuple[Param, ...]:
    known = {p.name: p for p in params}
    for name in names:
        if name not in known:
            raise DataError(f"the rig has no param {name!r}", attempt=nearest(name, known) or ", ".join(known))
    if not known:
        raise DataError("the rig names nothing to learn", attempt="params: in the rig")
    return tuple(p for p in params if not names or p.name in names)


def _notes(found: Estimate, told: tuple[Told, ...]) -> tuple[str, ...]:
    notes = [
        f"{one.name} cannot be told from these recordings: {max(0.0, one.contraction):.0%} of its spread is gone"
        for one in told
        if not one.trusted
    ]
    notes += [
        f"no excitation in the direction {words}: {share:.0%} of the spread left" for share, words in found.blind()
    ]
    return tuple(notes)
