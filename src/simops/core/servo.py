"""What a geared servo does, as pure functions of arrays, so that what is identified and what is simulated is one.

A servo's numbers go by name (`NUMBERS`) as arrays that broadcast against positions: one a joint, one a copy, or one for
all. A number that is left out does nothing. Torques may as well be torques per inertia, as long as all of them are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from simops.core.errors import SignalError, nearest
from simops.core.signal import Array

Numbers: TypeAlias = Mapping[str, Array]
"""The numbers of a servo by name."""


@final
@dataclass(frozen=True)
class Number:
    """One of the numbers a servo may have."""

    name: str
    unit: str
    about: str
    without: float = 0.0
    """The value at which it does nothing."""
    low: float = 0.0
    high: float = np.inf


NUMBERS: Mapping[str, Number] = {
    number.name: number
    for number in (
        Number("stiffness", "N m/rad", "torque per error of position"),
        Number("damping", "N m s/rad", "torque per velocity, within the law and its limit"),
        Number("limit", "N m", "torque at full duty and standstill", np.inf),
        Number("sag", "", "share of the torque at full duty that the supply gives way by"),
        Number("emf", "N m s/rad", "torque lost per speed while powered, beyond the limit"),
        Number("emf_off", "N m s/rad", "torque lost per speed while not powered"),
        Number("deadband", "rad", "error that the law does not see"),
        Number("bias", "rad", "added to what is commanded", low=-np.inf),
        Number("late", "s", "age of the command when it arrives"),
        Number(
            "ramp", "rad/s^2", "acceleration at which the servo moves its own target to the command", np.inf, low=1e-3
        ),
        Number("offset", "N m", "constant torque", low=-np.inf),
        Number("spring", "N m/rad", "torque per distance from the centre, as cables give", low=-np.inf),
        Number("centre", "rad", "where a spring rests and friction is as it is said", low=-np.inf),
        Number("coulomb", "N m", "dry friction"),
        Number("coulomb_off", "N m", "dry friction, in addition, while not powered", low=-np.inf),
        Number("viscous", "N m s/rad", "friction per speed"),
        Number("stribeck", "N m", "dry friction, in addition, near standstill"),
        Number("stribeck_rad_s", "rad/s", "speed at which that has gone", 0.1, low=1e-4),
        Number("stribeck_load", "", "share of what the gears carry that is added to dry friction near standstill"),
        Number("drive_load", "", "share of the drive's torque that is added to dry friction"),
        Number("outer_load", "", "share of the load's torque that is added to dry friction"),
        Number("uneven", "N m/rad", "dry friction per distance from the centre", low=-np.inf),
    )
}


def checked(numbers: Numbers, where: str) -> Numbers:
    """Give `numbers` back, or raise saying which is none of a servo's or outside its physical bounds."""
    for name, values in numbers.items():
        if name not in NUMBERS:
            raise SignalError(f"a servo has no {name!r}", where=where, attempt=nearest(name, NUMBERS))
        number = NUMBERS[name]
        if not np.all((values >= number.low) & (values <= number.high)):
            raise SignalError(f"{name} is {values}, outside [{number.low}, {number.high}]", where=where)
    return numbers


def of(numbers: Numbers, name: str) -> Array | float:
    """A number, or the value at which it does nothing."""
    return numbers[name] if name in numbers else NUMBERS[name].without


def ramped(numbers: Numbers, place: Array, rate: Array, target: Array, dt_s: Array | float) -> tuple[Array, Array]:
    """Where the servo has its own target a step later, on the way to the one it was given, and how fast that moves.

    It speeds up and slows down by `ramp` and no more, and is no faster than lets it stop where it is to go.
    """
    if "ramp" not in numbers:
        return target, (target - place) / dt_s
    ramp, left = numbers["ramp"], target - place
    fastest = np.sign(left) * ramp * (np.sqrt(dt_s * dt_s + 2.0 * np.abs(left) / ramp) - dt_s)
    rate = rate + np.clip(fastest - rate, -ramp * dt_s, ramp * dt_s)
    return place + dt_s * rate, rate


def driven(numbers: Numbers, target: Array, position: Array, velocity: Array, *, rate: Array | float = 0.0) -> Array:
    """Torque of a powered servo at standstill: what the law asks for, within its limit and what the supply can hold.

    The law damps the velocity, or what it is more than the target's own `rate`.
    """
    error = target - position
    if "deadband" in numbers:
        error = np.sign(error) * np.maximum(np.abs(error) - numbers["deadband"], 0.0)
    asked = of(numbers, "stiffness") * error
    if "damping" in numbers:
        asked = asked - numbers["damping"] * (velocity - rate)
    if "limit" not in numbers:
        return asked
    limit = numbers["limit"]
    torque = np.clip(asked, -limit, limit)
    return torque / (1.0 + numbers["sag"] * (torque / limit) ** 2) if "sag" in numbers else torque


def resistance(numbers: Numbers, drive: Array, load: Array | float, position: Array, velocity: Array) -> Array:
    """Largest torque that dry friction puts against a motion, or against its beginning; never negative."""
    most = of(numbers, "coulomb") + np.zeros_like(position)
    if "uneven" in numbers:
        most = most + numbers["uneven"] * (position - of(numbers, "centre"))
    if "drive_load" in numbers:
        most = most + numbers["drive_load"] * np.abs(drive)
    if "outer_load" in numbers:
        most = most + numbers["outer_load"] * np.abs(load)
    if "stribeck" in numbers or "stribeck_load" in numbers:
        slow = np.exp(-np.minimum((velocity / of(numbers, "stribeck_rad_s")) ** 2, 50.0))
        most = most + slow * (of(numbers, "stribeck") + of(numbers, "stribeck_load") * np.abs(drive - load))
    return np.maximum(most, 0.0)


def slid(
    velocity: Array,
    push: Array,
    resisting: Array,
    *,
    braking: Array | float,
    inertia: Array | float,
    dt_s: Array | float,
) -> Array:
    """Velocity one step later: what pushes, less dry friction, which may stop a motion and never turns it, less brakes.

    At rest it stays at rest while the push is no more than what resists. Stable at any `braking` per speed.
    """
    share = dt_s / inertia
    moved = velocity + share * push
    return np.sign(moved) * np.maximum(np.abs(moved) - share * resisting, 0.0) / (1.0 + share * braking)
