"""Recordings of joints in; numbers, what they predict of recordings held out, and a report out.

Every prediction is from the first instant and the commands alone, over the whole recording, and stands beside three
that need no learning: the command itself, the best delay with a first-order lag, and for a robot its scene as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError, nearest
from simops.core.recording import Recording
from simops.core.signal import Array
from simops.data.files import make_folder, publish
from simops.learn.bench import Bench
from simops.learn.fit import Estimate
from simops.learn.joint import errors, lagged
from simops.ops import chirp, joints
from simops.ops.page import Page
from simops.ops.plot import Axis, Line, lines
from simops.ops.recordings import importer

DELAYS_S = (0.0, 0.01, 0.02, 0.03, 0.05, 0.08)
LAGS_S = (0.0, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2)
COMMAND, LAG, SCENE, FOUND = "command itself", "delay and lag", "scene as it is", "identified"


@final
@dataclass(frozen=True, kw_only=True)
class Score:
    """Error of one joint in one recording, by what predicted it."""

    recording: str
    joint: str
    held: bool
    """Whether it was kept from the fit."""
    rms_rad: Mapping[str, float]
    mean_rad: Mapping[str, float]
    """Mean absolute error."""
    doubt_rad: float = 0.0
    """How far the fits disagree on it."""


@final
@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found."""

    name: str
    scores: tuple[Score, ...]
    numbers: Mapping[str, Mapping[str, tuple[float, float]]]
    """Joint to number to value and standard deviation."""
    units: Mapping[str, str]
    blind: Mapping[str, tuple[str, ...]]
    """What the recordings do not tell, in words, joint by joint."""
    traces: tuple[tuple[str, Array, Mapping[str, Array]], ...] = field(repr=False)
    """Title, times, and curves by name."""

    def total(self, name: str, *, held: bool, what: str = "rms") -> float:
        """Root mean square over recordings and joints, or the mean absolute error; NaN where there is none."""
        picked = [s for s in self.scores if s.held == held]
        if not picked:
            return float("nan")
        if what == "rms":
            return float(np.sqrt(np.mean([s.rms_rad[name] ** 2 for s in picked])))
        return float(np.mean([s.mean_rad[name] for s in picked]))


def read(source: Path, how: str = "") -> list[Recording]:
    """Recordings of a file or folder; `how` is a map, found by the columns' names when left out."""
    reader, _ = importer(source, how=how)
    return list(reader.read(source))


def servos(recordings: Sequence[Recording], rig: joints.Rig, held: Sequence[str] = ()) -> Outcome:
    """Identify every joint from its commands and positions, and predict all recordings, those called `held` unseen."""
    names = _distinct(recordings)
    for name in held:
        if name not in names:
            raise DataError(f"no recording is called {name!r}", attempt=nearest(name, names) or ", ".join(names))
    taught = [r for r, name in zip(recordings, names, strict=True) if name not in held]
    found = joints.identified(joints.benches(taught, rig), rig)
    every = joints.benches(recordings, rig)
    predicted = joints.predicted(found, every, rig)
    scores: list[Score] = []
    traces: list[tuple[str, Array, Mapping[str, Array]]] = []
    for label, bench in every.items():
        mean = predicted[label].mean_rad
        ways = {COMMAND: bench.command_rad, LAG: lagged(bench, DELAYS_S, LAGS_S), FOUND: mean}
        scores += _scored(names, held, label, bench, ways, predicted[label].doubt_rad)
        for row in range(len(names)):
            count = int(bench.within[row].sum())
            curves = {"recorded": bench.position_rad, COMMAND: bench.command_rad, FOUND: mean}
            traces.append(
                (f"{names[row]}, {label}", bench.time_s[row, :count], {k: v[row, :count] for k, v in curves.items()})
            )
    params = {label: joint.params for label, joint in found.items()}
    return Outcome(
        name=recordings[0].robot or recordings[0].session,
        scores=tuple(scores),
        numbers={label: _told(joint.estimate) for label, joint in found.items()},
        units={p.name: p.unit for each in params.values() for p in each},
        blind={label: _blind(joint.estimate) for label, joint in found.items()},
        traces=tuple(traces),
    )


def robot(recording: Recording, scene: Path, gains: Path, how: chirp.How) -> Outcome:
    """Identify a robot held in the air; what lies after `how.until` of the recording is held out."""
    found = chirp.identify(scene, recording, gains_of(gains), how)
    times = recording.position.ordered().time_s
    known = found.held.start or len(times)
    ways = {COMMAND: found.command_rad, SCENE: found.nominal_rad, FOUND: found.predicted_rad}
    scores: list[Score] = []
    for part, held in ((slice(0, known), False), (slice(known, None), True)):
        if held and found.held.start is None:
            continue
        for i, joint in enumerate(found.joints):
            off = {k: (v - found.recorded_rad)[part, i] for k, v in ways.items()}
            scores.append(
                Score(
                    recording=f"{recording.name}, {'held out' if held else 'learned from'}",
                    joint=joint,
                    held=held,
                    rms_rad={k: float(np.sqrt(np.mean(v**2))) for k, v in off.items()},
                    mean_rad={k: float(np.mean(np.abs(v))) for k, v in off.items()},
                )
            )
    numbers: dict[str, dict[str, tuple[float, float]]] = {joint: {} for joint in found.joints}
    for one in found.found:
        for name, (value, spread) in _told(one.estimate).items():
            joint = next(j for j in one.limb.joints if name.endswith(f"_{j}"))
            numbers[joint][name.removesuffix(f"_{joint}")] = value, spread
    traces = [
        (
            f"{joint}",
            times,
            {"recorded": found.recorded_rad[:, i], COMMAND: found.command_rad[:, i], FOUND: found.predicted_rad[:, i]},
        )
        for i, joint in enumerate(found.joints)
    ]
    return Outcome(
        name=recording.robot or recording.name,
        scores=tuple(scores),
        numbers=numbers,
        units={},
        blind={" ".join(one.limb.joints): _blind(one.estimate) for one in found.found},
        traces=tuple(traces),
    )


def gains_of(path: Path) -> chirp.Gains:
    """Stiffness and damping of each joint from a JSON file with `kp` and `kd`."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return chirp.Gains(stiffness=np.array(told["kp"], float), damping=np.array(told["kd"], float))
    except (OSError, ValueError, KeyError, TypeError) as error:
        attempt = 'a JSON file as {"kp": [20.0, …], "kd": [1.5, …]}, one number a joint'
        raise DataError(f"{path.name} tells no gains: {error}", where=str(path), attempt=attempt) from error


def write(outcome: Outcome, out: Path) -> Path:
    """Put numbers.json and report.html into a folder; gives the report's path."""
    make_folder(out)
    told = {
        joint: {name: {"value": value, "std": std} for name, (value, std) in numbers.items()}
        for joint, numbers in outcome.numbers.items()
    }
    publish(out / "numbers.json", json.dumps(told, indent=1).encode())
    page = Page(f"Identified: {outcome.name}", lead="Predicted from the first instant and the commands alone.")
    page.section("Error", "Root mean square over recordings and joints, in radians.")
    ways = list(outcome.scores[0].rms_rad)
    rows = [
        (way, *(outcome.total(way, held=held, what=what) for held in (False, True) for what in ("rms", "mean")))
        for way in ways
    ]
    page.table(("predicted by", "rms, learned from", "mean, learned from", "rms, held out", "mean, held out"), rows)
    page.section("Joint by joint")
    page.table(
        ("recording", "joint", "held out", *ways, "fits disagree by"),
        [(s.recording, s.joint, s.held, *s.rms_rad.values(), s.doubt_rad) for s in outcome.scores],
        sortable=True,
    )
    page.section("Numbers", "Value and standard deviation.")
    names = list(dict.fromkeys(name for numbers in outcome.numbers.values() for name in numbers))
    page.table(
        ("number", "unit", *outcome.numbers),
        [(n, outcome.units.get(n, ""), *(_pair(each.get(n)) for each in outcome.numbers.values())) for n in names],
    )
    page.section("What the recordings do not tell")
    page.table(("joint", "direction"), [(joint, text) for joint, texts in outcome.blind.items() for text in texts])
    page.section("Predicted and recorded")
    for title, times, curves in _worst(outcome):
        thin = slice(None, None, max(1, len(times) // 1500))
        drawn = [Line(name=name, x=times[thin], y=values[thin]) for name, values in curves.items()]
        page.draw(lines(drawn, x=Axis("time [s]"), y=Axis("position [rad]")), title)
    return page.write(out / "report.html")


def _worst(outcome: Outcome) -> list[tuple[str, Array, Mapping[str, Array]]]:
    """A dozen traces, those farthest off first."""
    off = [float(np.sqrt(np.mean((c[FOUND] - c["recorded"]) ** 2))) for _, _, c in outcome.traces]
    order = sorted(range(len(off)), key=lambda i: -off[i])
    return [outcome.traces[i] for i in order[:12]]


def _pair(told: tuple[float, float] | None) -> str:
    return f"{told[0]:.4g} ± {told[1]:.2g}" if told else ""


def _scored(
    names: Sequence[str], held: Sequence[str], label: str, bench: Bench, ways: Mapping[str, Array], doubt: Array
) -> list[Score]:
    found = {way: errors(bench, values) for way, values in ways.items()}
    return [
        Score(
            recording=name,
            joint=label,
            held=name in held,
            rms_rad={way: float(rms[row]) for way, (rms, _) in found.items()},
            mean_rad={way: float(mean[row]) for way, (_, mean) in found.items()},
            doubt_rad=_size(doubt[row], bench.within[row]),
        )
        for row, name in enumerate(names)
    ]


def _size(values: Array, within: Array) -> float:
    """Root mean square of the values within."""
    return float(np.sqrt((np.where(within, values, 0.0) ** 2).sum() / within.sum()))


def _distinct(recordings: Sequence[Recording]) -> list[str]:
    return [r.name for r in recordings]


def _told(estimate: Estimate) -> dict[str, tuple[float, float]]:
    values: list[float] = estimate.mean.tolist()
    spreads: list[float] = estimate.spread.tolist()
    return {p.name: (v, s) for p, v, s in zip(estimate.params, values, spreads, strict=True)}


def _blind(estimate: Estimate) -> tuple[str, ...]:
    return tuple(f"{words}: {share:.0%} of the earlier spread is left" for share, words in estimate.blind())
