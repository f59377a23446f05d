"""Joints from their commands alone: recordings become benches, are identified, and predict what they have not seen.

No scene is asked for. What commands and positions cannot tell, the inertia, is not claimed: numbers are per inertia.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from simops.core.errors import DataError, nearest
from simops.core.recording import Recording
from simops.core.signal import Array
from simops.learn.bench import Bench
from simops.learn.joint import Asked, Joint, identify

DAMPED = (20.0, 20.0)
"""Mean and spread of the damping of a law that follows a ramp [1/s]."""
REST_S = 0.03
"""Stretch at the beginning from which the first velocity is taken."""


@final
@dataclass(frozen=True, kw_only=True)
class Rig:
    """How the joints of a recording hang together."""

    chains: tuple[tuple[str, ...], ...] = ()
    """Joints about parallel axes that are not upright, root first: gravity pulls by the sums of their angles. A minus
    before a name says that it turns the other way."""
    gain: str = ""
    """A fact of each recording that the servo's stiffness is proportional to."""
    usual: float = 1.0
    """Value of that fact at which the stiffness is as it is found."""
    powered: str = ""
    """A signal that tells whether the servo is on."""
    ramp_counts_s2: float = 0.0
    """Acceleration at which the servo moves its own target to what it is told, in counts of its encoder, as its
    register says; a count is the step in which positions were recorded. 0 where it goes there at once."""
    asked: Asked = field(default_factory=Asked)


def benches(recordings: Sequence[Recording], rig: Rig) -> dict[str, Bench]:
    """A bench for each joint, its rows as the recordings are ordered; loads are where joints were measured."""
    if not recordings:
        raise DataError("there is no recording", attempt="one of a motion at least", fault="LRN-004")
    labels = recordings[0].position.labels
    for recording in recordings:
        if recording.position.labels != labels or recording.command.labels != labels:
            raise DataError(
                f"{recording.name} is of other joints: {', '.join(recording.position.labels)}",
                where=recording.name,
                attempt=f"recordings of {', '.join(labels)}",
                fault="LRN-005",
            )
    for label in (one.lstrip("-") for chain in rig.chains for one in chain):
        if label not in labels:
            raise DataError(f"no joint is called {label!r}", attempt=nearest(label, labels), fault="LRN-005")
    rows = [_Rows.of(recording, rig) for recording in recordings]
    longest = max(len(row.time_s) for row in rows)
    return {label: _bench(rows, rig, labels, i, longest) for i, label in enumerate(labels)}


@dataclass(frozen=True)
class _Rows:
    """One recording at the instants at which positions were measured."""

    time_s: Array
    command: Array
    position: Array
    powered: Array
    gain: float

    @classmethod
    def of(cls, recording: Recording, rig: Rig) -> _Rows:
        position, command = recording.position.ordered(), recording.command.ordered()
        times = position.time_s
        asked = command.at(np.clip(times, command.time_s[0], command.time_s[-1]), how="hold")
        powered = np.ones(len(times), bool)
        if rig.powered:
            told = recording.named(rig.powered).ordered()
            powered = told.at(np.clip(times, told.time_s[0], told.time_s[-1]), how="hold")[:, 0] > 0.5
        gain = 1.0
        if rig.gain:
            if not isinstance(recording.facts.get(rig.gain), float):
                known = ", ".join(recording.facts) or "none"
                raise DataError(f"{recording.name} has no fact {rig.gain!r}", attempt=f"one of its facts: {known}")
            gain = float(recording.facts[rig.gain])
        return cls(times, asked, position.values, powered, gain)

    def speed(self, joint: int) -> float:
        few = max(2, int(np.count_nonzero(self.time_s <= self.time_s[0] + REST_S)))
        gone = self.time_s[:few] - self.time_s[:few].mean()
        return float(gone @ self.position[:few, joint] / max(float(gone @ gone), 1e-12))


def _bench(rows: Sequence[_Rows], rig: Rig, labels: Sequence[str], joint: int, longest: int) -> Bench:
    def tall(parts: Sequence[Array]) -> Array:
        return np.stack([np.concatenate([p, np.repeat(p[-1:], longest - len(p), axis=0)]) for p in parts])

    around = [_around(row.position, rig, labels, joint) for row in rows]
    return Bench(
        time_s=tall([row.time_s for row in rows]),
        command_rad=tall([row.command[:, joint] for row in rows]),
        position_rad=tall([row.position[:, joint] for row in rows]),
        within=np.stack([np.arange(longest) < len(row.time_s) for row in rows]),
        around_rad=tall(around),
        speed_rad_s=np.array([row.speed(joint) for row in rows]),
        gain=np.array([row.gain / rig.usual for row in rows]),
        powered=tall([row.powered for row in rows]),
    )


def _around(positions: Array, rig: Rig, labels: Sequence[str], joint: int) -> Array:
    """(instants, loads) what the other joints of its chain add to each angle that pulls at a joint.

    Angles are counted the way the joint itself turns.
    """
    for chain in rig.chains:
        names = [name.lstrip("-") for name in chain]
        if labels[joint] not in names:
            continue
        signs = np.array([-1.0 if name.startswith("-") else 1.0 for name in chain])
        turned = positions[:, [labels.index(name) for name in names]] * signs
        own = names.index(labels[joint])
        total = np.cumsum(turned, axis=1)
        return (total[:, own:] - turned[:, own : own + 1]) * signs[own]
    return np.zeros((len(positions), 1))


def identified(benches: Mapping[str, Bench], rig: Rig) -> dict[str, Joint]:
    """The numbers of every joint that moves; a joint that never does is left out."""
    found: dict[str, Joint] = {}
    for label, bench in benches.items():
        if np.ptp(bench.position_rad[bench.within]) > 5 * rig.asked.tolerance_rad:
            found[label] = identify(bench, _asked(bench, rig, label), where=label)
    if not found:
        raise DataError("no joint moves", attempt="a recording of motion", fault="LRN-002")
    return found


def _asked(bench: Bench, rig: Rig, label: str) -> Asked:
    """How a joint is identified: a ramp that its register tells is known to a hundredth."""
    if not rig.ramp_counts_s2:
        return rig.asked
    ramp = rig.ramp_counts_s2 * count_rad(bench, label)
    return replace(rig.asked, known={"ramp": (ramp, 0.01 * ramp), "damping": DAMPED, **(rig.asked.known or {})})


def count_rad(bench: Bench, where: str) -> float:
    """The step in which positions were recorded; raises where they come in none."""
    values: Array = np.unique(np.round(bench.position_rad[bench.within], 9))
    if len(values) < 3 or len(values) > 0.5 * bench.within.sum():
        raise DataError(
            f"the positions of {where} come in no steps, so a ramp in counts has no size",
            where=where,
            attempt="known: {ramp: [VALUE, SPREAD]} in rad/s^2, under asked",
        )
    return float(np.quantile(np.diff(values), 0.25))  # where few places were met, most steps are several counts


@final
@dataclass(frozen=True)
class Predicted:
    """Positions of one joint over whole recordings."""

    mean_rad: Array
    """(recordings, instants), of all members."""
    doubt_rad: Array
    """Standard deviation of the members: how far they disagree."""


def predicted(joints: Mapping[str, Joint], benches: Mapping[str, Bench], rig: Rig) -> dict[str, Predicted]:
    """Positions of every joint over whole recordings from first instants and commands alone.

    What pulls at a joint depends on where the others are: they are predicted first as if they were where they are
    asked to be, then once more with what came out.
    """
    labels = tuple(benches)
    places = {label: bench.command_rad for label, bench in benches.items()}
    found: dict[str, Predicted] = {}
    for _ in range(2 if rig.chains else 1):
        stacked = np.stack([places[label] for label in labels], axis=2)
        for i, (label, bench) in enumerate(benches.items()):
            seen = replace(bench, around_rad=np.stack([_around(p, rig, labels, i) for p in stacked]))
            found[label] = _predicted(joints.get(label), seen, rig)
        places = {label: found[label].mean_rad for label in labels}
    return found


def _predicted(joint: Joint | None, bench: Bench, rig: Rig) -> Predicted:
    if joint is None:  # it never moved
        still = np.repeat(bench.position_rad[:, :1], bench.time_s.shape[1], axis=1)
        return Predicted(still, np.zeros_like(still))
    every = joint.predicted(bench, substeps=rig.asked.substeps)
    spread = every.std(axis=0, ddof=1) if len(every) > 1 else np.zeros(every.shape[1:])
    return Predicted(every.mean(axis=0), spread)
