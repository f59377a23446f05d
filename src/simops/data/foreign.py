# pyright: basic
# pyarrow ships no types; this is the one file that asks it to read tables that somebody else wrote.
"""Columns of Parquet and CSV files that others wrote: numbers as they lie there, empty cells as NaN, words as words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from simops.core.errors import DataError
from simops.data import files, parquet

try:
    import pyarrow as pa
    import pyarrow.csv as pv
    import pyarrow.parquet as pq
except ModuleNotFoundError as missing:  # pragma: no cover
    raise parquet.ExtraError("tables need pyarrow", attempt="pip install 'simops[data]'") from missing

MAGIC = b"PAR1"
TABLE_BYTES = 2 * 2**30
"""What one table may take in memory."""
_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def columns(path: Path) -> dict[str, Any]:
    """Every column by its name without the blanks around it: an array of numbers, or a list of words."""
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror}", where=str(path), fault="DAT-004") from error
    if path.stat().st_size > TABLE_BYTES:
        raise DataError(f"{path.name} is too large to read at once", where=str(path), fault="SEC-010")
    table = _parquet(path) if head == MAGIC else _csv(path)
    names = [name.strip() for name in table.column_names]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{path.name} has two columns {twice!r}", where=str(path), fault="DAT-005")
    if not table.num_rows:
        raise DataError(f"{path.name} has no rows", where=str(path), fault="DAT-004")
    return {name: _cells(table.column(i), name, path) for i, name in enumerate(names)}


def _parquet(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            cells = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
            if max(cells * 8, sum(group.total_byte_size for group in groups)) > TABLE_BYTES:
                what = f"{path.name} would take more than {files.size(TABLE_BYTES)}"
                raise DataError(what, where=str(path), fault="SEC-010")
            return file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path.name} is not a readable Parquet file: {error}", where=str(path), fault="DAT-003"
        ) from error


def _csv(path: Path) -> pa.Table:
    try:
        with path.open("rb") as file:
            first = file.readline(1 << 20).decode("utf-8-sig")
        mark = max(",;\t", key=first.count)
        return pv.read_csv(
            path,
            read_options=pv.ReadOptions(use_threads=False),
            parse_options=pv.ParseOptions(delimiter=mark),
            convert_options=pv.ConvertOptions(strings_can_be_null=False),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        what = f"{path.name} is not a readable table: {str(error).splitlines()[0]}"
        raise DataError(
            what, where=str(path), attempt="comma separated values under one line of names", fault="DAT-003"
        ) from error


def _cells(column: pa.ChunkedArray, name: str, path: Path) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        if column.null_count:
            raise DataError(f"{path.name}: {name} has rows without a time", where=str(path), fault="DAT-007")
        return column.cast(pa.int64()).to_numpy() * np.int64(_NS[kind.unit])
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(column, name, path)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return column.to_numpy()  # integers with empty cells come as float64 with NaN
    if pa.types.is_boolean(kind):
        return np.array([np.nan if cell is None else float(cell) for cell in column.to_pylist()])
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy()
    return ["" if cell is None else str(cell) for cell in column.to_pylist()]


def _lists(column: pa.ChunkedArray, name: str, path: Path) -> Any:
    flat = pa.concat_arrays([chunk.flatten() for chunk in column.chunks] or [pa.array([], column.type.value_type)])
    if not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        return [str(cell) for cell in column.to_pylist()]
    rows = len(column)
    lengths = {0 if cell is None else len(cell) for cell in column.to_pylist()}
    if len(lengths) != 1:
        raise DataError(f"{path.name}: {name} has rows of different lengths", where=str(path), fault="DAT-007")
    return flat.to_numpy(zero_copy_only=False).reshape(rows, -1)
