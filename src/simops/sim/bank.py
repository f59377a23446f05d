"""Named arrays with one row a copy, in one block of memory that worker processes map too."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np

from simops.core.signal import Array
from simops.sim.binding import Data, Model, mj


class Row(NamedTuple):
    """What one copy has of a field."""

    shape: tuple[int, ...]
    dtype: str = "float64"

    @property
    def size(self) -> int:
        """Bytes, a multiple of eight so that every field begins where numbers may."""
        return -(-int(np.prod(self.shape, dtype=int)) * np.dtype(self.dtype).itemsize // 8) * 8


@final
class Bank:
    """Fields of `n` copies; looks to a reader of signals like MuJoCo's own batch."""

    def __init__(self, model: Model, n: int, fields: Mapping[str, Row], file: int | None = None) -> None:
        """Lay the fields out in this process' memory, or in a file that others map as well."""
        self.model, self.n, self.fields = model, n, dict(fields)
        size = max(8, sum(row.size for row in self.fields.values()) * n)
        if file is None:
            block: mmap.mmap = mmap.mmap(-1, size)
        else:
            if os.fstat(file).st_size < size:
                os.truncate(file, size)
            block = mmap.mmap(file, size)
        self._arrays: dict[str, Array] = {}
        start = 0
        for name, row in self.fields.items():
            count = n * int(np.prod(row.shape, dtype=int))
            flat = np.frombuffer(block, row.dtype, count, start) if count else np.zeros(0, row.dtype)
            self._arrays[name] = flat.reshape(n, *row.shape)
            start += n * row.size

    def bind(self, name: str) -> Array:
        """The field's rows, to read and to write."""
        return self._arrays[name]

    def ray(
        self, origins: Array, directions: Array, *, bodyexclude: int = -1, normal: bool = False
    ) -> tuple[Array, ...]:
        """Cast each copy's rays (n, rays, 3) into the scene as it stands there, as MuJoCo's own batch does.

        All rays of a copy begin where its first does. What comes back: distances and geoms (n, rays), -1 for a miss,
        and with `normal` the normals of what was hit.
        """
        n, rays = directions.shape[:2]
        distances, geoms, normals = np.zeros((n, rays)), np.zeros((n, rays), np.int32), np.zeros((n, rays, 3))
        data = mj.MjData(self.model)
        for row in range(n):
            for name in ("qpos", "mocap_pos"):
                getattr(data, name)[:] = self.bind(name)[row]
            mj.mj_kinematics(self.model, data)
            ways, met = np.ascontiguousarray(directions[row]).ravel(), normals[row].reshape(-1)
            start = np.ascontiguousarray(origins[row, 0])
            hit = geoms[row], distances[row], met
            mj.mj_multiRay(self.model, data, start, ways, None, 1, bodyexclude, *hit, rays, mj.mjMAXVAL)
        return (distances, geoms, normals) if normal else (distances, geoms)


@final
class Wish:
    """Stands where a bank will, and notes which fields of the state somebody binds."""

    def __init__(self, model: Model, n: int, data: Data) -> None:
        """Nothing is wished for yet."""
        self.model, self._n, self._data = model, n, data
        self.fields: dict[str, Row] = {}

    def bind(self, name: str) -> Array:
        """An array of the field's shape that nothing is ever written to."""
        one = np.asarray(getattr(self._data, name))
        self.fields[name] = Row(one.shape)
        return np.zeros((self._n, *one.shape))

    def ray(self, origins: Array, directions: Array, **_: object) -> tuple[Array, ...]:
        """Rays that meet nothing, for nothing stands anywhere yet."""
        missed = np.full(directions.shape[:2], -1.0)
        return missed, missed.astype(np.int32), np.zeros_like(origins)


def shareable() -> int:
    """An empty file without a name: in memory where the system can, else on disk; closed by who asks."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("simops")
    with tempfile.TemporaryFile() as held:
        return os.dup(held.fileno())
