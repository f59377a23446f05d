# pyright: basic
# duckdb's answers are untyped; this is the one file that talks to it.
"""SQL over a dataset: fast, read-only, and blind to everything but the dataset's own verified files."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from simops.core.errors import DataError, ExtraError
from simops.data import frames, recordings
from simops.data.store import Dataset

try:
    import duckdb
except ModuleNotFoundError as missing:
    raise ExtraError("queries need duckdb, which is not installed", attempt="pip install 'simops[data]'") from missing

VIEWS = ("steps", "episodes", "frames")


class Answer(NamedTuple):
    """What a query gave."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def query(
    path: Path | str, sql: str, *, verify: bool = True, memory: str = "1GB", threads: int = 2, limit_s: float = 60.0
) -> Answer:
    """Answer one SELECT over the views `steps`, `episodes` and `frames`; of recordings, over `recordings` and streams.

    The files of every view that `sql` names are verified first; `verify=False` leaves that out, for a look
    that nothing depends on. Nothing else can be read, and nothing written.
    """
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    held = recordings.Recordings.open(path) if recordings.there(Path(path)) else None
    if held is not None:
        tables = held.tables(verify=verify)
        views = {
            name: [str(file.resolve()) for file in found] for name, found in tables.items() if name.lower() in words
        }
    else:
        dataset = Dataset.open(path)
        views = {name: found for name in VIEWS if name in words and (found := _files(dataset, name, verify=verify))}
    with _connected(views, held, memory=memory, threads=threads) as connection:
        return _answer(connection, sql, limit_s)


@final
class Standing:
    """A dataset as it is now, to be asked again and again: what its files hold is looked up once, and not verified."""

    def __init__(
        self, dataset: Dataset, *, shards: Sequence[int] | None = None, memory: str = "1GB", threads: int = 2
    ) -> None:
        """Ask `dataset`, or some of its shards alone, by their place."""
        kept = dataset.shards if shards is None else [dataset.shards[at] for at in shards]
        folder = dataset.path.resolve()
        views = {name: [str(folder / name / f"{one.name}.parquet") for one in kept] for name in ("steps", "episodes")}
        self._connection = _connected(
            {name: found for name, found in views.items() if found}, None, memory=memory, threads=threads
        )

    def ask(self, sql: str, *, limit_s: float = 60.0) -> Answer:
        """Answer one SELECT; from any thread."""
        with self._connection.cursor() as cursor:
            return _answer(cursor, sql, limit_s)

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()


def _connected(
    views: Mapping[str, Sequence[str]], held: recordings.Recordings | None, *, memory: str, threads: int
) -> duckdb.DuckDBPyConnection:
    """A connection that sees these files and nothing else, and stays so."""
    config: dict[str, Any] = {
        "threads": str(threads),
        "memory_limit": memory,
        "temp_directory": "",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
    }
    connection = duckdb.connect(":memory:", config=config)
    try:
        connection.execute("SET parquet_metadata_cache = true")
        connection.execute("SET allowed_paths = ?", [[file for found in views.values() for file in found]])
        for name, found in views.items():
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in found)
            read = f"read_parquet([{listed}], union_by_name = {'true' if held else 'false'})"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {read}")  # noqa: S608
        if held is not None:
            _tell(connection, held)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        connection.close()
        raise DataError(str(error).strip(), attempt="simops data check") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _tell(connection: duckdb.DuckDBPyConnection, held: recordings.Recordings) -> None:
    """One row a recording, as the table `recordings`."""
    columns = "episode BIGINT, name TEXT, robot TEXT, session TEXT, start_ns BIGINT, duration_s DOUBLE, rows BIGINT"
    connection.execute(f"CREATE TABLE recordings ({columns})")
    rows = [(o.number, o.name, o.robot, o.session, o.start_ns, o.duration_s, o.rows) for o in held.episodes]
    connection.executemany("INSERT INTO recordings VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def _files(dataset: Dataset, view: str, *, verify: bool) -> list[str]:
    if view == "frames":
        return [str(path.resolve()) for path in frames.tables(dataset.path, verify=verify)]
    if verify:
        for one in dataset.shards:
            dataset.read(one, view)  # pyright: ignore[reportArgumentType]
    return [str((dataset.path / view / f"{one.name}.parquet").resolve()) for one in dataset.shards]


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, limit_s: float) -> Answer:
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise DataError("a query is one SELECT; nothing here can be written", where=sql)
        clock = threading.Timer(limit_s, connection.interrupt)
        clock.start()
        try:
            result = connection.execute(statements[0])
            return Answer(tuple(column[0] for column in result.description or ()), result.fetchall())
        finally:
            clock.cancel()
    except duckdb.InterruptException as error:
        raise DataError(f"the query took more than {limit_s:g} s", where=sql, attempt="a smaller question") from error
    except duckdb.Error as error:
        raise DataError(str(error).strip(), where=sql, attempt="DESCRIBE steps, or DESCRIBE episodes") from error
