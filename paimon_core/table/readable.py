"""ReadableTable: rows as Arrow, pandas, Polars and DuckDB; the base class of tables and system tables.

`ReadableRows` has the part that format tables share with them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_core.predicate.filter import Filter
from paimon_core.read.frames import RepeatableRead, duckdb_relation, pandas_frame, polars_frame
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.time_travel import TimeTravelArguments
from paimon_core.store.file_store import FileStore
from paimon_core.store.location import TableLocation
from paimon_core.table.selection import Selection

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from typing_extensions import Self, Unpack


class ReadableRows(ABC):
    """Rows with a schema, which can be read in several ways."""

    @property
    @abstractmethod
    def schema(self) -> TableSchema:
        """The columns of the rows."""

    @property
    def arrow_schema(self) -> pa.Schema:
        """Column names and Arrow types of a read without projection."""
        return self.schema.arrow

    @abstractmethod
    def _read(self, selection: Selection) -> RepeatableRead:
        """Return the selected rows of the snapshot that is chosen now, as a read that can be repeated."""

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> pa.Table:
        """Read rows into one Arrow table in memory; :meth:`to_batches` reads in bounded memory.

        Args:
            columns: names of columns, in the order of the result; `None`: all columns.
            filter: text or predicate; `None`: all rows.
            limit: the maximum number of rows; `None`: all rows.
            at: the snapshot, as described at the class; by default the newest.

        Raises OutOfRangeError for a snapshot that has expired. With an option ``incremental-*`` the rows are the rows
        that were added or updated between its ends. :meth:`Table.changes` also returns deleted rows: here they raise
        UnsupportedError, except between two tags.
        """
        return self._read(Selection.of(columns, filter, limit, at)).table()

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> Iterator[pa.RecordBatch]:
        """Read rows as a stream of record batches, in bounded memory. Arguments as for `to_arrow`."""
        return self._read(Selection.of(columns, filter, limit, at)).batches()

    def to_arrow_batch_reader(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> pa.RecordBatchReader:
        """Return rows as an Arrow reader, in bounded memory, for every library that reads Arrow's C stream.

        The call chooses the snapshot. The reader starts work at its first batch, and can be read once. The table itself
        is a stream of all its rows that can be read many times: ``polars.from_arrow(table)``. Arguments as for
        `to_arrow`.
        """
        return self._read(Selection.of(columns, filter, limit, at)).reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return all rows of the newest snapshot as a new Arrow C stream, in bounded memory."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        *,
        dtype_backend: str | None = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> "pd.DataFrame":
        """Read rows into a pandas DataFrame without changing any number.

        Args:
            columns: names of columns, in the order of the result; `None`: all columns.
            filter: text or predicate; `None`: all rows.
            limit: the maximum number of rows; `None`: all rows.
            dtype_backend: `None`: numpy's types, but integers and booleans in pandas' nullable types. "numpy_nullable":
                also floats and texts in nullable types. "pyarrow": Arrow types, in which NULL is not NaN.
            at: the snapshot, as described at the class.

        Nested columns have Arrow types in each case. Raises MissingDependencyError without pandas.
        """
        return pandas_frame(self.to_arrow(columns, filter, limit, **at), dtype_backend)

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> "pl.DataFrame":
        """Read rows into a Polars DataFrame. Arguments as for `to_arrow`.

        Raises MissingDependencyError without Polars.
        """
        return polars_frame(self.to_arrow(columns, filter, limit, **at))

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        *,
        connection: "duckdb.DuckDBPyConnection | None" = None,
        **at: "Unpack[TimeTravelArguments]",
    ) -> "duckdb.DuckDBPyRelation":
        """Return rows as a relation of DuckDB. Each query reads the rows again, batch by batch.

        All queries read the snapshot that this call chooses; they fail after it has expired. ``columns`` and ``filter``
        skip files and rows. Conditions of a query do not: DuckDB applies them to the rows that it receives.

        Args:
            columns: names of columns, in the order of the result; `None`: all columns.
            filter: text or predicate; `None`: all rows.
            limit: the maximum number of rows; `None`: all rows.
            connection: the connection of DuckDB; `None`: its default connection.
            at: the snapshot, as described at the class.

        Raises UnsupportedError for TIMESTAMP_LTZ with nanoseconds, which DuckDB would truncate, and
        MissingDependencyError without DuckDB.
        """
        return duckdb_relation(self._read(Selection.of(columns, filter, limit, at)), connection)


class ReadableTable(ReadableRows):
    """Rows with a schema: a table, a view or a branch of one, or a system table.

    Every read takes names of ``columns``, a ``filter`` such as ``"a > 1 AND b.c IN ('x')"`` or a predicate made with
    ``paimon_core.col``, a ``limit``, and at most one argument that chooses the snapshot: ``snapshot_id=7``,
    ``tag="v1"``, ``timestamp=`` (epoch milliseconds, a datetime, or "2026-01-31 12:00:00" in local time),
    ``version=`` (the name of a tag, else a snapshot id) or ``watermark=``. Without this argument, a read returns the
    newest snapshot.

    A path such as ``b.c`` names the field ``c`` of the struct ``b``. Names with dots need backticks in a path, but in
    ``columns`` and in ``col`` a column that is called ``b.c`` comes first.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store

    @property
    def path(self) -> str:
        """The directory of the table."""
        return self._store.root

    @property
    def store(self) -> FileStore:
        """Path, schema, options and I/O as one value, for engines."""
        return self._store

    @property
    @abstractmethod
    def location(self) -> TableLocation:
        """The directory, the branch and the view; its text opens the same table again."""

    @abstractmethod
    def with_store(self, store: FileStore) -> "Self":
        """Return the same table with another form of its store, for engines."""

    def with_options(self, options: Mapping[str, str | None]) -> "Self":
        """Return the table with additional dynamic options, which override its options; `None` removes an option."""
        return self.with_store(self._store.with_options(options))
