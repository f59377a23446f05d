"""An audit of motors: with its command held, no way there and back may give a joint energy that it did not have.

    found = audit(motor, 12, reach_rad=0.4, fastest_hz=3.0)
    found.passed, found.words

Joints are led through closed ways about where the command is, small and wide, slow and fast. A spring gives back what
it took, friction keeps some, a motor that gives more than it took would drive a robot by itself. Networks are not
passive by nature, so those that fail are not shipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.protocols import Motor
from simops.core.signal import Array

SETTLING, COUNTED = 2, 1
"""Rounds that only fill a memory, and those whose work is counted."""
SHARES = (0.1, 0.3, 1.0)
"""Of the widest way and of the fastest round."""
SIDES = (-0.5, 0.0, 0.5)
"""Where the middle of a way lies beside the command, in its own half width."""
BROKEN_NM = 1e9
"""What a torque that is no number counts as, along the way."""
BELOW = 0.02
"""Share of the energy that went to and fro that may be made up by steps of time."""


@final
@dataclass(frozen=True, kw_only=True)
class Round:
    """One closed way of one joint."""

    joint: int
    half_rad: float
    """Half of its width."""
    rate_hz: float
    made: float
    """Work of the motor on the joint, all the way round [J]; negative where it takes energy."""
    moved: float
    """Size of all work on the way [J]."""

    @property
    def share(self) -> float:
        """Of the energy moved, how much came from nowhere."""
        return self.made / self.moved if self.moved > 0 else 0.0


@final
@dataclass(frozen=True, kw_only=True)
class Audit:
    """What came of it."""

    rounds: tuple[Round, ...]
    """The worst first."""

    @property
    def passed(self) -> bool:
        """Whether no way gives energy."""
        return self.rounds[0].share <= BELOW

    @property
    def words(self) -> str:
        """The worst round, as a sentence."""
        worst = self.rounds[0]
        where = f"joint {worst.joint}, {worst.half_rad:.3g} rad either way at {worst.rate_hz:.3g} Hz"
        if self.passed:
            return f"no round of {len(self.rounds)} gives energy; the nearest to it: {where}, {worst.share:+.1%}"
        bad = sum(one.share > BELOW for one in self.rounds)
        return (
            f"{bad} of {len(self.rounds)} rounds give energy; the worst: {where}, {worst.share:+.1%} of what it moves"
        )


def audit(motor: Motor, joints: int, *, reach_rad: float, fastest_hz: float, dt_s: float = 0.002) -> Audit:
    """Lead `joints` joints of a motor through closed ways, its command held at 0.

    Args:
        motor: What is audited.
        joints: How many it drives.
        reach_rad: How far position and command were apart in what it learned from.
        fastest_hz: How often a second that way was gone there and back.
        dt_s: Physics step.
    """
    if not (0 < reach_rad < np.inf and 0 < fastest_hz < np.inf):
        raise DataError(f"no way of {reach_rad:g} rad at {fastest_hz:g} Hz", attempt="both above 0", fault="LRN-004")
    grid = np.array(list(product(SHARES, SHARES, SIDES)))
    half, middle = reach_rad * grid[:, 0] / 1.5, reach_rad * grid[:, 0] / 1.5 * grid[:, 2]
    steps = np.maximum(np.rint(1.0 / (fastest_hz * grid[:, 1] * dt_s)), 16).astype(int)
    turn = 2 * np.pi / steps
    made, moved = np.zeros((len(grid), joints)), np.zeros((len(grid), joints))
    memory = motor.start(len(grid), joints)
    for step in range(int(steps.max()) * (SETTLING + COUNTED)):
        position = _tall(middle + half * np.sin(turn * step), joints)
        velocity = _tall(half * turn / dt_s * np.cos(turn * step), joints)
        torque, memory = motor.torque(np.zeros_like(position), position, velocity, memory, dt_s=dt_s)
        counted = (step // steps >= SETTLING) & (step // steps < SETTLING + COUNTED)
        torque = np.where(np.isfinite(torque), torque, BROKEN_NM * np.sign(velocity))
        work = np.where(counted[:, None], torque * velocity * dt_s, 0.0)
        made, moved = made + work, moved + np.abs(work)
    rounds = [
        Round(
            joint=j, half_rad=float(half[i]), rate_hz=float(1.0 / (steps[i] * dt_s)), made=made[i, j], moved=moved[i, j]
        )
        for i, j in product(range(len(grid)), range(joints))
    ]
    return Audit(rounds=tuple(sorted(rounds, key=lambda one: -one.share)))


def _tall(values: Array, joints: int) -> Array:
    return np.repeat(values[:, None], joints, axis=1)
