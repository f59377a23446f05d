"""A held robot from one recording of its joints: limb by limb, in the simulator that will train with the numbers.

    found = identify(Path("go2.xml"), recording, gains)
    found.rms(found.predicted_rad, found.held)           # joint by joint, on what was not learned from

What is found goes two ways: armature, damping and dry friction into the scene, everything else into the servo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.params import Param
from simops.core.recording import Recording
from simops.core.signal import Array
from simops.learn.fit import Estimate, Fit, Unknowns, finite, fit
from simops.sim.limb import Drive, Limb, limbs

SHORTEST_S = 2.0
FLOOR = 1e-4
"""Least armature, in units of the joint."""


@final
@dataclass(frozen=True, kw_only=True)
class Gains:
    """The law that the joints were under, one number a joint."""

    stiffness: Array
    damping: Array


@final
@dataclass(frozen=True, kw_only=True)
class How:
    """How to identify."""

    tolerance_rad: float = 0.004
    every: int = 4
    """Of the instants, how many go by between two that are compared."""
    until: float = 1.0
    """Share of the recording that is learned from; the rest is held out."""
    step_s: float | None = None
    fit: Fit = field(default_factory=lambda: Fit(starts=1, iterations=8, huber=5.0))


@final
@dataclass(frozen=True, kw_only=True)
class Found:
    """What was found of one limb."""

    limb: Limb
    names: tuple[str, ...]
    """What the estimate's params are of, one for each joint in turn."""
    estimate: Estimate
    law: Mapping[str, Array]

    def numbers(self, points: Array | None = None) -> dict[str, Array]:
        """Numbers by name, (points, joints); those found when no others are given."""
        return _numbers(self.limb, self.names, self.law, self.estimate.mean[None] if points is None else points)


@final
@dataclass(frozen=True, kw_only=True)
class Identified:
    """What was found of a robot."""

    found: tuple[Found, ...]
    joints: tuple[str, ...]
    period_s: float
    recorded_rad: Array
    """(instants, joints)."""
    command_rad: Array
    predicted_rad: Array
    """From the first instant on, over the whole recording."""
    nominal_rad: Array
    """The same with the scene as it is: its own armature, damping and dry friction."""
    held: slice
    """Instants that were not learned from."""

    def rms(self, what: Array, part: slice | None = None) -> Array:
        """Root mean square error of each joint [rad]."""
        rows = part or slice(None)
        return np.sqrt(np.mean(np.square((what - self.recorded_rad)[rows]), axis=0))


def identify(scene: Path, recording: Recording, gains: Gains, how: How | None = None) -> Identified:
    """Find the numbers of every joint of a held robot from its commands and positions.

    Args:
        scene: Its MJCF file; the joints are those that the recording names, or else all of them in the same order.
        recording: Position commands and positions.
        gains: Stiffness and damping that its servos were set to.
        how: How to identify.
    """
    how = how or How()
    times, command, position, velocity = _columns(recording)
    _alive(recording, command, position)
    found: list[Found] = []
    parts = limbs(scene, recording.position.labels)
    count = sum(len(limb.joints) for limb in parts)
    if command.shape[1] != count or len(gains.stiffness) != count or len(gains.damping) != count:
        raise DataError(
            f"{recording.name} has {command.shape[1]} joints, {len(gains.stiffness)} gains, its scene {count} joints",
            where=recording.name,
            attempt="the scene and the gains of the robot that was recorded, or columns called as its joints",
            fault="LRN-005",
        )
    period_s = float(np.median(np.diff(times)))
    known = round(how.until * len(times))
    predicted, nominal = np.empty_like(position), np.empty_like(position)
    for limb in parts:
        at = list(limb.places)
        drive = Drive(command[:, at], period_s, position[0, at], velocity[at])
        law = {"stiffness": gains.stiffness[at], "damping": gains.damping[at], "limit": limb.limits_nm}
        one = _limb(limb, drive, position[:, at], law, known, how)
        found.append(one)
        predicted[:, at] = limb.simulate(drive, one.numbers(), step_s=how.step_s)[0]
        nominal[:, at] = limb.simulate(drive, {k: v[None] for k, v in _finite(law).items()}, step_s=how.step_s)[0]
    names = {place: name for limb in parts for place, name in zip(limb.places, limb.joints, strict=True)}
    return Identified(
        found=tuple(found),
        joints=tuple(names[i] for i in range(count)),
        period_s=period_s,
        recorded_rad=position,
        command_rad=command,
        predicted_rad=predicted,
        nominal_rad=nominal,
        held=slice(known, None) if known < len(times) else slice(None),
    )


def published(
    scene: Path, recording: Recording, gains: Gains, fit: Mapping[str, Array], *, step_s: float | None = None
) -> Array:
    """Positions as somebody else's numbers have them, in the same physics: (instants, joints).

    Args:
        scene: MJCF file.
        recording: Position commands and positions.
        gains: The law.
        fit: `armature`, `joint_damping`, `frictionloss` and what a servo has, one number a joint or one for all.
        step_s: Physics step, about.
    """
    times, command, position, velocity = _columns(recording)
    found, period_s = np.empty_like(position), float(np.median(np.diff(times)))
    for limb in limbs(scene, recording.position.labels):
        at = list(limb.places)
        drive = Drive(command[:, at], period_s, position[0, at], velocity[at])
        law = {"stiffness": gains.stiffness[at], "damping": gains.damping[at], "limit": limb.limits_nm}
        numbers = {k: v[None] for k, v in _finite(law).items()}
        numbers |= {k: np.broadcast_to(v, (command.shape[1],))[at][None] for k, v in fit.items()}
        found[:, at] = limb.simulate(drive, numbers, step_s=step_s)[0]
    return found


def _finite(law: Mapping[str, Array]) -> dict[str, Array]:
    return {k: v for k, v in law.items() if np.all(np.isfinite(v))}


def _columns(recording: Recording) -> tuple[Array, Array, Array, Array]:
    """Times, commands, positions and the first velocities."""
    position, command = recording.position.ordered(), recording.command.ordered()
    times = position.time_s
    if len(times) < 2 or np.ptp(times) < SHORTEST_S:
        raise DataError(
            f"{float(np.ptp(times)) if len(times) else 0.0:.1f} s were recorded",
            where=recording.name,
            attempt=f"{SHORTEST_S:g} s or more",
            fault="LRN-004",
        )
    asked = command.at(np.clip(times, command.time_s[0], command.time_s[-1]), how="hold")
    finite([("command", asked), ("position", position.values)], recording.name)
    gone = times[1:5] - times[0]
    first: Array = ((position.values[1:5] - position.values[0]) / gone[:, None]).mean(axis=0)
    return times, asked, position.values, first


def _alive(recording: Recording, command: Array, position: Array) -> None:
    """Raise where a joint was commanded and its position never changes."""
    dead = (np.ptp(position, axis=0) == 0) & (np.ptp(command, axis=0) > 0)
    if dead.any():
        names = ", ".join(recording.position.labels[i] for i in np.flatnonzero(dead))
        raise DataError(
            f"the position of {names} is constant while its command moves",
            where=recording.name,
            attempt="looking whether its encoder was read",
            fault="LRN-002",
        )


def _limb(limb: Limb, drive: Drive, recorded: Array, law: Mapping[str, Array], known: int, how: How) -> Found:
    """Find the numbers of one limb: without ends of a joint's way, and with them where it seems to have met one."""
    asked = replace(drive, command_rad=drive.command_rad[:known])
    compared: Array = np.arange(0, known, how.every)
    centre = (recorded.max(axis=0) + recorded.min(axis=0)) / 2
    law = {**law, "centre": centre}
    effort = law["stiffness"] * np.sqrt(np.mean(np.square(drive.command_rad - recorded), axis=0))
    prior = _prior(limb, law, effort, drive.period_s)

    def fitted(prior: Mapping[str, tuple[Array, Array, Array, Array]]) -> Found:
        names = tuple(prior)

        def residuals(points: Array) -> Array:
            found = limb.simulate(asked, _numbers(limb, names, law, points), step_s=how.step_s)
            return ((found - recorded[:known])[:, compared] / how.tolerance_rad).reshape(len(points), -1)

        seconds = np.repeat(compared * drive.period_s // 1.0, len(limb.joints))
        estimate = fit(residuals, _unknowns(limb, prior), groups=seconds, how=how.fit)
        return Found(limb=limb, names=names, estimate=estimate, law=law)

    first = fitted(prior)
    stops = _stops(limb, asked.command_rad, recorded[:known])
    if not stops:
        return first
    begin = dict(zip(first.names, first.estimate.mean.reshape(len(first.names), -1), strict=True))
    again = fitted({**{k: (np.clip(begin[k], *v[2:]), *v[1:]) for k, v in prior.items()}, **stops})
    return again if again.estimate.cost < 0.95 * first.estimate.cost else first


def _prior(
    limb: Limb, law: Mapping[str, Array], effort: Array, period_s: float
) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Mean, spread and bounds of every number of each joint, sized by the gains and by what the joints had to do."""
    none, many = np.zeros(len(limb.joints)), np.full(len(limb.joints), np.inf)
    critical = law["damping"] ** 2 / (4 * np.maximum(law["stiffness"], 1e-9))
    armature, damping, dry = (limb.nominal(name) for name in ("armature", "joint_damping", "frictionloss"))
    one = none + 1.0
    return {
        "armature": (np.maximum(armature, critical), np.maximum(armature, critical), none + FLOOR, many),
        "joint_damping": (damping, np.maximum(damping, 0.3 * law["damping"]), none, many),
        "frictionloss": (np.maximum(dry, 0.1 * effort), np.maximum(dry, 0.2 * effort), none, many),
        "bias": (none, 0.03 * one, -0.3 * one, 0.3 * one),
        "gain": (one, 0.1 * one, 0.5 * one, 1.5 * one),
        "brake": (one, 0.15 * one, 0.3 * one, 2.0 * one),
        "late": (0.5 * period_s * one, 0.6 * period_s * one, none, 6 * period_s * one),
        "drive_load": (0.03 * one, 0.05 * one, none, 0.6 * one),
        "stribeck": (0.05 * effort, 0.1 * effort, none, many),
        "offset": (none, 0.1 * effort, -many, many),
        "spring": (none, 0.15 * effort, -many, many),
        "uneven": (none, 0.15 * effort, -many, many),
    }


def _stops(limb: Limb, command: Array, recorded: Array) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Ends of a way that a joint seems to have met: where it stays further behind on one side than on the other."""
    wide = np.maximum(np.ptp(recorded, axis=0), 1e-6)
    top, bottom = recorded.max(axis=0), recorded.min(axis=0)
    behind = [
        np.array([np.median((command - recorded)[near, j]) if near.any() else 0.0 for j, near in enumerate(side.T)])
        for side in (recorded > top - 0.03 * wide, recorded < bottom + 0.03 * wide)
    ]
    found: dict[str, tuple[Array, Array, Array, Array]] = {}
    for name, mine, other, extreme in (
        ("stop_high", behind[0], -behind[1], top),
        ("stop_low", -behind[1], behind[0], bottom),
    ):
        meets = (mine > 1.7 * np.maximum(other, 0.0)) & (mine - other > 0.03 * wide)
        if meets.any():
            free = limb.nominal(name)
            mean = np.where(meets, extreme, free)
            spread = np.where(meets, 0.03 * wide, 1e-6)
            reach = np.where(meets, 0.5 * wide, 0.0)
            found[name] = (mean, spread, mean - reach, mean + reach)
    return found


def _unknowns(limb: Limb, prior: Mapping[str, tuple[Array, Array, Array, Array]]) -> Unknowns:
    params: list[Param] = []
    for name, (mean, _, low, high) in prior.items():
        for joint, *row in zip(limb.joints, mean, low, high, strict=True):
            nominal, least, most = (float(v) for v in row)
            params.append(Param(f"{name}_{joint}", nominal, low=least, high=most))
    mean = np.concatenate([each[0] for each in prior.values()])
    spread = np.concatenate([each[1] for each in prior.values()])
    return Unknowns(params=tuple(params), mean=mean, spread=spread)


def _numbers(limb: Limb, names: Sequence[str], law: Mapping[str, Array], points: Array) -> dict[str, Array]:
    """Numbers by name, (points, joints): what was found times what the law was set to."""
    width = len(limb.joints)
    found = {name: points[:, i * width : (i + 1) * width] for i, name in enumerate(names)}
    fixed = {k: np.tile(v, (len(points), 1)) for k, v in _finite(law).items()}
    numbers = fixed | {k: v for k, v in found.items() if k not in ("gain", "brake")}
    numbers["stiffness"] = fixed["stiffness"] * found["gain"]
    numbers["damping"] = fixed["damping"] * found["brake"]
    numbers["stribeck_rad_s"] = np.full((len(points), width), 0.05)
    return numbers
