"""The rows of a read as a repeatable stream, and as pandas, Polars and DuckDB frames.

These packages are optional. Each is imported by the function that needs it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from paimon_core.errors import InvalidInputError, MissingDependencyError, UnsupportedError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

BACKENDS = (None, "numpy_nullable", "pyarrow")


@dataclass(frozen=True)
class RepeatableRead:
    """The rows of one read as an Arrow C stream. Each export reads them again, from the same snapshot."""

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    """Return all rows, from the first; each batch has exactly `schema`."""
    in_parallel: Callable[[], Sequence[pa.RecordBatch]] | None = None
    """Return all rows at once, read by several threads; `None`: `batches` is the only way."""

    def table(self) -> pa.Table:
        """Return all rows in memory."""
        batches = self.batches() if self.in_parallel is None else self.in_parallel()
        return pa.Table.from_batches(batches, self.schema)

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of the rows, which starts the read at its first batch."""
        return pa.RecordBatchReader.from_batches(self.schema, self._started())

    def _started(self) -> Iterator[pa.RecordBatch]:
        yield from self.batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the capsule of a new stream, cast to the requested schema if Arrow can."""
        return self.reader().__arrow_c_stream__(requested_schema)


def pandas_frame(rows: pa.Table, dtype_backend: str | None = None) -> "pd.DataFrame":
    """Return rows as a pandas DataFrame that holds every number unchanged.

    Args:
        rows: the rows to convert.
        dtype_backend: `None`: numpy types, but pandas' nullable types for integers and booleans, which numpy cannot
            combine with NULL; in float columns NULL and NaN are both NaN. "numpy_nullable": nullable types for floats
            and texts as well. "pyarrow": Arrow types for all columns. Nested columns always have Arrow types.
    """
    if dtype_backend not in BACKENDS:
        raise InvalidInputError(f"dtype_backend must be None, 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}")
    pandas = _pandas()
    exact = {
        pa.bool_(): pandas.BooleanDtype(),
        pa.int8(): pandas.Int8Dtype(),
        pa.int16(): pandas.Int16Dtype(),
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
    }
    if dtype_backend == "numpy_nullable":
        exact |= {
            pa.float32(): pandas.Float32Dtype(),
            pa.float64(): pandas.Float64Dtype(),
            pa.string(): pandas.StringDtype(),
        }

    def dtype(kind: Any) -> Any:
        if dtype_backend == "pyarrow" or pa.types.is_nested(kind):
            return pandas.ArrowDtype(kind)
        return exact.get(kind)

    return rows.to_pandas(types_mapper=dtype, split_blocks=True)


def polars_frame(rows: pa.Table) -> "pl.DataFrame":
    """Return rows as a Polars DataFrame; most columns are not copied."""
    return _polars().from_arrow(rows, rechunk=False)


def duckdb_relation(
    read: RepeatableRead, connection: "duckdb.DuckDBPyConnection | None" = None
) -> "duckdb.DuckDBPyRelation":
    """Return rows as a DuckDB relation, which reads them again for each query.

    ``connection`` `None`: DuckDB's default connection. Raises UnsupportedError for a TIMESTAMP_LTZ with a precision
    above 6, which DuckDB would truncate.
    """
    for name in read.schema.names:
        if _has_instants_of_nanoseconds(read.schema.field(name).type):
            raise UnsupportedError(
                f"column {name!r} has instants with nanoseconds, which DuckDB would truncate to microseconds: "
                "leave the column out, or use to_polars()"
            )
    module = _duckdb()
    return module.from_arrow(read, connection=connection or module.default_connection())


def _has_instants_of_nanoseconds(kind: Any) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.unit == "ns" and kind.tz is not None
    return any(_has_instants_of_nanoseconds(kind.field(i).type) for i in range(kind.num_fields))


def _pandas() -> Any:
    try:
        import pandas  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise _missing("to_pandas", "pandas", error) from error
    return pandas


def _polars() -> Any:
    try:
        import polars  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise _missing("to_polars", "polars", error) from error
    return polars


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        raise _missing("to_duckdb", "duckdb", error) from error
    return duckdb


def _missing(method: str, package: str, error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(f"{method} needs {package}: pip install 'pyspark-paimon[frames]' ({error})")
