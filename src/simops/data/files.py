"""Files that are whole or absent, sealed records, and a lock that dies with its owner.

The one recipe for writing: a temporary name, all the bytes, fsync, rename, fsync of the folder.
Whoever sees a file under its own name sees all of it, also after a power cut.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, final

from simops.core.errors import BusyError, DataError, SpaceError

TEMPORARY = ".tmp"
"""Ending of a file that is not there yet."""
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}


def publish(path: Path, data: bytes | memoryview) -> None:
    """Write `data` to `path` so that it survives whatever follows, or leave nothing there and raise."""
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise refusal(error, path, len(data)) from error


def refusal(error: OSError, path: Path, needed: int) -> SpaceError | DataError:
    """Say in words why `needed` bytes could not be kept at `path`."""
    if error.errno not in _NO_ROOM:
        return DataError(f"cannot write {path.name}: {error.strerror}", where=str(path.parent))
    if error.errno == errno.EROFS:
        return SpaceError(
            f"the disk is read-only: cannot write {path.name}",
            where=str(path.parent),
            attempt="write to another folder",
            fault="DAT-009",
        )
    free = 0
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(path.parent).free
    why = {errno.EDQUOT: "the quota is used up", errno.EFBIG: "the file size limit is reached"}
    return SpaceError(
        f"{why.get(error.errno or 0, 'the disk is full')}: {path.name} needs {size(needed)}, {size(free)} are free",
        where=str(path.parent),
        attempt=f"make room for {size(needed)} and more, then run the same command again: it goes on where it stopped",
        fault="DAT-009",
    )


def require_room(folder: Path, needed: int, what: str) -> None:
    """Raise before anything is written if `needed` bytes do not fit."""
    if shutil.disk_usage(folder).free < needed:
        raise refusal(OSError(errno.ENOSPC, ""), folder / what, needed)


def size(count: int) -> str:
    """A number of bytes, for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def sync(folder: Path) -> None:
    """Make the names in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make `path` and what is above it, to stay."""
    if path.is_dir():
        return
    try:
        if not path.parent.is_dir():
            make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)
    except OSError as error:
        raise refusal(error, path, 4096) from error


def digest(data: bytes | memoryview) -> str:
    """SHA-256, as everywhere in a dataset."""
    return hashlib.sha256(data).hexdigest()


def seal(body: Mapping[str, object]) -> bytes:
    """Write `body` as JSON with its own digest; there is one way to write it, so any flipped bit shows."""
    inner = json.dumps(body, indent=1, sort_keys=True, allow_nan=False)
    return f'{{"sha256": "{digest(inner.encode())}", "body":\n{inner}\n}}\n'.encode()


def unseal(path: Path) -> dict[str, Any]:
    """Read what `seal` wrote, or raise naming the damaged file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path.name} is missing", where=str(path.parent), fault="DAT-004") from error
    try:
        body = cast("dict[str, Any]", json.loads(data)["body"])
        if seal(body) == data:
            return body
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DataError(f"{path.name} does not match its own checksum", where=str(path.parent), fault="DAT-003")


@final
class Lock:
    """One writer at a time; the kernel frees it when its owner dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        """Take the lock of `folder`, or raise naming who holds it."""
        path = folder / "lock"
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise refusal(error, path, 16) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._descriptor, 16, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise BusyError(
                f"{folder} is being written by process {owner or 'unknown'}",
                where=str(path),
                attempt="wait for it, or write to another folder",
                fault="DAT-010",
            ) from error
        with contextlib.suppress(OSError):  # the number is a courtesy; the lock does not depend on it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    @property
    def held(self) -> bool:
        """Whether it was not released yet."""
        return self._descriptor >= 0

    def release(self) -> None:
        """Let the next writer in; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
