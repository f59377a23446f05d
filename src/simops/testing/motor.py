"""Conformance kit for motors: rows stand alone, nothing is kept, and torque pulls towards the command."""

from __future__ import annotations

import numpy as np

from simops.core import chance
from simops.core.protocols import Memory, Motor
from simops.core.signal import Array
from simops.testing.law import BATCHES, copied, require, rows_of, same, same_columns

JOINTS, STEPS, DT_S = 3, 12, 0.002
TOWARDS_STEPS = 200
"""Physics steps within which a motor must answer a command."""


def check_motor(motor: Motor) -> None:
    """Raise AssertionError where `motor` breaks a promise."""
    n = max(BATCHES)
    inputs = [_inputs(n, step) for step in range(STEPS)]
    whole = _driven(motor, motor.start(n, JOINTS), inputs)
    _nothing_is_kept(motor, inputs, whole)
    _rows_stand_alone(motor, inputs, whole)
    _rows_can_be_dropped(motor, inputs, whole)
    _pulls_towards_the_command(motor)


def _inputs(n: int, step: int) -> tuple[Array, Array, Array]:
    """Command, position and velocity of `n` rows."""
    seeds = chance.seeds(2, np.arange(n), realm="kit")
    names = ("command", "position", "velocity")
    command, position, velocity = (chance.normal(seeds, f"kit/{name}", (JOINTS,), step=step) for name in names)
    return command, position, 5.0 * velocity


def _driven(motor: Motor, memory: Memory, inputs: list[tuple[Array, Array, Array]]) -> list[Array]:
    """Torque at every step."""
    found: list[Array] = []
    for command, position, velocity in inputs:
        n = len(command)
        names = set(memory)
        given = [command.copy(), position.copy(), velocity.copy()]
        remembered = copied(memory)
        torque, after = motor.torque(command, position, velocity, memory, dt_s=DT_S)
        require(torque.shape == (n, JOINTS), f"torque has shape {torque.shape}, want {(n, JOINTS)}")
        require(np.all(np.isfinite(torque)), "torque is not finite")
        for told, kept in zip((command, position, velocity), given, strict=True):
            same(told, kept, "torque() writes into its arguments")
        same_columns(memory, remembered, "torque() writes into the memory it was given")
        require(set(after) == names, f"memory holds {sorted(after)}, began with {sorted(names)}")
        for name, rows in after.items():
            require(rows.shape[:1] == (n,), f"memory {name!r} has shape {rows.shape}, want one row a copy")
        found.append(torque)
        memory = after
    return found


def _rows_stand_alone(motor: Motor, inputs: list[tuple[Array, Array, Array]], whole: list[Array]) -> None:
    for n in BATCHES:
        part = [(c[:n], p[:n], v[:n]) for c, p, v in inputs]
        for step, torque in enumerate(_driven(motor, motor.start(n, JOINTS), part)):
            same(torque, whole[step][:n], f"torque of {n} rows and of the same among {len(whole[step])}")


def _nothing_is_kept(motor: Motor, inputs: list[tuple[Array, Array, Array]], whole: list[Array]) -> None:
    again = _driven(motor, motor.start(len(whole[0]), JOINTS), inputs)
    for one, other in zip(whole, again, strict=True):
        same(one, other, "the same commands twice")


def _rows_can_be_dropped(motor: Motor, inputs: list[tuple[Array, Array, Array]], whole: list[Array]) -> None:
    n, half = len(whole[0]), STEPS // 2
    memory = motor.start(n, JOINTS)
    for command, position, velocity in inputs[:half]:
        memory = motor.torque(command, position, velocity, memory, dt_s=DT_S).memory
    kept = np.arange(0, n, 3)
    rest = [(c[kept], p[kept], v[kept]) for c, p, v in inputs[half:]]
    for step, torque in enumerate(_driven(motor, rows_of(memory, kept), rest)):
        same(torque, whole[half + step][kept], "after taking some rows of the memory away, the others")


def _pulls_towards_the_command(motor: Motor) -> None:
    still = np.zeros((2, JOINTS))
    command = np.stack([np.ones(JOINTS), -np.ones(JOINTS)])
    memory = motor.start(2, JOINTS)
    torque = still
    for _ in range(TOWARDS_STEPS):
        torque, memory = motor.torque(command, still, still, memory, dt_s=DT_S)
    require(np.all(torque * command > 0.0), "held still, a motor does not pull towards its command")
