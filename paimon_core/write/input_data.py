"""Input data of a write: Arrow data, DataFrames, and objects that export an Arrow C stream."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from paimon_core.errors import InvalidInputError

Data: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader


class ArrowStream(Protocol):
    """An object that exports its rows as an Arrow C stream: a DataFrame, a DuckDB relation, another table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the capsule of the stream."""


class ArrowBatch(Protocol):
    """An object that exports its rows as one Arrow array of structs."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        """Return the capsules of the schema and of the array."""


Rows: TypeAlias = ArrowStream | ArrowBatch
"""The objects that `Table.write` accepts, including `Data` and DataFrames."""

_FAILURES = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError)
_NO_VALUES = ("period", "interval")  # pandas dtypes that Arrow would store as numbers with another meaning


def arrow_data(rows: Rows) -> Data:
    """Return rows as Arrow data.

    DataFrames of pandas and Polars are in memory, and become tables. All other objects with ``__arrow_c_stream__``
    become readers, which hold one batch at a time and can be read once.

    In a pandas DataFrame NaN, NaT, NA and None are NULL, but NaN is a number in columns of pandas' Arrow types. A named
    index becomes columns; an unnamed index is left out. Categories become their values.
    Raises InvalidInputError for objects of other types, and for values that Arrow cannot hold, naming their column.
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
        f"rows must be a pyarrow Table, RecordBatch or RecordBatchReader, a DataFrame or another object with "
        f"__arrow_c_stream__, not {type(rows).__name__}; pa.Table.from_pylist() converts a list of dicts"
    )


def arrow_table(rows: Rows) -> pa.Table:
    """Return rows as one Arrow table in memory. Raises as `arrow_data`."""
    data = arrow_data(rows)
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    return pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data


def _is_a(rows: object, package: str, name: str) -> bool:
    """Return True if the rows' class, or a base class, has this name and package. Imports no package."""
    classes = type(rows).__mro__
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in classes)


def _stream(rows: Any) -> pa.RecordBatchReader:
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(
            f"cannot read the Arrow stream of this {type(rows).__name__} as rows: {error}"
        ) from error


def _of_polars(frame: Any) -> pa.Table:
    for name, kind in frame.schema.items():
        if str(kind) == "Object":  # Arrow would get the addresses of the objects
            raise InvalidInputError(
                f"column {name!r} holds Python objects, which no column type can store: cast it first"
            )
    return _converted(pa.table, frame, frame.select)


def _of_pandas(frame: Any) -> pa.Table:
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InvalidInputError(f"the data has column {repeated[0]!r} more than once: give every column one name")
    for name, kind in frame.dtypes.items():
        if getattr(kind, "name", "").startswith(_NO_VALUES):
            raise InvalidInputError(f"column {name!r} has dtype {kind}, which no column type can store: cast it first")
    named = [name is not None for name in frame.index.names]
    if any(named) and not all(named):
        raise InvalidInputError(
            f"only some levels of the index are named: {list(frame.index.names)}. Name all of them to write them as "
            "columns, or drop the index with reset_index(drop=True)"
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
        failing = next((name for name in frame.columns if not _converts(convert, column_of(name))), None)
        where = "" if failing is None else f"column {failing!r}: "
        raise InvalidInputError(f"{where}cannot convert the DataFrame to an Arrow table: {error}") from error


def _converts(convert: Callable[[Any], Any], frame: Any) -> bool:
    try:
        convert(frame)
    except _FAILURES:
        return False
    return True
