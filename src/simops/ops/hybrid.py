"""A bounded network on top of what was identified of a held robot, kept only where it predicts better what is held out.

The networks learn the torque that the recorded motion had and the numbers do not give. Several are taught on different
stretches; where they disagree their correction is cut. What was learned from is split in stretches, and what decides is
the end of it, which neither the networks nor the judgement after them has seen. What gives a joint energy when it is
led there and back is not kept, however well it predicts.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.protocols import Memory, Motor, Torque
from simops.core.signal import Array
from simops.learn.motor import Driven, Teach, fit_network
from simops.learn.passive import Audit, audit
from simops.ops.chirp import Found, Identified
from simops.sim.limb import Drive, Motion, torque
from simops.sim.network import Network

STRETCH = 200
"""Instants of a stretch that a member learns from as a whole, or not at all."""


@final
@dataclass(frozen=True, kw_only=True)
class Hybrid:
    """How to teach a correction."""

    bound: float = 0.15
    """Largest correction, as a share of the torque that the servo's law asked for, root mean square."""
    wary: float = 1.0
    chosen: float = 0.2
    """Share at the end of what may be learned from that is kept to decide whether to keep the networks."""
    teach: Teach = field(
        default_factory=lambda: Teach(hidden=(16, 16), history=3, shared=False, steps=400, batch=512, members=3)
    )


@final
@dataclass(frozen=True, kw_only=True)
class Corrected:
    """What came of one limb."""

    joints: tuple[str, ...]
    weights: bytes
    """A safetensors file for `Network`."""
    bound_nm: float
    physical_rad: float
    """Error on what decided, of the numbers alone."""
    hybrid_rad: float
    predicted_rad: Array
    """(instants, joints) over the whole recording, with the networks."""
    energy: Audit
    """Whether the numbers and the networks together give energy."""

    @property
    def better(self) -> bool:
        """Whether the networks are to be kept."""
        return self.energy.passed and self.hybrid_rad < 0.98 * self.physical_rad


@final
@dataclass(frozen=True)
class Whole:
    """What acts on the joints of a limb beside gravity and inertia, as one motor: its law, its friction and networks.

    Positions and commands are from the middle of the recorded ways.
    """

    found: Found
    residual: Motor | None = None

    def start(self, n: int, joints: int) -> Memory:
        """What the networks remember."""
        return self.residual.start(n, joints) if self.residual else {}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """The torque of all of them."""
        numbers = self.found.numbers()
        middle = numbers["centre"]
        acts = torque(numbers, command + middle, position + middle, velocity)
        acts = acts - numbers["joint_damping"] * velocity - numbers["frictionloss"] * np.tanh(velocity / 0.02)
        if self.residual is None:
            return Torque(acts, memory)
        more = self.residual.torque(command, position, velocity, memory, dt_s=dt_s)
        return Torque(acts + more.torque_nm, more.memory)


def corrected(identified: Identified, how: Hybrid | None = None) -> tuple[Corrected, ...]:
    """Teach a correction for every limb of a robot, on what it was identified from."""
    how = how or Hybrid()
    known = identified.held.start or len(identified.recorded_rad)
    taught = round((1.0 - how.chosen) * known)
    if taught < 2 * STRETCH:
        what = f"{taught} instants are too few to teach a network"
        raise DataError(what, attempt=f"{2 * STRETCH} or more", fault="LRN-004")
    return tuple(_corrected(identified, one, how, taught, known) for one in identified.found)


def _corrected(identified: Identified, found: Found, how: Hybrid, taught: int, known: int) -> Corrected:
    at = list(found.limb.places)
    recorded, command = identified.recorded_rad[:, at], identified.command_rad[:, at]
    period_s, numbers = identified.period_s, found.numbers()
    motion = Motion.of(recorded, period_s)
    drive = Drive(command, period_s, recorded[0], motion.velocity_rad_s[0])
    missing = found.limb.missing(drive, numbers, motion)
    late = numbers["late"] / period_s
    target = np.stack([drive.aged(row, late)[0] for row in range(len(command))]) + numbers["bias"]
    bound = how.bound * float(np.sqrt(np.mean((numbers["stiffness"] * (target - recorded)) ** 2)))
    episodes = [
        Driven(
            error_rad=(target - recorded)[begin : begin + STRETCH],
            velocity_rad_s=motion.velocity_rad_s[begin : begin + STRETCH],
            torque_nm=np.clip(missing[begin : begin + STRETCH], -bound, bound),
        )
        for begin in range(0, taught - STRETCH + 1, STRETCH)
    ]
    weights = fit_network(episodes, replace(how.teach, period_s=period_s))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "motor.safetensors"
        file.write_bytes(weights)
        network = Network(weights=file, bound_nm=bound, wary=how.wary)
        predicted = found.limb.simulate(drive, numbers, residual=network)[0]
        energy = audited(Whole(found, network), target - recorded, motion, period_s)
    deciding = slice(taught, known)
    plain = identified.predicted_rad[:, at]
    return Corrected(
        joints=found.limb.joints,
        weights=weights,
        bound_nm=bound,
        physical_rad=_rms(plain[deciding] - recorded[deciding]),
        hybrid_rad=_rms(predicted[deciding] - recorded[deciding]),
        predicted_rad=predicted,
        energy=energy,
    )


def audited(motor: Motor, error: Array, motion: Motion, period_s: float) -> Audit:
    """Audit a motor as far from its command and as fast as was recorded."""
    reach = float(np.abs(error).max())
    fastest_hz = float(np.abs(motion.velocity_rad_s).max()) / (2 * np.pi * reach / 1.5)
    return audit(motor, error.shape[1], reach_rad=reach, fastest_hz=fastest_hz, dt_s=period_s)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
