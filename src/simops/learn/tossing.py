"""The learner of contact: tosses in, a law of contact out, rung by rung, each to beat the one before."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast, final

import numpy as np

from simops.core.errors import DataError, EngineError
from simops.core.learning import (
    LEARNED,
    NOMINAL,
    PHYSICAL,
    Candidate,
    Learned,
    Material,
    Predicted,
    Predictor,
    Progress,
    Watch,
)
from simops.core.protocols import Engine
from simops.core.recording import Recording
from simops.core.rig import Rig
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.throwing import STATE, Thrower, Throws, missed
from simops.learn.contact import LAG, LAW, NETWORK, SHAPE, SPIN, How, fallen, learn_law, predict
from simops.spec.bounds import AtLeast

READING = "reading.json"
"""How the recording is read, and how far off predictions were, row by row."""
NAMES = ("x", "y", "z", "qw", "qx", "qy", "qz")
UNITS = ("m", "m", "m", "", "", "", "")


@final
@dataclass(frozen=True, kw_only=True)
class Contact:
    """How contact is learned: the numbers of the law, then what is said beyond them."""

    generations: Annotated[int, AtLeast(1)] = 25
    """Of every rung's search."""
    beyond: Literal["network", "corners", ""] = "network"
    """The last rung: a small network that scales friction and damping, where the corners truly are, or none."""
    believed: Mapping[str, float] = field(default_factory=dict[str, float])
    """Settings of the engine, and of how the recording is read, that the search begins at; else the engine's own."""
    lengths: Annotated[float, AtLeast(0.0)] = 0.0
    """What the recording shows of a metre; 0 measures it by how fast the body falls."""

    def learn(self, material: Material, watch: Watch, *, checkpoint: bytes = b"") -> Learned:
        """Learn the law, then what is beyond it."""
        del checkpoint  # it takes minutes, and begins anew
        thrower, throws = thrower_of(material.engine), gathered(material.task, material.recordings)
        lengths = self.lengths or fallen(throws)
        how = How(generations=self.generations, lengths=lengths, seed=material.seed)
        rungs: list[tuple[str, dict[str, float]]] = [(NOMINAL, {})]
        values = dict(self.believed)
        beyond = {"network": NETWORK, "corners": SHAPE, "": ()}[self.beyond]
        for name, free in ((PHYSICAL, (*LAW, LAG.name, SPIN.name)), (LEARNED, beyond)):
            if free:
                told = _telling(watch, name, self.generations)
                values = learn_law(thrower, material.task, throws, free, how=how, start=values, watch=told).values
                rungs.append((name, values))
        candidates = tuple(self._candidate(name, found, material, throws, lengths) for name, found in rungs)
        return Learned(candidates=candidates, tables={"The law of contact": _table(thrower, values)})

    @contextmanager
    def predicting(self, candidate: Candidate, task: Task, rig: Rig | None) -> Generator[Predictor]:
        """Roll each toss out from its first row alone, once."""
        del rig
        thrower, reading = thrower_of(candidate.engine), json.loads(candidate.parts[READING])
        values = cast("dict[str, float]", reading["values"])
        reach = np.array(reading["reach"])

        def predicted(recording: Recording) -> Predicted:
            one = gathered(task, (recording,))
            seen = predict(thrower, task, one, values, lengths=float(reading["lengths"]))
            off = missed(seen["position"], seen["quaternion"], one)
            recorded, expected = _side_by_side(seen, one, 0)
            wide = reach[np.minimum(np.arange(len(recorded)), len(reach) - 1)]
            time_s = np.arange(len(recorded)) * one.dt_s
            return Predicted(
                names=NAMES,
                units=UNITS,
                time_s=time_s,
                recorded=recorded,
                expected=expected,
                ahead_s=time_s,
                low=expected - wide,
                high=expected + wide,
                errors={"position, mm": 1e3 * float(off.way_m[0]), "rotation, deg": float(np.rad2deg(off.turn_rad[0]))},
            )

        yield predicted

    def _candidate(
        self, name: str, values: dict[str, float], material: Material, throws: Throws, lengths: float
    ) -> Candidate:
        """The engine at what was found, and how far off it was on the tosses it was found from."""
        read = {key: value for key, value in values.items() if key in {LAG.name, SPIN.name}}
        law = {key: value for key, value in values.items() if key not in read}
        engine = thrower_of(material.engine).at(law)
        seen = predict(engine, material.task, throws, read, lengths=lengths)
        reading = {"values": read, "lengths": lengths, "reach": reach(seen, throws).tolist()}
        return Candidate(
            name=name,
            belief=material.task.belief,
            engine=cast("Engine", engine),
            sensors=material.sensors,
            parts={READING: json.dumps(reading, indent=1).encode()},
        )


def thrower_of(engine: Engine) -> Thrower:
    """The engine, where contact can be learned in it."""
    if not isinstance(engine, Thrower):
        raise EngineError(f"contact cannot be learned in {type(engine).__name__}", attempt="engine: {use: impact}")
    return engine


def gathered(task: Task, recordings: tuple[Recording, ...]) -> Throws:
    """Recordings of tosses: one stream each that has the four signals of a free body, one row a control period."""
    each: list[Columns] = []
    for one in recordings:
        streams = [stream for stream in one.streams if set(STATE) <= set(stream.schema.names)]
        if not streams:
            raise DataError(
                f"no stream has {', '.join(STATE)}", where=one.name, attempt="a map that names them", fault="LRN-005"
            )
        step = np.diff(streams[0].time_s)
        if len(step) and np.max(np.abs(step - task.control_dt_s)) > 0.05 * task.control_dt_s:
            raise DataError(
                f"rows are {step.min():.4g} to {step.max():.4g} s apart, want {task.control_dt_s:.4g}",
                where=one.name,
                attempt="tosses recorded at the task's rate, without gaps",
                fault="LRN-005",
            )
        each.append({name: np.asarray(streams[0].columns[name], np.float64) for name in STATE})
    return Throws.of([one.name for one in recordings], each, task.control_dt_s)


def reach(seen: Mapping[str, Array], throws: Throws) -> Array:
    """(rows, 7) how far nine of ten recorded values are from what was predicted, by how far ahead, never shrinking."""
    most = int(throws.rows.max())
    off = np.full((len(throws), most, len(NAMES)), np.nan)
    for i in range(len(throws)):
        recorded, expected = _side_by_side(seen, throws, i)
        off[i, : len(recorded)] = np.abs(recorded - expected)
    enough = max(3, len(throws) // 10)
    told = np.isfinite(off[..., 0]).sum(axis=0) >= enough
    wide = np.nanquantile(off[:, told], 0.9, axis=0)
    wide = np.concatenate([wide, np.repeat(wide[-1:], most - len(wide), axis=0)])
    return np.maximum.accumulate(wide, axis=0) + 1e-9


def _side_by_side(seen: Mapping[str, Array], throws: Throws, i: int) -> tuple[Array, Array]:
    """(rows, 7) recorded and predicted poses of one toss; quaternions on the same side."""
    rows = int(throws.rows[i])
    there, turned = (throws.columns[name][i, :rows] for name in ("position", "quaternion"))
    sign = np.where((turned * seen["quaternion"][i, :rows]).sum(axis=1) < 0, -1.0, 1.0)
    recorded = np.concatenate([there, turned * sign[:, None]], axis=1)
    return recorded, np.concatenate([seen["position"][i, :rows], seen["quaternion"][i, :rows]], axis=1)


def _telling(watch: Watch, stage: str, total: int) -> Callable[[int, float], None]:
    return lambda done, cost: watch(Progress(stage=stage, done=done, total=total, figures={"cost": cost}))


def _table(thrower: Thrower, values: Mapping[str, float]) -> tuple[tuple[str, ...], ...]:
    nominal = {param.name: param for param in (*thrower.settings, LAG, SPIN)}
    rows = [(name, f"{nominal[name].nominal:.4g}", f"{values[name]:.4g}", nominal[name].about) for name in
            (*LAW, LAG.name, SPIN.name) if name in values]  # fmt: skip
    return (("setting", "as it came", "learned", "what it is"), *rows)
