"""Named arrays in a safetensors file, read by whoever runs a network without the library that trained it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from simops.core.errors import DataError
from simops.core.signal import Array

DTYPES: Mapping[str, str] = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
LONGEST_HEADER = 1 << 24


class Tensors(NamedTuple):
    """What a file held."""

    arrays: Mapping[str, Array]
    said: Mapping[str, str]
    """Words that came along."""


def tensors(source: Path | bytes) -> Tensors:
    """Read a safetensors file, or its bytes; raises where it is torn, or holds what is no number."""
    where = "" if isinstance(source, bytes) else str(source)
    try:
        raw = source if isinstance(source, bytes) else source.read_bytes()
    except OSError as error:
        raise DataError(f"{where} cannot be read: {error.strerror}", where=where, fault="DAT-004") from error
    header, body = _split(raw, where)
    said = cast("dict[str, str]", header.pop("__metadata__", {}))
    arrays: dict[str, Array] = {}
    for name, about in header.items():
        arrays[name] = _array(name, cast("dict[str, object]", about), body, where)
    return Tensors(arrays, said)


def _split(raw: bytes, where: str) -> tuple[dict[str, object], bytes]:
    size = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or size > min(LONGEST_HEADER, len(raw) - 8):
        raise DataError("this is no safetensors file, or a torn one", where=where, fault="DAT-003")
    try:
        header = json.loads(raw[8 : 8 + size])
    except ValueError as error:
        raise DataError("the header of the safetensors file does not parse", where=where, fault="DAT-003") from error
    if not isinstance(header, dict):
        raise DataError("the header of the safetensors file is no table", where=where, fault="DAT-003")
    return cast("dict[str, object]", header), raw[8 + size :]


def _array(name: str, about: dict[str, object], body: bytes, where: str) -> Array:
    dtype = DTYPES.get(str(about.get("dtype")))
    offsets, shape = about.get("data_offsets"), about.get("shape")
    if dtype is None or not isinstance(offsets, list) or not isinstance(shape, list):
        raise DataError(f"tensor {name} is of no kind that is known: {about.get('dtype')}", where=where)
    begin, end = cast("list[int]", offsets)
    sides = cast("list[int]", shape)
    count = int(np.prod(sides, dtype=int))
    if not 0 <= begin <= end <= len(body) or (end - begin) != count * np.dtype(dtype).itemsize:
        raise DataError(f"tensor {name} does not lie within the file", where=where, fault="DAT-003")
    found = np.frombuffer(body[begin:end], dtype).reshape(sides)
    if not np.all(np.isfinite(found)):
        raise DataError(f"tensor {name} holds what is no number", where=where)
    return found
