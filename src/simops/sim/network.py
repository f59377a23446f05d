"""A motor that is a network: what it did of late, error and velocity, to a torque, inside the physics step.

Plain numpy runs it, whatever trained it, all joints of all copies at once. Weights and what goes between layers lie on
a grid so coarse that every sum is exact in double precision: a copy's torque is the same bytes whoever else is in the
batch and in whichever order a processor adds, which no library of matrix products promises otherwise.

With a motor `under` it, the network is a bounded correction of that one: the physical part keeps the behaviour where
nobody has measured. Several networks are asked side by side; how far they disagree is remembered as `doubt`, can be
held against the correction, and ends a copy's episode beyond a bound, so that no policy lives off the model's mistakes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.core.params import Param, Params
from simops.core.protocols import Memory, Motor, Torque, Tunable
from simops.core.signal import Array
from simops.data.tensors import tensors

BLOCK = 128
"""Copies that go through the network at once, few enough to stay in the cache."""
GRID = 2.0**19
"""Steps of the grid in one unit."""
LARGEST = 16.0
"""Largest weight, and largest input in units of its scale; what is larger is cut."""
WIDEST = 128
"""Numbers that may be added: 19 + 4 bits of a weight, as many of an input, and 7 of these make the 53 of a double."""
ALONE = 2**18
"""Multiplications up to which OpenBLAS keeps a product to one thread; waking others costs more than they do."""
_UNDER = "under/"


@final
@dataclass(frozen=True, kw_only=True)
class Network:
    """Torque by one network or several, alone or on top of another motor."""

    weights: Path
    """A safetensors file as `fit_network` writes it."""
    under: Motor | None = None
    """The motor that is corrected; the networks are the whole motor when left out."""
    bound_nm: float = float("inf")
    """Largest correction."""
    wary: float = 0.0
    """How much of the disagreement, in its own standard deviations, is taken off the networks' torque."""
    doubt_limit_nm: float = float("inf")
    """Disagreement beyond which a copy counts as broken down, which ends its episode."""

    @cached_property
    def net(self) -> Net:
        """The networks, read once."""
        return Net.read(self.weights)

    @property
    def params(self) -> tuple[Param, ...]:
        """Settings of the motor under it, where that has any."""
        return self.under.params if isinstance(self.under, Tunable) else ()

    def tune(self, memory: Memory, params: Params) -> Memory:
        """The motor under it has the settings that the belief says."""
        if not isinstance(self.under, Tunable):
            return memory
        tuned = self.under.tune(_inner(memory), params)
        return {**memory, **{_UNDER + name: rows for name, rows in tuned.items()}}

    def start(self, n: int, joints: int) -> Memory:
        """Nothing seen yet."""
        net = self.net
        net.fits(joints, str(self.weights))
        below: Memory = self.under.start(n, joints) if self.under else {}
        return {
            "seen": np.zeros((n, net.kept, joints)),
            "age": np.zeros(n, np.int64),
            "held": np.zeros((n, joints)),
            "doubt": np.zeros((n, joints)),
            **{_UNDER + name: rows for name, rows in below.items()},
        }

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """What the networks say, asked once a period of theirs and held meanwhile."""
        net, kept = self.net, dict(memory)
        period = max(1, round(net.period_s / dt_s))
        due = memory["age"] % period == 0
        kept["age"] = memory["age"] + 1
        if due.all():
            self._ask(kept, command - position, velocity, slice(None))
        elif due.any():
            for name in ("seen", "held", "doubt"):
                kept[name] = kept[name].copy()
            self._ask(kept, command - position, velocity, np.flatnonzero(due))
        torque = kept["held"]
        if self.under is not None:
            below = self.under.torque(command, position, velocity, _inner(memory), dt_s=dt_s)
            torque = below.torque_nm + torque
            kept |= {_UNDER + name: rows for name, rows in below.memory.items()}
        if np.isfinite(self.doubt_limit_nm):
            torque = np.where(kept["doubt"] > self.doubt_limit_nm, np.nan, torque)
        return Torque(torque, kept)

    def _ask(self, kept: dict[str, Array], error: Array, velocity: Array, rows: Array | slice) -> None:
        net = self.net
        fresh = kept["age"][rows] == 1
        shown = np.stack([error[rows], velocity[rows]], axis=1) / net.scales[:, None]
        said, seen = net.step(shown, kept["seen"][rows], fresh)
        mean = said.mean(axis=0)
        doubt = said.std(axis=0, ddof=1) if len(said) > 1 else np.zeros_like(mean)
        if self.wary:
            mean = np.sign(mean) * np.maximum(np.abs(mean) - self.wary * doubt, 0.0)
        mean = np.clip(mean, -self.bound_nm, self.bound_nm)
        if isinstance(rows, slice):
            kept["seen"], kept["held"], kept["doubt"] = seen, mean, doubt
        else:
            kept["seen"][rows], kept["held"][rows], kept["doubt"][rows] = seen, mean, doubt


@final
@dataclass(frozen=True, kw_only=True)
class Net:
    """Networks of one shape side by side: layers with a gate of memory, or layers over a window of the past."""

    layers: tuple[tuple[Array, Array], ...]
    """Weights (members, joints or 1, out, in) per step of the grid, offsets (members, joints or 1, out, 1)."""
    gate: tuple[Array, Array, Array, Array] | None
    """Of a GRU: weights of input and memory, offsets of both; reset, update and new side by side."""
    history: int
    """Instants of error and velocity that layers without a gate see."""
    period_s: float
    """Between two instants."""
    scales: Array = field(repr=False)
    """What an error and a velocity of 1 mean."""
    torque_nm: Array
    """(joints or 1,) what an output of 1 means."""

    @classmethod
    def read(cls, path: Path) -> Net:
        """From a file; raises where it is no motor."""
        arrays, said = tensors(path)
        try:
            count = int(said["layers"])
            layers = tuple((_on_grid(arrays[f"{i}.weight"], path), _tail(arrays[f"{i}.bias"])) for i in range(count))
            gate = None
            if "gate.weight_in" in arrays:
                gate = (
                    _on_grid(arrays["gate.weight_in"], path),
                    _on_grid(arrays["gate.weight_memory"], path),
                    _tail(arrays["gate.bias_in"]),
                    _tail(arrays["gate.bias_memory"]),
                )
            return cls(
                layers=layers,
                gate=gate,
                history=int(said["history"]),
                period_s=float(said["period_s"]),
                scales=arrays["scales"].astype(np.float64),
                torque_nm=arrays["torque_nm"].astype(np.float64),
            )
        except (KeyError, ValueError) as error:
            raise DataError(f"{path.name} is no network of a motor: {error} is missing", where=str(path)) from error

    @property
    def members(self) -> int:
        """How many networks are asked."""
        return self.layers[0][0].shape[0]

    @property
    def kept(self) -> int:
        """Numbers remembered a joint."""
        return self.members * self.gate[1].shape[-1] if self.gate else 2 * self.history

    def fits(self, joints: int, where: str) -> None:
        """Raise unless this is for as many joints, or for any."""
        known = self.layers[0][0].shape[1]
        if known not in (1, joints):
            raise DataError(f"the network is of {known} joints, the robot has {joints}", where=where, fault="LRN-005")

    def step(self, shown: Array, seen: Array, fresh: Array) -> tuple[Array, Array]:
        """Torques (members, n, joints) and what to remember, after `shown` (n, 2, joints) came on top of `seen`.

        Where `fresh`, nothing was seen before: the past is taken to have been as the first instant was.
        """
        after = np.empty_like(seen)
        said = np.empty((self.members, len(shown), shown.shape[2]))
        on_grid = np.rint(np.clip(shown, -LARGEST, LARGEST) * GRID)
        for begin in range(0, len(shown), BLOCK):
            part = slice(begin, begin + BLOCK)
            if self.gate:
                torque, after[part] = self._gated(self.gate, on_grid[part], seen[part])
            else:
                torque, after[part] = self._windowed(on_grid[part], seen[part], fresh[part])
            said[:, part] = torque
        return said * self.torque_nm, after

    def _windowed(self, shown: Array, seen: Array, new: Array) -> tuple[Array, Array]:
        past = np.concatenate([seen[:, 2:], shown], axis=1)
        if new.any():
            past[new] = np.tile(shown[new], (1, self.history, 1))
        return self._through(self._tall(past)[None], shown.shape), past

    def _gated(self, gate: tuple[Array, ...], shown: Array, seen: Array) -> tuple[Array, Array]:
        into, over, bias_in, bias_over = gate
        width = over.shape[-1]
        each = seen.reshape(len(seen), self.members, width, -1)
        before = np.stack([self._tall(each[:, m]) for m in range(self.members)])
        inward = product(into, self._tall(shown)[None]) + bias_in
        around = product(over, before) + bias_over
        reset = _sigmoid(inward[..., :width, :] + around[..., :width, :])
        update = _sigmoid(inward[..., width : 2 * width, :] + around[..., width : 2 * width, :])
        fresh = np.tanh(inward[..., 2 * width :, :] + reset * around[..., 2 * width :, :])
        memory = np.rint((1.0 - update) * fresh * GRID + update * before)
        wide = [self._wide(memory[m], shown.shape) for m in range(self.members)]
        return self._through(memory, shown.shape), np.concatenate(wide, axis=1)

    def _through(self, rows: Array, shape: tuple[int, ...]) -> Array:
        """(members, copies, joints) after all layers; rows are in steps of the grid."""
        for i, (weight, bias) in enumerate(self.layers):
            rows = product(weight, rows)
            rows += bias
            if i < len(self.layers) - 1:
                size = np.abs(rows)
                size += 1.0
                rows /= size  # softsign, the cheapest that bounds
                rows *= GRID
                np.rint(rows, out=rows)
        return np.stack([self._wide(rows[m], shape)[:, 0] for m in range(self.members)])

    @property
    def _shared(self) -> bool:
        return self.layers[0][0].shape[1] == 1

    def _tall(self, rows: Array) -> Array:
        """(copies, features, joints) as (joints or 1, features, columns)."""
        if self._shared:
            return np.ascontiguousarray(rows.transpose(1, 2, 0)).reshape(1, rows.shape[1], -1)
        return np.ascontiguousarray(rows.transpose(2, 1, 0))

    def _wide(self, columns: Array, shape: tuple[int, ...]) -> Array:
        """(joints or 1, features, columns) as (copies, features, joints)."""
        if self._shared:
            return columns.reshape(columns.shape[1], shape[2], shape[0]).transpose(2, 0, 1)
        return columns.transpose(2, 1, 0)


def product(weight: Array, rows: Array) -> Array:
    """`weight @ rows`, some columns at a time, so that no library of products spreads the little there is over threads.

    The sums are exact, so the columns come out the same however they are cut.
    """
    columns = rows.shape[-1]
    most = max(1, ALONE // (weight.shape[-2] * weight.shape[-1]))
    if columns <= most:
        return np.matmul(weight, rows)
    out = np.empty((*np.broadcast_shapes(weight.shape[:-2], rows.shape[:-2]), weight.shape[-2], columns))
    for begin in range(0, columns, most):
        part = slice(begin, begin + most)
        np.matmul(weight, rows[..., part], out=out[..., part])
    return out


def _inner(memory: Memory) -> Memory:
    """What the motor under it remembers."""
    return {name.removeprefix(_UNDER): rows for name, rows in memory.items() if name.startswith(_UNDER)}


def _sigmoid(rows: Array) -> Array:
    return 0.5 + 0.5 * np.tanh(0.5 * rows)


def _on_grid(weights: Array, path: Path) -> Array:
    """Weights on the grid, for inputs that are counted in its steps."""
    if weights.shape[-1] > WIDEST or np.abs(weights).max() > LARGEST:
        raise DataError(
            f"{path.name} has layers of {weights.shape[-1]} and weights up to {np.abs(weights).max():.1f}",
            where=str(path),
            attempt=f"layers of at most {WIDEST} and weights of at most {LARGEST:g}",
        )
    return np.rint(weights.astype(np.float64) * GRID) / GRID / GRID


def _tail(offsets: Array) -> Array:
    return offsets.astype(np.float64)[..., None]
