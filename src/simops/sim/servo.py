"""A servo as measurements find it: every family of friction, play, delay and limits, each a number that can be learned.

Its settings live in its memory, one a copy and joint, so a belief may hold any of them: a param called `motor_viscous`
is the setting of every joint, `motor_viscous_elbow` that of one. What the belief says takes the place of the recipe's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias, final

import numpy as np

from simops.core import servo
from simops.core.params import Param, Params
from simops.core.protocols import Memory, Torque
from simops.core.signal import Array

Setting: TypeAlias = float | tuple[float, ...]
"""One number for every joint, or one a joint."""
PREFIX = "motor_"
SIGNED = frozenset({"offset", "viscous_skew", "position_offset", "kp_velocity", "spring", "uneven"})
"""Settings that may be negative."""
DEEPEST = 64
"""Physics steps that a command may be under way."""
_NUMBERS_OF = "setting/"


@final
@dataclass(frozen=True, kw_only=True)
class Servo:
    """Gains, limits, friction and play of a motor with its gear; a torque source where `kp` and `kd` are left out.

    N, m and s stand for N m, rad and s where a joint turns.
    """

    joints: tuple[str, ...] = ()
    """Names for the settings of single joints, in the order of the action; needed only where a belief holds such."""
    kp: Setting = 0.0
    """Stiffness towards the command [N/m]."""
    kd: Setting = 0.0
    """Damping of the velocity by the controller [N s/m]."""
    kff: Setting = 0.0
    """Share of the command's own rate that the damping does not act against: 1 damps the error of the velocity."""
    stall: Setting = float("inf")
    """Effort at standstill [N]."""
    no_load: Setting = float("inf")
    """Speed at which no effort is left [m/s]."""
    gain: Setting = 1.0
    """What arrives of the effort asked for."""
    coulomb: Setting = 0.0
    """Friction of any speed [N]."""
    viscous: Setting = 0.0
    """Friction by speed [N s/m]."""
    viscous_skew: Setting = 0.0
    """More of it forwards and less backwards [N s/m]."""
    quadratic: Setting = 0.0
    """Friction by the square of the speed [N s²/m²]."""
    stribeck: Setting = 0.0
    """Extra friction at rest, that fades with speed [N]."""
    stribeck_speed: Setting = 0.05
    """Speed at which a third of it is left [m/s]."""
    load: Setting = 0.0
    """Friction as a share of the effort that the gear carries."""
    uneven: Setting = 0.0
    """Dry friction per distance from where the joint reads zero, as a rail or a gear that is not the same everywhere
    has [N/m]."""
    spring: Setting = 0.0
    """Effort towards zero per distance from there, as cables give [N/m]."""
    slip_speed: Setting = 1e-3
    """Width of the step from one sign of dry friction to the other [m/s]."""
    offset: Setting = 0.0
    """Effort that opposes the drive always [N]: half of what dry friction takes more forwards than backwards."""
    delay_s: Setting = 0.0
    """Between a command and its effect."""
    ramp: Setting = float("inf")
    """Acceleration at which it moves its own target to the command, as small smart servos do [m/s²]; at once when
    infinite."""
    backlash: Setting = 0.0
    """Play between the command and what it moves, in the command's unit."""
    period_s: float = 0.0
    """How often the controller looks; it holds its effort meanwhile. At every physics step when 0."""
    position_offset: Setting = 0.0
    """What the controller's encoder reads too much [m]."""

    @property
    def params(self) -> tuple[Param, ...]:
        """Every setting as a param, nominal as it is set; one a joint where joints are named."""
        found: list[Param] = []
        for name in _SETTINGS:
            value: Setting = getattr(self, name)
            low = -np.inf if name in SIGNED else 0.0
            values = value if isinstance(value, tuple) else (value,) * len(self.joints)
            if not isinstance(value, tuple):
                found.append(Param(f"{PREFIX}{name}", float(value), low=low))
            found += [
                Param(f"{PREFIX}{name}_{j}", float(v), low=low) for j, v in zip(self.joints, values, strict=False)
            ]
        return tuple(found)

    def start(self, n: int, joints: int) -> Memory:
        """Settings as the recipe has them, and nothing commanded yet."""
        memory: dict[str, Array] = {
            _NUMBERS_OF + name: np.broadcast_to(np.asarray(getattr(self, name), float), (n, joints)).copy()
            for name in _SETTINGS
        }
        memory["pending"] = np.full((n, DEEPEST, joints), np.nan)
        memory["moved"] = np.full((n, joints), np.nan)
        memory["place"], memory["pace"] = np.full((n, joints), np.nan), np.zeros((n, joints))
        memory["wait_s"] = np.zeros(n)
        memory["drive"] = np.zeros((n, joints))
        memory["before"] = np.full((n, joints), np.nan)
        return memory

    def tune(self, memory: Memory, params: Params) -> Memory:
        """Settings as the belief has them, where it says anything of them."""
        tuned = dict(memory)
        for name in _SETTINGS:
            key = _NUMBERS_OF + name
            if PREFIX + name in params:
                tuned[key] = np.repeat(params[PREFIX + name][:, None], tuned[key].shape[1], axis=1)
            for i, joint in enumerate(self.joints):
                if f"{PREFIX}{name}_{joint}" in params:
                    tuned[key] = tuned[key].copy()
                    tuned[key][:, i] = params[f"{PREFIX}{name}_{joint}"]
        return tuned

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """The drive within its limits, less friction."""
        of = _of(memory)
        kept = dict(memory)
        wanted = command
        if np.any(of["delay_s"] > 0):
            wanted, kept["pending"] = _late(command, memory["pending"], of["delay_s"] / dt_s)
        if np.any(np.isfinite(of["ramp"])):
            place = np.where(np.isnan(memory["place"]), position, memory["place"])
            kept["place"], kept["pace"] = _on_its_way(of["ramp"], place, memory["pace"], wanted, dt_s)
            wanted = kept["place"]
        if np.any(of["backlash"] > 0):
            before = np.where(np.isnan(memory["moved"]), wanted, memory["moved"])
            wanted = np.clip(before, wanted - of["backlash"] / 2, wanted + of["backlash"] / 2)
            kept["moved"] = wanted
        if np.any(of["kp"] > 0) or np.any(of["kd"] > 0):
            rate = 0.0
            if np.any(of["kff"] > 0):
                before = memory["before"]
                rate = of["kff"] * np.where(np.isnan(before), 0.0, wanted - before) / dt_s
                kept["before"] = wanted
            wanted = of["kp"] * (wanted - position - of["position_offset"]) - of["kd"] * (velocity - rate)
        drive = self._limited(of, of["gain"] * wanted, velocity)
        if self.period_s > 0:
            due = memory["wait_s"] < 1e-9
            drive = np.where(due[:, None], drive, memory["drive"])
            kept["wait_s"] = np.where(due, self.period_s, memory["wait_s"]) - dt_s
        kept["drive"] = drive
        return Torque(drive - self._lost(of, drive, position, velocity), kept)

    def _limited(self, of: dict[str, Array], drive: Array, velocity: Array) -> Array:
        """What the motor puts out of an effort asked for."""
        stall = of["stall"]
        if np.any(np.isfinite(stall)):
            share = velocity / of["no_load"]
            drive = np.clip(drive, -stall * np.clip(1 + share, 0, 1), stall * np.clip(1 - share, 0, 1))
        return drive

    def _lost(self, of: dict[str, Array], drive: Array, position: Array, velocity: Array) -> Array:
        """What friction takes of it."""
        sign = np.tanh(velocity / of["slip_speed"])
        dry = of["coulomb"]
        if np.any(of["stribeck"] > 0):
            dry = dry + of["stribeck"] * np.exp(-((velocity / of["stribeck_speed"]) ** 2))
        if np.any(of["load"] > 0):
            dry = dry + of["load"] * np.abs(drive)
        if np.any(of["uneven"] != 0):
            dry = np.maximum(dry + of["uneven"] * position, 0.0)
        wet = of["viscous"] + of["viscous_skew"] * sign + of["quadratic"] * np.abs(velocity)
        return dry * sign + wet * velocity + of["spring"] * position + of["offset"]


_SETTINGS = tuple(field.name for field in fields(Servo) if field.name not in {"joints", "period_s"})


def _of(memory: Memory) -> dict[str, Array]:
    return {name: memory[_NUMBERS_OF + name] for name in _SETTINGS}


def _on_its_way(ramp: Array, place: Array, pace: Array, wanted: Array, dt_s: float) -> tuple[Array, Array]:
    """Where the servo's own target is a step later, and how fast it moves."""
    limited = np.isfinite(ramp)
    place, pace = servo.ramped({"ramp": np.where(limited, ramp, 1.0)}, place, pace, wanted, dt_s)
    return np.where(limited, place, wanted), np.where(limited, pace, 0.0)


def _late(command: Array, pending: Array, steps: Array) -> tuple[Array, Array]:
    """The command of so many steps ago, between two of them where that is no whole number, and what is under way."""
    fresh = np.isnan(pending[:, -1:])
    queue = np.concatenate([np.where(fresh, command[:, None], pending[:, 1:]), command[:, None]], axis=1)
    back = np.clip(steps, 0.0, queue.shape[1] - 1.0)
    near = np.floor(back).astype(int)
    far = np.minimum(near + 1, queue.shape[1] - 1)
    rows, columns = np.ogrid[: command.shape[0], : command.shape[1]]
    share = back - near
    last = queue.shape[1] - 1
    late = (1 - share) * queue[rows, last - near, columns] + share * queue[rows, last - far, columns]
    return late, queue
