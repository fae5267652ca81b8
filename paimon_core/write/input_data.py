"""The kinds of rows that a caller may write: Arrow data, frames, and everything that exports Arrow's C stream."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from paimon_core.errors import InvalidInputError

Data: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader


class ArrowStream(Protocol):
    """An object that exports its rows as an Arrow C stream: a DataFrame, a relation of DuckDB, another table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the capsule of the stream."""


class ArrowBatch(Protocol):
    """An object that exports its rows as one Arrow array of structs."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        """Return the capsules of the schema and of the array."""


Rows: TypeAlias = ArrowStream | ArrowBatch
"""Everything that `Table.write` takes; `Data` and DataFrames are such objects."""

_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)
_NO_VALUES = ("period", "interval")  # dtypes of pandas that Arrow stores as numbers of another meaning


def arrow_data(rows: Rows) -> Data:
    """Return rows as Arrow data.

    Frames of pandas and Polars are in memory, and become tables. All other objects with ``__arrow_c_stream__`` become
    readers, which hold one batch at a time and can be read once.

    In a pandas DataFrame NaN, NaT, NA and None are NULL, but NaN is a number in columns of pandas' Arrow types. An
    index with names becomes columns; one without is left out. Categories become their values.
    Raises InvalidInputError for values that are no rows, and naming the column for values that Arrow cannot hold.
    """
    if isinstance(rows, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return rows
    if _is_a(rows, "pandas", "DataFrame"):
        return _of_pandas(rows)
    if _is_a(rows, "polars", "DataFrame"):
        return _of_polars(rows)
    if _is_a(rows, "polars", "LazyFrame"):
        raise InvalidInputError("a LazyFrame has no rows before it runs: write frame.collect()")
    if hasattr(rows, "__arrow_c_stream__"):
        return _stream(rows)
    if hasattr(rows, "__arrow_c_array__"):
        return pa.record_batch(rows)
    raise InvalidInputError(
        f"rows are a pyarrow Table, RecordBatch or RecordBatchReader, a DataFrame or another object with "
        f"__arrow_c_stream__, not {type(rows).__name__}: pa.Table.from_pylist() takes a list of dicts"
    )


def arrow_table(rows: Rows) -> pa.Table:
    """Return rows as one Arrow table in memory. Raises as `arrow_data`."""
    data = arrow_data(rows)
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def _is_a(rows: object, package: str, name: str) -> bool:
    """Return True if rows are of a class of a package that this module does not import."""
    classes = type(rows).__mro__
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in classes)


def _stream(rows: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"the stream of this {type(rows).__name__} has no rows of columns that Arrow knows: {error}"
        ) from error


def _of_polars(frame: Any) -> pa.Table:
    for name, kind in frame.schema.items():
        if str(kind) == "Object":  # Arrow would get the addresses of the objects
            raise InvalidInputError(
                f"column {name!r} holds Python objects, which no column type stores: cast it before"
            )
    return _converted(pa.table, frame, frame.select)


def _of_pandas(frame: Any) -> pa.Table:
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InvalidInputError(f"the data has column {repeated[0]!r} more than once: give every column one name")
    for name, kind in frame.dtypes.items():
        if getattr(kind, "name", "").startswith(_NO_VALUES):
            raise InvalidInputError(f"column {name!r} is of dtype {kind}, which no column type stores: cast it before")
    named = [name is not None for name in frame.index.names]
    if any(named) and not all(named):
        raise InvalidInputError(
            f"some levels of the index have names and some have none, {list(frame.index.names)}: name all of them to "
            "write them as columns, or drop the index with reset_index(drop=True)"
        )
    both = [name for name in frame.index.names if name is not None and name in frame.columns]
    if both:
        raise InvalidInputError(
            f"{both[0]!r} is the name of a column and of the index: drop the index with reset_index(drop=True)"
        )

    def convert(part: Any) -> pa.Table:
        return pa.Table.from_pandas(part, preserve_index=all(named)).replace_schema_metadata()

    return _converted(convert, frame, lambda name: frame[[name]])


def _converted(convert: Callable[[Any], Any], frame: Any, column_of: Callable[[Any], Any]) -> Any:
    """Return ``convert(frame)``. Raises InvalidInputError naming the column that Arrow cannot hold."""
    try:
        return convert(frame)
    except _FAILURES as error:
        guilty = next((name for name in frame.columns if not _converts(convert, column_of(name))), None)
        where = "" if guilty is None else f"column {guilty!r}: "
        raise InvalidInputError(f"{where}the frame cannot become an Arrow table: {error}") from error


def _converts(convert: Callable[[Any], Any], frame: Any) -> bool:
    try:
        convert(frame)
    except _FAILURES:
        return False
    return True
