"""What is in a bundle, to the last bit: a folder is read whole and verified before anything is made of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from simops.core.errors import DataError

MANIFEST = "manifest.json"
REPORT = "report.json"
"""Figures measured on some machine: verified like the rest, but no part of what the policy is."""
LARGEST = 1 << 30
"""Bytes of one file at most."""
_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")


class Contents(NamedTuple):
    """A verified bundle, as bytes."""

    files: Mapping[str, bytes]
    """By name, the manifest left out."""
    digest: str


def manifest(files: Mapping[str, bytes]) -> bytes:
    """List `files` with size and SHA-256, sealed with a digest of its own; there is one way to write it."""
    return _sealed({name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in files.items()})


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the manifest of all that makes the policy what it is, so without `report.json`."""
    return _sha256(manifest({name: data for name, data in files.items() if name != REPORT}))


def read(folder: Path | str) -> Contents:
    """Give all bytes of a bundle, or raise naming what is missing, foreign or changed."""
    folder = Path(folder)
    listed = _listed(folder)
    try:
        present = {entry.name for entry in os.scandir(folder)} - {MANIFEST}
    except OSError as error:
        raise _refused(f"cannot be listed: {error.strerror}", folder) from error
    for name in sorted(listed.keys() - present):
        raise _refused(f"{name} is missing", folder)
    for name in sorted(present - listed.keys()):
        raise _refused(f"{name!r} is not of this bundle", folder)
    files: dict[str, bytes] = {}
    for name, want in sorted(listed.items()):
        files[name] = data = _bytes(folder, name)
        if {"bytes": len(data), "sha256": _sha256(data)} != want:
            raise _refused(f"{name} is not the file that was exported", folder)
    return Contents(files, digest(files))


def _listed(folder: Path) -> dict[str, dict[str, object]]:
    data = _bytes(folder, MANIFEST)
    try:
        body = cast("dict[str, Any]", json.loads(data)["files"])
        if _sealed(body) == data and all(_NAME.fullmatch(name) for name in body):
            return body
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise _refused(f"{MANIFEST} does not match its own checksum", folder)


def _bytes(folder: Path, name: str) -> bytes:
    """Read one plain file of the folder itself: a link could lead anywhere, a pipe could wait forever."""
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(f"{name} cannot be read: {error.strerror}", folder) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise _refused(f"{name} is no plain file of a bundle's size", folder)
        return file.read()


def _sealed(body: Mapping[str, object]) -> bytes:
    inner = json.dumps(body, indent=1, sort_keys=True, allow_nan=False)
    return f'{{"sha256": "{_sha256(inner.encode())}", "files":\n{inner}\n}}\n'.encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refused(what: str, folder: Path) -> DataError:
    return DataError(
        what,
        where=str(folder),
        attempt="export it again, or take the previous bundle",
        fault="EXP-011",
    )
