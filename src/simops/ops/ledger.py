"""The registry's one SQLite file: rows are added and never changed, and each carries a SHA-256 that vouches for it.

What happened is a chain: every line of the log holds the digest of the line before, so a line that was
changed, taken out or slipped in shows as soon as the file is opened.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, cast, final

from simops.core.errors import BusyError, DataError
from simops.data.files import make_folder, refusal, sync

FILE = "registry.sqlite"
FORMAT = 1
MARK = 0x53494D4F
"""`SIMO`: what tells our file from any other database."""
PATIENCE_S = 60.0
"""How long to wait for other writers before saying so."""

Action: TypeAlias = Literal["added", "restored", "removed", "quarantined", "tagged", "untagged", "pinned", "unpinned"]
Cell: TypeAlias = str | int | None

_TABLES = """
CREATE TABLE artefacts (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL CHECK (version > 0), object TEXT NOT NULL,
    at TEXT NOT NULL, who TEXT NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (kind, name, version), UNIQUE (kind, name, object)
) STRICT;
CREATE TABLE lineage (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, what TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (kind, name, version, what, value),
    FOREIGN KEY (kind, name, version) REFERENCES artefacts (kind, name, version)
) STRICT;
CREATE INDEX lineage_by_value ON lineage (what, value);
CREATE TABLE files (
    object TEXT NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL CHECK (bytes >= 0), sha256 TEXT NOT NULL,
    PRIMARY KEY (object, path)
) STRICT;
CREATE TABLE log (
    seq INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
    action TEXT NOT NULL, label TEXT NOT NULL, version INTEGER NOT NULL, why TEXT NOT NULL,
    before TEXT NOT NULL, sha256 TEXT NOT NULL
) STRICT;
"""
_NAMES = ("artefacts", "lineage", "files", "log")


@final
@dataclass(frozen=True)
class Event:
    """One line of the log."""

    seq: int
    at: str
    """UTC, ISO 8601."""
    who: str
    kind: str
    name: str
    action: Action
    label: str
    """The tag; empty where the action is about none."""
    version: int
    why: str
    before: str
    """SHA-256 of the line before."""
    sha256: str

    @property
    def true(self) -> bool:
        """Whether the line says what was written."""
        fields = vars(self)
        return self.sha256 == seal_of(*(fields[name] for name in fields if name != "sha256"))


def seal_of(*cells: Cell) -> str:
    """SHA-256 over the cells of a row."""
    return hashlib.sha256(json.dumps(cells, ensure_ascii=True).encode()).hexdigest()


def now() -> str:
    """UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@final
class Ledger:
    """A connection to the file; one for each process and thread."""

    def __init__(self, root: Path, *, create: bool) -> None:
        """Open the file under `root`, and verify the log."""
        self.path = root / FILE
        if not create and not self.path.is_file():
            raise DataError("there is no registry here", where=str(root), attempt="simops policy add")
        make_folder(root)
        with self._said():
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)
            try:
                self._prepare(root)
                self.check_log()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def rows(self, sql: str, *values: Cell) -> list[tuple[Cell, ...]]:
        """Ask; whatever is wrong with the file is an error that says so."""
        with self._said():
            return cast("list[tuple[Cell, ...]]", self._connection.execute(sql, values).fetchall())

    def put(self, table: str, *cells: Cell) -> None:
        """Add a row; only inside `writing`."""
        marks = ", ".join("?" for _ in cells)
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", cells)  # noqa: S608  our own table names

    @contextmanager
    def writing(self) -> Generator[None]:
        """All that is written inside happens at once and for good, or not at all; one writer at a time."""
        with self._said():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Generator[None]:
        """Everything asked inside is of one moment."""
        with self._said():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    def note(self, action: Action, kind: str, name: str, version: int, *, who: str, why: str, label: str = "") -> None:
        """Add a line to the log; only inside `writing`."""
        last = self.rows("SELECT seq, sha256 FROM log ORDER BY seq DESC LIMIT 1")
        seq, before = last[0] if last else (0, "")
        cells = (int(seq or 0) + 1, now(), who, kind, name, action, label, version, why, before)
        self.put("log", *cells, seal_of(*cells))

    def log(self, where: str = "", *values: Cell) -> list[Event]:
        """Lines of the log, oldest first."""
        return [Event(*row) for row in self.rows(f"SELECT * FROM log {where} ORDER BY seq", *values)]  # type: ignore[arg-type]  # noqa: S608

    def check_log(self) -> None:
        """Raise if any line is not the one that was written."""
        before = ""
        for place, event in enumerate(self.log(), 1):
            if event.seq != place or event.before != before or not event.true:
                attempt = "restore the file from a backup; the artefacts themselves are verified one by one"
                raise DataError(
                    f"line {place} of the log was changed", where=str(self.path), attempt=attempt, fault="REG-008"
                )
            before = event.sha256

    def _prepare(self, root: Path) -> None:
        if self._version() == 0:
            descriptor = os.open(root / "creating", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._version() == 0:
                    self._make()
                    sync(root)
            finally:
                os.close(descriptor)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF", "cell_size_check=ON"):
            self._connection.execute(f"PRAGMA {pragma}")

    def _version(self) -> int:
        [[mark]], [[version]] = self.rows("PRAGMA application_id"), self.rows("PRAGMA user_version")
        if version == 0 and not self.rows("SELECT name FROM sqlite_master LIMIT 1"):
            return 0
        if mark != MARK:
            raise DataError(f"{FILE} is no registry of ours", where=str(self.path), attempt="another folder")
        if int(version or 0) > FORMAT:
            raise DataError(
                f"this registry has format {version}, and this version of simops knows {FORMAT}",
                where=str(self.path),
                attempt="pip install --upgrade simops",
                fault="DAT-012",
            )
        return int(version or 0)

    def _make(self) -> None:
        guards = "".join(
            f"CREATE TRIGGER {table}_{verb.lower()} BEFORE {verb} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} only grows'); END;\n"
            for table in _NAMES
            for verb in ("UPDATE", "DELETE")
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        marks = f"PRAGMA application_id={MARK}; PRAGMA user_version={FORMAT};"
        self._connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} {guards} {marks} COMMIT;")

    @contextmanager
    def _said(self) -> Generator[None]:
        """Say SQLite's errors in our own words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise refusal(OSError(errno.ENOSPC, ""), self.path, 4096) from error
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise DataError(f"cannot use {FILE}: {error}", where=str(self.path)) from error
            raise BusyError(
                f"another process has been writing to the registry for {PATIENCE_S:.0f} s",
                where=str(self.path),
                attempt="wait for it, or end it",
                fault="DAT-010",
            ) from error
        except sqlite3.DatabaseError as error:
            attempt = "restore it from a backup; the artefacts beside it are not touched"
            raise DataError(
                f"{FILE} is damaged: {error}", where=str(self.path), attempt=attempt, fault="DAT-003"
            ) from error
