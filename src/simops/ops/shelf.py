"""Folders kept by what is in them: named by a SHA-256 over every file, whole or absent, verified when read.

What is put down is copied first, under a name nobody reads, and every byte is hashed as it is copied,
so a source that changes meanwhile cannot be kept under the wrong name.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from simops.core.errors import DataError
from simops.data.files import make_folder, refusal, sync

DEEPEST = 8
"""Folders within folders."""
MOST_FILES = 4096
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_CHUNK = 1 << 20


@final
@dataclass(frozen=True, order=True)
class File:
    """One file of a folder, as it must be."""

    path: str
    """Relative, with forward slashes."""
    bytes: int
    sha256: str


@final
@dataclass(frozen=True)
class Staged:
    """A copy that is complete and durable, and not yet on the shelf."""

    folder: Path
    files: tuple[File, ...]

    @property
    def digest(self) -> str:
        """What the folder will be called."""
        return digest_of(self.files)


def digest_of(listing: Iterable[File]) -> str:
    """SHA-256 over names, sizes and SHA-256 of all files: the name of a folder with just these in it."""
    lines = (f"{file.sha256} {file.bytes} {file.path}\n" for file in sorted(listing))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@final
class Shelf:
    """Folders by digest under one root."""

    def __init__(self, root: Path) -> None:
        """Use `root`, making what is missing."""
        self.root = root
        self._objects, self._incoming, self._aside = (root / part for part in ("objects", "incoming", "quarantine"))
        for folder in (self._objects, self._incoming, self._aside):
            make_folder(folder)

    def path(self, digest: str) -> Path:
        """Where a folder of this digest stands, if it does."""
        return self._objects / digest

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(entry.name for entry in self._objects.iterdir()))

    @contextmanager
    def stage(self, source: Path) -> Generator[Staged]:
        """Copy `source`, all of it to the disk; what is not placed before the end is taken away again."""
        paths = regular_files(source)
        descriptor, folder = self._room()
        try:
            files = tuple(_copy(source, folder, path) for path in paths)
            for made in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
                sync(made)
            sync(folder)
            yield Staged(folder, files)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)

    def place(self, staged: Staged) -> None:
        """Put a copy on the shelf; one that stands there already and is sound stays, a damaged one makes way."""
        target = self.path(staged.digest)
        if target.exists() and self.faults(staged.digest, staged.files):
            self.quarantine(staged.digest)
        if not target.exists():
            staged.folder.rename(target)
            sync(self._objects)

    def faults(self, digest: str, listing: Iterable[File]) -> tuple[str, ...]:
        """What is wrong with a folder on the shelf, a line each; empty when every bit is as it was."""
        folder, wanted = self.path(digest), {file.path: file for file in listing}
        if digest_of(wanted.values()) != digest:
            return ("the list of its files does not match its digest",)
        if not folder.is_dir():
            return ("it is missing",)
        try:
            found = set(regular_files(folder))
        except DataError as error:
            return (error.what,)
        wrong = [f"{path} does not belong there" for path in sorted(found - set(wanted))]
        wrong += [f"{path} is missing" for path in sorted(set(wanted) - found)]
        wrong += [f"{path} has changed" for path in sorted(found & set(wanted)) if _hash(folder, path) != wanted[path]]
        return tuple(wrong)

    def quarantine(self, digest: str) -> Path:
        """Move a folder aside, under a name nobody reads it by."""
        target = self._aside / f"{digest}-{secrets.token_hex(4)}"
        self.path(digest).rename(target)
        sync(self._aside)
        sync(self._objects)
        return target

    def discard(self, digest: str) -> Path:
        """Take a folder off the shelf at once; its bytes go with the next `sweep`."""
        target = self._incoming / f"discarded-{secrets.token_hex(8)}"
        self.path(digest).rename(target)
        sync(self._objects)
        return target

    def sweep(self) -> int:
        """Remove what was discarded or left by writers that died; gives how many folders."""
        swept = 0
        for folder in list(self._incoming.iterdir()):
            with contextlib.suppress(OSError):
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                    swept += 1
                finally:
                    os.close(descriptor)
        return swept

    def _room(self) -> tuple[int, Path]:
        """A fresh folder that is ours as long as the descriptor is open."""
        while True:
            folder = self._incoming / secrets.token_hex(16)
            try:
                folder.mkdir()
            except OSError as error:
                raise refusal(error, folder, 4096) from error
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:  # somebody swept it before it could be held
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists():  # nobody swept it before it was ours
                return descriptor, folder
            os.close(descriptor)


def regular_files(folder: Path) -> list[str]:
    """Relative paths of all files; raises at a link, a device, or a name that could lead elsewhere."""
    found: list[str] = []
    _walk(folder, "", found)
    if not found:
        raise DataError(f"{folder.name} has no files in it", where=str(folder), attempt="a folder that an export made")
    return sorted(found)


def _walk(folder: Path, prefix: str, found: list[str]) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        attempt = "a folder that an export made"
        raise DataError(f"cannot read {folder.name}: {error.strerror}", where=str(folder), attempt=attempt) from error
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if not _PART.fullmatch(entry.name):
            raise DataError(f"{path!r} is no name of a file to keep", where=str(folder), fault="SEC-020")
        if entry.is_dir(follow_symlinks=False):
            if path.count("/") >= DEEPEST:
                raise DataError(f"{path} lies too deep", where=str(folder), fault="SEC-020")
            _walk(folder / entry.name, f"{path}/", found)
        elif entry.is_file(follow_symlinks=False):
            found.append(path)
        else:
            raise DataError(f"{path} is a link or a device, no file", where=str(folder), fault="SEC-020")
        if len(found) > MOST_FILES:
            raise DataError(f"more than {MOST_FILES} files", where=str(folder), fault="SEC-020")


def _copy(source: Path, target: Path, path: str) -> File:
    """Copy one file to the disk, hashing what is written."""
    out = target / path
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        reading = _open(source / path)
        try:
            writing = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
            try:
                state, count = hashlib.sha256(), 0
                while chunk := os.read(reading, _CHUNK):
                    state.update(chunk)
                    count += len(chunk)
                    view = memoryview(chunk)
                    while view:
                        view = view[os.write(writing, view) :]
                os.fsync(writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
    except OSError as error:
        raise refusal(error, out, 0) from error
    return File(path, count, state.hexdigest())


def _open(path: Path) -> int:
    """Open a file that is one; a link put there a moment ago is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError(f"{path.name} is no file", where=str(path.parent), fault="SEC-020")
    return descriptor


def _hash(folder: Path, path: str) -> File | None:
    try:
        with os.fdopen(_open(folder / path), "rb") as file:
            state = hashlib.file_digest(file, "sha256")
            return File(path, file.tell(), state.hexdigest())
    except OSError:
        return None
