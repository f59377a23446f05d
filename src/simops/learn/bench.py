"""One joint on its load, simulated from commands alone: many recordings and many points side by side.

What positions tell of a joint is everything per inertia, so the joint here has an inertia of one: a stiffness is in
rad/s² per rad, friction in rad/s². Who knows the inertia multiplies. Loads are sines and cosines of sums of angles,
which is what gravity does to joints that turn about parallel axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core import servo
from simops.core.params import Param
from simops.core.signal import Array


@final
@dataclass(frozen=True, kw_only=True)
class Bench:
    """Recordings of one joint, a row each, as long as the longest; beyond its end a row repeats its last instant."""

    time_s: Array
    """(recordings, instants), rising within a recording."""
    command_rad: Array
    position_rad: Array
    within: Array
    """Which instants were recorded."""
    around_rad: Array
    """(recordings, instants, loads): what other joints add to the angle under which each load pulls."""
    speed_rad_s: Array
    """(recordings,) velocity at the first instant."""
    gain: Array
    """(recordings,) what the servo's stiffness was set to, as a share of the usual."""
    powered: Array
    """(recordings, instants), whether the servo was."""

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def loads(self) -> int:
        """How many angles a load depends on."""
        return self.around_rad.shape[2]

    def rows(self, ids: Array | Sequence[int]) -> Bench:
        """Some of the recordings."""
        return Bench(**{name: values[ids] for name, values in vars(self).items()})

    def windows(self, instants: int) -> Bench:
        """The recordings cut into stretches that begin where the joint was; what is shorter stays whole."""
        picked: list[tuple[int, int]] = []
        for row, count in enumerate(self.within.sum(axis=1).tolist()):
            last = max(count - instants, 0)
            starts = [0] if np.ptp(self.command_rad[row, :count]) == 0 else range(0, last + 1, instants)
            picked += [(row, start) for start in starts]
        rows = np.array([row for row, _ in picked])
        at = np.array([start for _, start in picked])[:, None] + np.arange(min(instants, self.time_s.shape[1]))
        at = np.minimum(at, self.time_s.shape[1] - 1)
        tall = rows[:, None]
        ahead = np.minimum(at[:, 0] + 2, self.time_s.shape[1] - 1)
        behind = np.maximum(at[:, 0] - 2, 0)
        gone = np.maximum(self.time_s[rows, ahead] - self.time_s[rows, behind], 1e-6)
        speed = (self.position_rad[rows, ahead] - self.position_rad[rows, behind]) / gone
        return Bench(
            time_s=self.time_s[tall, at],
            command_rad=self.command_rad[tall, at],
            position_rad=self.position_rad[tall, at],
            within=self.within[tall, at],
            around_rad=self.around_rad[tall, at],
            speed_rad_s=np.where(at[:, 0] > 0, speed, self.speed_rad_s[rows]),
            gain=self.gain[rows],
            powered=self.powered[tall, at],
        )


PRIOR: Mapping[str, tuple[float, float, float, float]] = {
    "stiffness": (400.0, 300.0, 20.0, 5000.0),
    "limit": (120.0, 80.0, 5.0, 5000.0),
    "sag": (0.1, 0.3, 0.0, 3.0),
    "emf": (20.0, 20.0, 0.0, 400.0),
    "viscous": (10.0, 15.0, 0.0, 400.0),
    "bias": (0.0, 0.02, -0.2, 0.2),
    "late": (0.015, 0.015, 0.0, 0.1),
    "offset": (0.0, 5.0, -200.0, 200.0),
    "coulomb": (6.0, 6.0, 0.0, 300.0),
    "stribeck": (3.0, 4.0, 0.0, 200.0),
    "stribeck_rad_s": (0.12, 0.1, 0.01, 2.0),
    "stribeck_load": (0.05, 0.05, 0.0, 0.9),
    "drive_load": (0.1, 0.1, 0.0, 0.9),
    "outer_load": (0.1, 0.1, 0.0, 0.9),
    "emf_off": (4.0, 4.0, 0.0, 100.0),
    "coulomb_off": (0.0, 4.0, -40.0, 40.0),
}
"""What to expect of a small geared servo on its load, per inertia: mean, spread, and physical bounds."""
MORE: Mapping[str, tuple[float, float, float, float]] = {
    "ramp": (40.0, 20.0, 1.0, 5000.0),
    "damping": (20.0, 20.0, 0.0, 400.0),
}
"""The same of what only some servos have; looked for where it is said to be known."""
PULL = (0.0, 20.0, -300.0, 300.0)
"""The same of a load's sine and cosine [rad/s²]."""


def params(bench: Bench, known: Mapping[str, tuple[float, float]] | None = None) -> tuple[tuple[Param, ...], Array]:
    """What there is to find about a bench, and how widely to look for it.

    Args:
        bench: Recordings; what only shows while a servo is off is left out where it never was.
        known: Means and spreads of what is known better, by name.
    """
    prior = {k: v for k, v in PRIOR.items() if not (k.endswith("_off") and bool(bench.powered[bench.within].all()))}
    prior |= {k: v for k, v in MORE.items() if k in (known or {})}
    for load in range(bench.loads):
        prior |= {f"sine_{load}": PULL, f"cosine_{load}": PULL}
    found: list[Param] = []
    widths: list[float] = []
    for name, (usual, width, low, high) in prior.items():
        mean, spread = (known or {}).get(name, (usual, width))
        number = servo.NUMBERS.get(name)
        about = number.about if number else f"{name.split('_')[0]} of load {name.split('_')[1]}"
        found.append(Param(name, mean, _unit(name), low, high, about=about))
        widths.append(spread)
    return tuple(found), np.array(widths)


def _unit(name: str) -> str:
    number = servo.NUMBERS.get(name)
    unit = number.unit if number else "N m"
    return unit.replace("N m s/rad", "1/s").replace("N m/rad", "1/s^2").replace("N m", "rad/s^2")


@dataclass(frozen=True)
class _Commands:
    """Commands at fractions of a row, any age ago."""

    rows: Array

    def aged(self, row: int, age: Array) -> Array:
        """(points, recordings) what was commanded `age` rows before `row`."""
        age = np.maximum(age, 0.0)
        whole = age.astype(int)
        share = age - whole
        at = np.maximum(row - whole, 0)
        which: Array = np.arange(len(self.rows))
        return (1.0 - share) * self.rows[which, at] + share * self.rows[which, np.maximum(at - 1, 0)]


def swing(bench: Bench, names: Sequence[str], points: Array, *, substeps: int = 3) -> Array:
    """Positions of the joint from its commands, (points, recordings, instants), from the first instant on.

    Args:
        bench: Recordings; only their first instant, their commands and what is around them are used.
        names: What the columns of `points` are.
        points: Values, a row a point.
        substeps: Physics steps from one instant to the next.
    """
    numbers = {name: points[:, i : i + 1] for i, name in enumerate(names)}
    numbers["stiffness"] = numbers["stiffness"] * bench.gain
    always = bool(bench.powered.all())
    position = np.tile(bench.position_rad[:, 0], (len(points), 1))
    velocity = np.tile(bench.speed_rad_s, (len(points), 1))
    found = np.empty((len(points), *bench.time_s.shape))
    commands = _Commands(bench.command_rad)
    place, rate = _begun(bench, numbers, len(points))
    gaps = np.maximum(np.diff(bench.time_s, axis=1, append=bench.time_s[:, -1:]), 1e-6)
    for row in range(bench.time_s.shape[1]):
        found[:, :, row] = position
        dt_s = gaps[:, row] / substeps
        powered = 1.0 if always else bench.powered[:, row].astype(float)
        for substep in range(substeps):
            target = commands.aged(row, numbers["late"] / gaps[:, row] - substep / substeps) + numbers["bias"]
            load = _pulled(numbers, position, bench.around_rad[:, row])
            if "ramp" in numbers:
                place, rate = servo.ramped(numbers, place, rate, target, dt_s)
                target = place
            drive = servo.driven(numbers, target, position, velocity, rate=rate) * powered
            braking = numbers["viscous"] + numbers["emf"] * powered
            resisting = servo.resistance(numbers, drive - numbers["emf"] * powered * velocity, load, position, velocity)
            if not always:
                braking = braking + numbers["emf_off"] * (1.0 - powered)
                resisting = np.maximum(resisting + numbers["coulomb_off"] * (1.0 - powered), 0.0)
            velocity = servo.slid(velocity, drive + load, resisting, braking=braking, inertia=1.0, dt_s=dt_s)
            position = position + dt_s * velocity
    return found


def _begun(bench: Bench, numbers: Mapping[str, Array], points: int) -> tuple[Array, Array]:
    """Where a servo that follows a ramp has its own target at the first instant, and how fast: as the command moves."""
    still = np.zeros((points, len(bench)))
    if "ramp" not in numbers:
        return still, still
    gone = np.maximum(bench.time_s[:, 1] - bench.time_s[:, 0], 1e-6)
    rate = still + (bench.command_rad[:, 1] - bench.command_rad[:, 0]) / gone
    behind = rate * np.abs(rate) / (2.0 * numbers["ramp"])
    return bench.command_rad[:, 0] - behind + numbers["bias"], rate


def _pulled(numbers: Mapping[str, Array], position: Array, around: Array) -> Array:
    """Torque of the load."""
    pull = numbers["offset"] + np.zeros_like(position)
    for load in range(around.shape[1]):
        angle = position + around[:, load]
        pull = pull + numbers[f"sine_{load}"] * np.sin(angle) + numbers[f"cosine_{load}"] * np.cos(angle)
    return pull
