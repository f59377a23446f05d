"""Frames over a pipe: a line of JSON that names arrays, then their bytes; nothing else can be said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, final

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array

MOST_BYTES = 1 << 28
_TYPES = ("float32", "float64", "int64", "int8", "uint8", "uint64", "bool")


@final
@dataclass(frozen=True)
class Frame:
    """One message."""

    verb: str
    said: Mapping[str, str | int | float] = field(default_factory=dict[str, "str | int | float"])
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])


def send(pipe: BinaryIO, frame: Frame) -> None:
    """Write a message."""
    arrays = {name: np.ascontiguousarray(rows) for name, rows in frame.arrays.items()}
    shapes = [[name, str(rows.dtype), list(rows.shape)] for name, rows in arrays.items()]
    head = json.dumps({"verb": frame.verb, "said": dict(frame.said), "arrays": shapes}).encode()
    pipe.write(len(head).to_bytes(4, "little") + head + b"".join(rows.tobytes() for rows in arrays.values()))
    pipe.flush()


def receive(pipe: BinaryIO) -> Frame | None:
    """Read a message; nothing when the other side has gone."""
    length = pipe.read(4)
    if len(length) < 4:
        return None
    size = int.from_bytes(length, "little")
    if size > 1 << 20:
        raise DataError(f"a frame's head of {size:,} bytes", where="the pipe to a robot")
    head = json.loads(_exactly(pipe, size))
    arrays: dict[str, Array] = {}
    for name, dtype, shape in head["arrays"]:
        if dtype not in _TYPES:
            raise DataError(f"{name} is of type {dtype!r}", where="the pipe to a robot", attempt=", ".join(_TYPES))
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if not 0 <= count <= MOST_BYTES:
            raise DataError(f"{name} has {count:,} bytes", where="the pipe to a robot")
        arrays[name] = np.frombuffer(_exactly(pipe, count), dtype).reshape(shape).copy()
    return Frame(head["verb"], head["said"], arrays)


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise DataError("the robot broke off in the middle of a message", where="the pipe to a robot")
    return data
