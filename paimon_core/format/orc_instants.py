"""ORC timestamps outside the years 1677 to 2262, which Arrow's ORC reader cannot hold as nanoseconds.

pyorc reads these columns as integers of microseconds.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyorc

from paimon_core.errors import UnsupportedError
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType, DataField

_CHUNK_ROWS = 1 << 16
_SAFE_MICROS = (1 << 63) // 1000 - 86_400_000_000


def wide_timestamps(fields: Sequence[DataField], path: str) -> list[DataField]:
    """Return the timestamp columns of a file in which at least one holds a value beyond 64-bit nanoseconds.

    Raises UnsupportedError if the value may be in a column of nanoseconds or inside a nested column.
    """
    wide = [f for f in fields if isinstance(f.type, AtomicType) and f.type.root in ("TIMESTAMP", "TIMESTAMP_LTZ")]
    if not wide or any(to_arrow(f.type).unit == "ns" for f in wide):
        raise UnsupportedError(
            f"{path or 'the file'} holds a timestamp outside the years 1677 to 2262 in a column of nanoseconds or "
            "inside a nested column; change the column's precision to 6, or leave it out"
        )
    return wide


def beyond_nanoseconds(source: Any, fields: Sequence[DataField]) -> bool:
    """Return True if these columns may hold timestamps, at any depth, that do not fit nanoseconds since 1970.

    The statistics of the file decide, with a margin of a day for time zones. Without statistics, any value is possible.
    """
    source.seek(0)
    reader = pyorc.Reader(source, converters=_CONVERTERS)
    schema = reader.schema  # old versions of pyorc make it at each access
    names = list(schema.fields)
    firsts = [schema[name].column_id for name in names]  # the ids of nested columns follow
    requested = {f.name for f in fields}
    columns = zip(names, firsts, [*firsts[1:], None], strict=True)
    return any(_column_beyond(reader, first, end) for name, first, end in columns if name in requested)


def _column_beyond(reader: Any, first: int, end: int | None) -> bool:
    """Return True if a column with ``first <= id < end`` may hold a timestamp outside the range of nanoseconds.

    end: `None`: all columns from ``first`` on.
    """
    column_id = first
    while end is None or column_id < end:
        try:
            stats = reader[column_id].statistics
        except IndexError:
            return False
        if stats["kind"] in _CONVERTERS and stats["number_of_values"]:
            low, high = stats.get("minimum"), stats.get("maximum")
            if low is None or high is None or low < -_SAFE_MICROS or high > _SAFE_MICROS:
                return True
        column_id += 1
    return False


def read_micros(source: Any, columns: Sequence[DataField], start: int) -> list[pa.ChunkedArray]:
    """Return the exact timestamps of these columns from row ``start`` on, in microseconds.

    Memory: the whole columns. Time: one Python integer for each value.
    """
    source.seek(0)
    names = list(pyorc.Reader(source).schema.fields)
    source.seek(0)
    reader = pyorc.Reader(
        source,
        column_indices=[names.index(f.name) for f in columns],  # a name may also be the path of a nested field
        struct_repr=pyorc.StructRepr.DICT,
        converters=_CONVERTERS,
    )
    if start:
        reader.seek(start)
    chunks: list[list[pa.Array]] = [[] for _ in columns]
    while rows := reader.read(_CHUNK_ROWS):
        for field, into in zip(columns, chunks, strict=True):
            into.append(pa.array([row[field.name] for row in rows], pa.int64()).view(pa.timestamp("us")))
    return [pa.chunked_array(parts, pa.timestamp("us")) for parts in chunks]


def resume(
    others: Iterator[pa.RecordBatch], columns: Sequence[DataField], micros: Sequence[pa.ChunkedArray], start: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows from ``start`` on with all columns.

    Args:
        others: all rows, with the other columns.
        columns: the fields of ``micros``.
        micros: their values from row ``start`` on.
        start: the position of the first row to yield.
    """
    end = -start  # counted from row `start`
    for batch in others:
        begin, end = end, end + batch.num_rows
        if end <= 0:
            continue
        part = batch.slice(max(0, -begin))
        added = [c.slice(max(0, begin), part.num_rows).combine_chunks() for c in micros]
        names = [*part.schema.names, *(f.name for f in columns)]
        yield pa.RecordBatch.from_arrays([*part.columns, *added], names=names)


class _Micros(pyorc.converters.TimestampConverter):  # type: ignore[misc, unused-ignore]
    """A converter of timestamps to integers of microseconds."""

    @staticmethod
    def from_orc(seconds: int, nanoseconds: int, timezone: Any) -> int:
        return seconds * 1_000_000 + nanoseconds // 1000


_CONVERTERS = {pyorc.TypeKind.TIMESTAMP: _Micros, pyorc.TypeKind.TIMESTAMP_INSTANT: _Micros}
