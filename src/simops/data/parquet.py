# pyright: basic
# pyarrow ships no types; this is the one file that talks to it.
"""Named arrays to the bytes of a Parquet file and back: nothing else knows how Parquet is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simops.core.errors import DataError, ExtraError
from simops.core.signal import Array

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError as missing:
    raise ExtraError("datasets need pyarrow, which is not installed", attempt="pip install 'simops[data]'") from missing

Cells = Array | Sequence[str] | Sequence[bytes] | Sequence[Sequence[str]]


def encode(
    columns: Mapping[str, Cells],
    *,
    groups: Sequence[int] = (),
    metadata: Mapping[str, str] | None = None,
    statistics: Sequence[str] = (),
    typed: bool = False,
) -> memoryview:
    """Write columns as one Parquet file in memory, with a checksum on every page.

    `groups` are the rows of each row group; `statistics` the columns whose range each group tells;
    `typed` keeps Arrow's own types, which tell a list of fixed size from any list.
    """
    table = pa.table({name: _arrow(cells) for name, cells in columns.items()})
    if metadata:
        table = table.replace_schema_metadata(dict(metadata))
    encodings = {}
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_fixed_size_list(field.type) else field.type
        path = f"{field.name}.list.element" if pa.types.is_fixed_size_list(field.type) else field.name
        if pa.types.is_floating(kind):
            encodings[path] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_integer(kind):
            encodings[path] = "DELTA_BINARY_PACKED"
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        column_encoding=encodings,
        write_statistics=list(statistics),  # pyright: ignore[reportArgumentType]
        write_page_checksum=True,
        store_schema=typed or bool(metadata),  # without its schema Arrow drops the metadata too
    ) as writer:
        start = 0
        for rows in groups or (table.num_rows,):
            writer.write_table(table.slice(start, rows), row_group_size=max(rows, 1))
            start += rows
    return memoryview(sink.getvalue())


def decode(
    data: bytes | memoryview, columns: Sequence[str] | None = None, *, groups: Sequence[int] | None = None
) -> dict[str, Any]:
    """Read columns back, page checksums verified: numpy arrays; lists for text; (n, size) for lists of numbers."""
    try:
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            table = (
                file.read(columns, use_threads=False)
                if groups is None
                else file.read_row_groups(list(groups), columns, use_threads=False)
            )
            return {name: _numpy(table.column(name)) for name in (columns or table.column_names)}
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(f"not a readable Parquet file: {error}", fault="DAT-003") from error


def kinds(data: bytes | memoryview) -> dict[str, str]:
    """Column names and the type each is stored as, in order."""
    try:
        schema = pq.read_schema(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {error}", fault="DAT-003") from error
    return {field.name: str(field.type) for field in schema}


def group_of_row(data: bytes | memoryview, row: int) -> tuple[int, int]:
    """Which row group holds `row`, and the first row of that group."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    start = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if row < start + rows:
            return group, start
        start += rows
    raise DataError(f"row {row} is beyond the {start} rows of the file", fault="DAT-005")


def weight(data: bytes | memoryview) -> int:
    """About how many bytes of memory reading the whole file would take; a small file may hold a lot."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {error}", fault="DAT-003") from error
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    cells = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    return max(cells * 8, sum(group.total_byte_size for group in groups))


def _arrow(cells: Cells) -> pa.Array:
    if not isinstance(cells, np.ndarray):
        return pa.array(cells)
    if cells.ndim == 1:
        return pa.array(cells, from_pandas=False)
    flat = pa.array(np.ascontiguousarray(cells).reshape(-1), from_pandas=False)
    return pa.FixedSizeListArray.from_arrays(flat, cells.shape[1])


def _numpy(column: pa.ChunkedArray) -> Any:
    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        flat = pa.concat_arrays([chunk.flatten() for chunk in column.chunks] or [pa.array([], kind.value_type)])
        if pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type):
            rows = max(len(column), 1)
            if len(flat) % rows:
                raise DataError("a list column has rows of different lengths", fault="DAT-007")
            return flat.to_numpy(zero_copy_only=False).reshape(len(column), -1)
        return column.to_pylist()
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        if column.null_count:
            raise DataError("a column of numbers has empty cells", fault="DAT-007")
        return column.to_numpy()
    return column.to_pylist()
