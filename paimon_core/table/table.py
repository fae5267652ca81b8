"""The table of the public interface. Each method is one read or one change, done by the packages below."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, overload

import pyarrow as pa

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.measure import operation_metrics
from paimon_core.commit.overwrite import DYNAMIC
from paimon_core.commit.overwrite_partitions import drop_partitions, overwrite_partitions, replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.commit.table_commit import TableCommit
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.advice.advise import advise, health
from paimon_core.inspect.advice.report import Advice, TableHealth
from paimon_core.inspect.explain.explain import DEFAULT_LISTED, execute, explain
from paimon_core.inspect.explain.explanation import Explanation
from paimon_core.inspect.html.render import notebook_html, rows_html, summary_html
from paimon_core.inspect.html.repr_text import summary
from paimon_core.inspect.html.table_summary import TableSummary, name_of, summary_of
from paimon_core.inspect.system_tables.kind import SystemTableKind
from paimon_core.inspect.system_tables.system_read import SystemRead
from paimon_core.inspect.system_tables.table_registry import system_table_kind
from paimon_core.inspect.verify.repair import RepairReport, repair
from paimon_core.inspect.verify.verify import verify
from paimon_core.inspect.verify.verify_report import VerifyReport
from paimon_core.migration.add_files import AddedFiles, add_files
from paimon_core.operations.compaction.after_commit import after_commit
from paimon_core.operations.compaction.restore import restore
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.history.expire_snapshots import Expired
from paimon_core.operations.history.orphan_files import OrphanFiles
from paimon_core.operations.history.read_guard import protected_read
from paimon_core.operations.history.rollback import rollback, target_of
from paimon_core.operations.history.table_branches import TableBranches
from paimon_core.operations.history.table_consumers import TableConsumers
from paimon_core.operations.history.table_tags import TableTags
from paimon_core.operations.jobs.execute import LOCAL, Progress, Runner
from paimon_core.operations.partitions.partitions_done import record_done_after_commit
from paimon_core.operations.row_changes.data_evolution import update_columns
from paimon_core.operations.row_changes.delete import delete_rows
from paimon_core.operations.table_maintenance import TableMaintenance
from paimon_core.options.lsm import LOOKUP_CACHE_MAX_MEMORY_SIZE
from paimon_core.options.scan import INCREMENTAL_BETWEEN_SCAN_MODE, SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_core.options.snapshot import DYNAMIC_PARTITION_OVERWRITE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.predicate.rewrite import columns as columns_of
from paimon_core.read.changed_rows import ChangeRead, change_splits, changes, changes_schema
from paimon_core.read.frames import RepeatableRead, duckdb_relation, pandas_frame, polars_frame
from paimon_core.read.key_cache import KeyCache
from paimon_core.read.lookup import Lookup, key_table
from paimon_core.read.stream import Stream
from paimon_core.read.table_read import TableRead
from paimon_core.scan.fallback import branch_splits, reads_branches
from paimon_core.scan.interval import Interval, asks_for_changes, interval_between, interval_of
from paimon_core.scan.projection import project
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import without_start
from paimon_core.scan.stream_scan import StreamScan
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Changes
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.snapshot.tags import Tag
from paimon_core.snapshot.time_travel import NEWEST, TimeTravel
from paimon_core.snapshot.time_travel import OPTIONS as TIME_TRAVEL_OPTIONS
from paimon_core.store.create import create_table
from paimon_core.store.current_schema import check_opened
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR, TableLocation
from paimon_core.types.arrow import arrow_schema
from paimon_core.write.input_data import Data, Rows, arrow_data, arrow_table
from paimon_core.write.merge_schema import with_columns_of
from paimon_core.write.table_write import ONLY_WRITER, TableWrite, WriterRole

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

Keys: TypeAlias = Sequence[Mapping[str, object]] | Rows
READERS = 2  # splits decoded at a time by to_arrow; each decodes its columns in parallel as well
_WRITES = 5  # attempts to write rows when others commit first; a stream of batches can be read once only
_NOTEBOOK_ROWS = 20  # of a system table
_VIEW = SEPARATOR + READ_OPTIMIZED


class Table:
    """A table in a directory. Cheap to make; holds no state but a key cache; methods read the newest snapshot.

    ``when`` in the methods below is at most one of ``snapshot_id=7``, ``tag="v1"``, ``timestamp=`` (epoch milliseconds,
    a datetime, or "2026-01-31 12:00:00" in local time), ``version=`` (tag name, else snapshot id), ``watermark=``.
    A filter is text such as ``"a > 1 AND b IN ('x')"`` or a predicate made with ``paimon_core.col``.
    """

    def __init__(self, store: FileStore, *, read_optimized: bool = False) -> None:
        self._store, self._read_optimized = store, read_optimized
        self._key_cache = KeyCache(store.options.value(LOOKUP_CACHE_MAX_MEMORY_SIZE))
        self._lookup: Lookup | None = None

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[FileStore, bool]]:
        """Pickle without the caches."""
        return _unpickled, (self._store, self._read_optimized)

    # ---- opening and creating

    @staticmethod
    def open(
        path: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> "Table":
        """Open the table in the directory ``path``.

        ``path$branch_b`` is its branch ``b``, ``path$ro`` its :meth:`read_optimized` view, ``path$files`` and others
        are its system tables, which can only be read; ``path$branch_b$files`` is that of the branch.

        Args:
            path: a local path or a URL such as "s3://bucket/t".
            storage_options: of fsspec, or Paimon's options such as "s3.endpoint"; `None`: those of the environment.
            options: dynamic options for this object only.
            branch: of the table; `None`: the one that the path names, else the main branch.

        Raises NotFoundError if ``path`` holds no table, InvalidInputError for an unknown or immutable option, and for
        an unknown system table.
        """
        location = TableLocation.parse(path)
        named = location.branch
        if branch is not None and named is not None and named != branch:
            raise InvalidInputError(f"branch is given as {branch!r}, but the path {path!r} names {named!r}: give one")
        store = FileStore.open(location.path, storage_options or {}, options or {}, branch or named or "main")
        return viewed(Table(store), location.system_table)

    @staticmethod
    def create(
        path: str,
        schema: Schema,
        storage_options: Mapping[str, object] | None = None,
        *,
        ignore_if_exists: bool = False,
    ) -> "Table":
        """Create a table at ``path`` and open it.

        Args:
            path: the directory of the table.
            schema: columns, keys, partitions and options.
            storage_options: as of `open`.
            ignore_if_exists: True: open the table that exists, whatever its schema.

        Raises AlreadyExistsError for an existing table, InvalidInputError for a path of a branch or a view and for a
        schema that contradicts itself, UnsupportedError for a feature that the engine lacks.
        """
        location = TableLocation.parse(path)
        if location.system_table is not None:
            view = SEPARATOR + location.system_table
            raise InvalidInputError(f"{path!r} names a view of a table, and cannot be created: leave {view!r} out")
        if location.branch is not None:
            raise InvalidInputError(
                f"{path!r} names branch {location.branch!r} of a table: make the table, then the branch"
            )
        try:
            create_table(FileIO.of(path, storage_options or {}), path, schema)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise
        return Table.open(path, storage_options)

    def with_options(self, options: Mapping[str, str | None]) -> "Table":
        """Return this table with dynamic options on top of its own; a value `None` removes an option."""
        return with_store(self, self._store.with_options(options))

    def read_optimized(self) -> "Table":
        """Return the view ``$ro``, which is fast to read, possibly late, and cannot be written.

        With a primary key, the view has the rows that the last full compaction left, without merging. Without a
        primary key, the view has all rows.
        """
        return Table(self._store, read_optimized=True)

    # ---- properties

    @property
    def path(self) -> str:
        """The directory of the table."""
        return self._store.root

    @property
    def location(self) -> TableLocation:
        """The directory, the branch and the view; its text opens the same again."""
        branch, view = self._store.branch, READ_OPTIMIZED if self._read_optimized else None
        return TableLocation(self.path, None if branch == MAIN_BRANCH else branch, view)

    @property
    def store(self) -> FileStore:
        """Path, schema, options and I/O as one value, for engines."""
        return self._store

    @property
    def schema(self) -> TableSchema:
        """The newest schema, dynamic options included."""
        return self._store.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """Column names and Arrow types of a read without projection."""
        return self._store.schema.arrow

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots that have not expired, oldest first."""
        return list(self._store.snapshots.all())

    def snapshot(self, **when: object) -> Snapshot | None:
        """Return the snapshot that ``when`` selects, by default the newest. `None`: the table has no commit."""
        return self._travel(when)[1]

    def operation_metrics(self, **when: object) -> dict[str, int]:
        """Return what the commit of a snapshot (``when``; by default the newest) added and deleted: files, rows, ...

        The counts come from manifests, so every snapshot has them, whichever engine made it; a tag of an expired one
        has none (OutOfRangeError). The names are those of `paimon_core.metrics.CommitMetrics`, which also measures
        time. An empty table has no counts.
        """
        store, snapshot = self._travel(when)
        return {} if snapshot is None else operation_metrics(store, snapshot)

    # ---- reading

    def to_arrow(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> pa.Table:
        """Read rows into one Arrow table in memory; :meth:`to_batches` reads in bounded memory.

        Args:
            columns: names of columns, in this order; `None`: all.
            filter: text or predicate; `None`: all rows.
            limit: at most this many rows; `None`: all.
            when: as described at the class; by default the newest snapshot.

        Raises OutOfRangeError for a snapshot that has expired. With an option ``incremental-*`` the rows are those that
        were added or updated between its ends; see :meth:`changes`, which has deleted rows, too: here they raise
        UnsupportedError, except between two tags.
        """
        if self._reads_changes(when) or self._reads_branches(when):
            read = self._repeatable(columns, filter, limit, when)
            return pa.Table.from_batches(read.batches(), read.schema)
        scan, reader = self._scan_and_reader(columns, filter, limit, when)
        with protected_read(scan.store, scan.snapshot):
            splits = scan.plan().splits
            if limit is not None:
                return pa.Table.from_batches(_limited(_chained(reader, splits), limit), reader.schema)
            parts = parallel_map(lambda split: list(reader.to_batches(split)), splits, threads=READERS)
            return pa.Table.from_batches([batch for part in parts for batch in part], reader.schema)

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> Iterator[pa.RecordBatch]:
        """Read rows as a stream of record batches, in bounded memory. Arguments are those of `to_arrow`."""
        return self._repeatable(columns, filter, limit, when).batches()

    def to_arrow_batch_reader(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> pa.RecordBatchReader:
        """Return rows as an Arrow reader, in bounded memory; every library that knows Arrow's C stream takes it.

        The snapshot is chosen now, and the reader begins to work at its first batch; it can be read once. The table
        itself is such a stream of all its rows, which can be read again and again: ``polars.from_arrow(table)``.
        Arguments are those of `to_arrow`.
        """
        return self._repeatable(columns, filter, limit, when).reader()

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
        **when: object,
    ) -> "pd.DataFrame":
        """Read rows into a pandas DataFrame, in which no number has changed.

        Args:
            columns: names of columns, in this order; `None`: all.
            filter: text or predicate; `None`: all rows.
            limit: at most this many rows; `None`: all.
            dtype_backend: `None`: numpy's types, but integers and booleans in pandas' nullable types. "numpy_nullable":
                floats and texts in nullable types as well. "pyarrow": Arrow types, in which NULL is not NaN.
            when: as described at the class.

        Nested columns have Arrow types in each case. Raises MissingDependencyError without pandas.
        """
        return pandas_frame(self.to_arrow(columns, filter, limit, **when), dtype_backend)

    def to_polars(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> "pl.DataFrame":
        """Read rows into a Polars DataFrame. Arguments are those of `to_arrow`.

        Raises MissingDependencyError without Polars.
        """
        return polars_frame(self.to_arrow(columns, filter, limit, **when))

    def to_duckdb(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        *,
        connection: "duckdb.DuckDBPyConnection | None" = None,
        **when: object,
    ) -> "duckdb.DuckDBPyRelation":
        """Return rows as a relation of DuckDB. Nothing is read now; each query reads the rows anew, batch by batch.

        All queries read the snapshot that is chosen now; after it has expired they fail. ``columns`` and ``filter``
        skip files and rows. Conditions of the query do not: DuckDB applies them to the rows that it gets.

        Args:
            columns: names of columns, in this order; `None`: all.
            filter: text or predicate; `None`: all rows.
            limit: at most this many rows; `None`: all.
            connection: of DuckDB; `None`: its default connection.
            when: as described at the class.

        Raises UnsupportedError for TIMESTAMP_LTZ with nanoseconds, which DuckDB would cut, MissingDependencyError
        without DuckDB.
        """
        return duckdb_relation(self._repeatable(columns, filter, limit, when), connection)

    def changes(
        self, from_snapshot: int | str | None = None, to_snapshot: int | str | None = None, mode: str | None = None
    ) -> pa.Table:
        """Return the changes after ``from_snapshot`` (0: all changes) through ``to_snapshot`` (`None`: the newest).

        The first column, ``rowkind``, is "+I" for an inserted row, "-U" and "+U" for a row before and after an update,
        "-D" for a deleted row. ``mode`` is the source: "changelog"; "delta", the written rows, once per key and commit;
        "auto", the changelog if option ``changelog-producer`` makes one, else the written rows; "diff", the difference
        of the rows of both snapshots, whatever happened between them. `None`: the option
        ``incremental-between-scan-mode``, "auto" by default. An overwrite emits no changes, except to "diff".

        Both ends may be tags, which are compared, as by "diff". Without ends, the options ``incremental-*`` of
        :meth:`with_options` name them. Raises OutOfRangeError for snapshots that have expired, NotFoundError for an
        unknown tag, UnsupportedError if append files do not tell the difference.
        """
        found = changes(self._store, self._interval(from_snapshot, to_snapshot, mode))
        return pa.Table.from_batches(found, changes_schema(self._store))

    def stream(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        changelog: bool = False,
        ignore_deletes: bool = False,
    ) -> Stream:
        """Return a stream of changes: ``plan()`` returns new splits; ``checkpoint()`` and ``restore()`` its position.

        The stream starts with all rows, or as the options ``scan.mode`` and its companions of :meth:`with_options` say.
        It has the given ``columns`` of rows that match the ``filter``. With ``changelog`` a first column ``rowkind``
        has the kind of each row. Without ``changelog`` a deleted row raises UnsupportedError, or is skipped with
        ``ignore_deletes``.
        """
        store = self._store
        if self._read_optimized:
            raise UnsupportedError(f"{self.path}{_VIEW} shows what compaction left, not changes: stream {self.path}")
        fields, predicate = project(store.schema, columns), bound_filter(filter, store.schema.fields)
        asked = columns_of(predicate) - {f.name for f in fields} if predicate is not None else set()
        chosen = None if columns is None else (*fields, *(f for f in store.schema.fields if f.name in asked))
        reader = ChangeRead(store, fields, predicate, kinds=changelog, ignore_deletes=ignore_deletes)
        return Stream(StreamScan(store, chosen, predicate), reader)

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        analyze: bool = False,
        listed: int = DEFAULT_LISTED,
        **when: object,
    ) -> Explanation:
        """Return what a read would read and why, to print or to use field by field (docs/guides/explain-reads.md).

        ``columns``, ``filter`` and ``when`` are those of :meth:`to_arrow`.
        It reads metadata only. With ``analyze`` it also reads the rows, batch by batch, drops them, and measures rows
        in and out and the time of each phase. ``listed``: the number of splits, and of sections, that the text lists;
        all are counted. Raises UnsupportedError for a read of changes (options ``incremental-*``) or of two branches.
        """
        if self._reads_changes(when):
            raise UnsupportedError(
                f"cannot explain a read of the changes of {self.path}: leave the options 'incremental-*' out"
            )
        scan, read = self._scan_and_reader(columns, filter, None, when)
        started = time.monotonic()
        if not analyze:
            return explain(scan, scan.plan(), columns, listed=listed)
        with protected_read(scan.store, scan.snapshot):
            plan = scan.plan()
            seconds = time.monotonic() - started
            return execute(explain(scan, plan, columns, listed=listed), read, plan, seconds)

    def scan(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> TableScan:
        """Return a scan whose ``plan()`` has splits, which a reader of the same columns and filter reads anywhere.

        Arguments are those of `to_arrow`.
        """
        return self._scan_and_reader(columns, filter, limit, when)[0]

    def reader(self, columns: Sequence[str] | None = None, filter: Filter = None, **when: object) -> TableRead:
        """Return a reader of the splits of a scan with the same arguments: ``reader.to_batches(split)``.

        Arguments are those of `to_arrow`.
        """
        return self._scan_and_reader(columns, filter, None, when)[1]

    @overload
    def get(self, key: Mapping[str, object], columns: Sequence[str] | None = None) -> dict[str, object] | None: ...

    @overload
    def get(self, key: Keys, columns: Sequence[str] | None = None) -> pa.Table: ...

    def get(
        self, key: Mapping[str, object] | Keys, columns: Sequence[str] | None = None
    ) -> dict[str, object] | pa.Table | None:
        """Return the row of a primary key, {column: value}, as a dict; `None`: no row has the key.

        For many keys (a sequence of dicts, or a table or frame of the key's columns), return the found rows as a table
        in the order of the keys. Opens only files that can hold a key, and decodes values only of matching rows. This
        object caches decoded keys, and small files whole, up to ``lookup.cache-max-memory-size``.
        """
        store, snapshot = self._travel({})
        keys = key_table(store.schema, key if isinstance(key, Mapping | Sequence) else arrow_table(key))
        scan = TableScan(store, snapshot, read_optimized=self._read_optimized)
        with raise_if_expired(store, snapshot):
            if self._lookup is None or self._lookup.scan != scan:
                self._lookup = Lookup(scan, self._key_cache)
            rows = self._lookup.rows(keys, project(store.schema, columns))
        if not isinstance(key, Mapping):
            return rows
        return rows.to_pylist()[0] if rows.num_rows else None

    # ---- writing

    def write(self, data: Rows, row_kinds: Sequence[str] | pa.Array | None = None) -> Snapshot | None:
        """Add rows (with a primary key: upsert rows) in one commit. Returns `None` if ``data`` has no row.

        Columns match by name; a missing column is filled with its default or NULL. Either all rows become visible or
        none. After an error no file is left, except after CommitUnknownError. With the dynamic option
        ``write.merge-schema`` the table first gets the columns that it lacks; they stay if the write then fails.

        Args:
            data: a pyarrow Table, RecordBatch or RecordBatchReader, a DataFrame of pandas or Polars, a relation of
                DuckDB, or another object with ``__arrow_c_stream__``. A stream is read once, in bounded memory.
            row_kinds: "+I" "-U" "+U" "-D", one for each row; not for streams. `None`: all inserts.

        Raises InvalidInputError naming column and row for data that the table cannot hold, CommitConflictError if
        others wrote the same new keys meanwhile: data in memory is tried five times, a stream once.
        """
        data = arrow_data(data)
        if self._store.merge_rules is not None:
            return self._merged(data).write(data, row_kinds)
        # a further attempt finds buckets that others gave the same new keys, and files that replace expired ones
        attempts = 1 if isinstance(data, pa.RecordBatchReader) else _WRITES
        return retry_on_conflict(partial(self._write_once, data, row_kinds), attempts)

    def _merged(self, data: Data) -> "Table":
        """Return the table to which the rows are written after it, and this object, got their columns."""
        store = with_columns_of(self._writable(), data)
        self._store = replace(store, merge_rules=self._store.merge_rules)
        return Table(store)

    def _write_once(self, data: Data, row_kinds: Sequence[str] | pa.Array | None) -> Snapshot | None:
        with self.writer() as writer:
            writer.write(data, row_kinds)
            messages = writer.prepare_commit()
        publisher = Publisher(self._writable())
        with publisher.publishing(messages):
            done = commit_messages(publisher, messages, started_from=writer.started_from)
        if done.snapshot is None:
            return None
        record_done_after_commit(self._store, {message.bucket_ref for message in messages})
        # a rejected compaction hides rows, or their changes, until it is done again
        due = done.rejected if self._store.traits.needs_lookup else ()
        return after_commit(self._store, due) or done.snapshot

    def add_files(
        self, paths: str | Sequence[str], partition: Mapping[str, object] | None = None, *, move: bool = False
    ) -> AddedFiles:
        """Add Parquet, ORC or Avro files of other tools, and those of directories, in one commit, as they are.

        Only for tables without a primary key, buckets and row ids. Each file is copied; with ``move`` its original is
        deleted after the commit. A file that is in the table already is left out, as long as no compaction has replaced
        it.

        Args:
            paths: of files and directories; directories ``column=value`` name the partition.
            partition: {column: value} for all files; `None`: as the paths say.
            move: delete the originals once they are in the table.

        Raises InvalidInputError naming file and column if a file does not fit, UnsupportedError for a column that not
        every engine would read right; nothing is changed then. See `paimon_core.migration.add_files`.
        """
        return add_files(self._writable(), paths, partition, move=move)

    def overwrite(self, data: Rows, partition: Mapping[str, object] | str | None = None) -> Snapshot | None:
        """Replace rows in one commit: the whole table, one partition, or the partitions found in the data.

        Option ``write.merge-schema``: as in :meth:`write`.

        Args:
            data: as for :meth:`write`.
            partition: `None`: the whole table, or "dynamic" with the option ``dynamic-partition-overwrite`` = true;
                {column: value}: one partition, and other rows are refused; "dynamic": the partitions in the data.

        Returns the snapshot; `None`: there was nothing to replace. Raises InvalidInputError for data that the table or
        the partition cannot hold; the table is unchanged then.
        """
        if self._store.merge_rules is not None:
            data = arrow_data(data)
            return self._merged(data).overwrite(data, partition)
        option, options = DYNAMIC_PARTITION_OVERWRITE, self._store.options
        if partition is None and options.has(option) and options.value(option):
            partition = DYNAMIC
        if isinstance(partition, str) and partition != DYNAMIC:
            raise InvalidInputError(f"partition must be a mapping, None or {DYNAMIC!r}, not {partition!r}")
        writer = self.writer(overwrite=True)
        with writer:
            for batch in _batches(arrow_data(data)):
                writer.write(_completed(batch, partition))
            messages = writer.prepare_commit()
        publisher = Publisher(self._writable())
        with publisher.publishing(messages):
            made = overwrite_partitions(publisher, messages, partition).snapshot
        if made is not None:
            record_done_after_commit(self._store, {message.bucket_ref for message in messages})
        return self._expired(made)

    def delete(
        self, filter: str | Predicate, *, progress: Progress | None = None, runner: Runner = LOCAL
    ) -> Snapshot | None:
        """Delete the rows that match, in one commit. Returns `None` if no row matches.

        A filter on partition columns alone drops whole partitions unread. A table without a primary key records
        deletion vectors with ``deletion-vectors.enabled``, and else rewrites the files of the rows. A table with a
        primary key stores a row of kind -D for each row; UnsupportedError if its options ignore rows of this kind.
        ``progress`` and ``runner`` are the arguments of :meth:`compact`, for tables without a primary key. If others
        change the same rows meanwhile, or the snapshot expires, the search repeats. After ten attempts it raises
        CommitConflictError or OutOfRangeError. Raises InvalidInputError for an empty ``filter``.
        """
        predicate = bound_filter(filter, self._writable().schema.fields)
        if predicate is None:
            raise InvalidInputError("which rows are to be deleted? Give a filter, or remove all with truncate()")
        return self._expired(delete_rows(self._store, predicate, runner=runner, progress=progress))

    def update_columns(self, data: Rows) -> Snapshot | None:
        """Update some columns of rows, in one commit. Returns `None` if ``data`` has no row.

        For tables with ``data-evolution.enabled``. ``data`` is as for :meth:`write`, but all rows are held in memory.
        It has ``_ROW_ID``, as a read returned it, and the columns to change; other columns stay. Raises
        InvalidInputError for ids that the table does not have, UnsupportedError if it has deletion vectors,
        CommitConflictError if others changed the same columns of the same files meanwhile.
        """
        return self._expired(update_columns(self._writable(), arrow_table(data)))

    def truncate(self) -> Snapshot | None:
        """Remove every row in one commit, and return its snapshot; older snapshots stay readable."""
        return self._expired(replace_files(Publisher(self._writable()), None).snapshot)

    def drop_partitions(self, partitions: Sequence[Mapping[str, object]]) -> Snapshot | None:
        """Remove whole partitions in one commit, each {column: value}; a column left out means all its values.

        Returns the snapshot; `None`: none of the partitions has rows.
        """
        return self._expired(drop_partitions(Publisher(self._writable()), partitions))

    def writer(
        self,
        commit_user: str | None = None,
        *,
        overwrite: bool = False,
        role: WriterRole = ONLY_WRITER,
        started_from: StartedFrom | None = None,
    ) -> TableWrite:
        """Return a writer for engines: ``write`` batches, then ``prepare_commit`` gives messages for a committer.

        See `paimon_core.operations.distributed_write` for the whole way.

        Args:
            commit_user: as of the committer; `None`: a new user.
            overwrite: the rows replace those of the table.
            role: of this writer among those of a distributed job, each with its own.
            started_from: the snapshot that says where keys are. On a table with dynamic buckets all writers and the
                commit take the same one. `None`: the newest.

        Raises UnsupportedError for a view, and with the option ``write.merge-schema``.
        """
        store = self._writable()
        if store.merge_rules is not None:
            raise UnsupportedError(
                "'write.merge-schema' is not possible in a writer of batches: use Table.write, or alter the table first"
            )
        return TableWrite(store, overwrite=overwrite, role=role, started_from=started_from, commit_user=commit_user)

    def committer(self, commit_user: str | None = None) -> TableCommit:
        """Return a committer of the messages of writers, as ``commit_user`` or as a new user."""
        return TableCommit(self._writable(), commit_user)

    # ---- the timeline

    @property
    def tags(self) -> TableTags:
        """The verbs for tags; UnsupportedError for a read-optimized view."""
        return TableTags(self._writable())

    @property
    def branches(self) -> TableBranches:
        """The verbs for branches; UnsupportedError for a read-optimized view."""
        return TableBranches(self._writable())

    @property
    def consumers(self) -> TableConsumers:
        """The verbs for the positions of named streams; UnsupportedError for a read-optimized view."""
        return TableConsumers(self._writable())

    def create_tag(self, name: str, snapshot_id: int | None = None, retained: timedelta | str | None = None) -> Tag:
        """Give a snapshot, by default the newest, a name under which it stays readable, and return the tag.

        Arguments are those of `TableTags.create`.
        """
        return self.tags.create(name, snapshot_id, retained)

    def rollback_to(
        self,
        snapshot_id_or_tag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Make an older snapshot or a tag the newest one, and return it: `paimon_core.operations.history.rollback`.

        Newer snapshots and their tags are lost; the schema stays.

        Args:
            snapshot_id_or_tag: a text of digits is a snapshot id unless a tag has this name.
            timestamp: instead, the newest snapshot at or before this moment.
            watermark: instead, the newest snapshot whose watermark is not above this number.
        """
        store = self._writable()
        return rollback(store, target_of(store, snapshot_id_or_tag, timestamp, watermark))[1]

    def restore(
        self,
        snapshot_id_or_tag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Make the rows of an older moment those of a new snapshot, and return the newest snapshot.

        Arguments are those of `rollback_to`, but no snapshot and no tag is lost. See
        `paimon_core.operations.compaction.restore.restore`.
        """
        store = self._writable()
        before, now = restore(store, target_of(store, snapshot_id_or_tag, timestamp, watermark))
        return now if now is before else (self._expired(now) or now)

    # ---- maintenance; the short verbs call the group

    @property
    def maintenance(self) -> TableMaintenance:
        """The verbs for files and snapshots that change no row; UnsupportedError for a read-optimized view."""
        return TableMaintenance(self._writable())

    def compact(
        self,
        *,
        full: bool = False,
        order_by: Sequence[str] | None = None,
        order_strategy: str | None = None,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
        runner: Runner = LOCAL,
    ) -> Snapshot | None:
        """Rewrite files in one commit that changes no row; `None`: there is nothing to do. ``runner`` runs the tasks.

        Arguments are those of `TableMaintenance.compact`.
        """
        made = TableMaintenance(self._writable(), runner).compact(
            full=full,
            order_by=order_by,
            order_strategy=order_strategy,
            partitions=partitions,
            filter=filter,
            progress=progress,
        )
        if made is None:
            check_opened(self._store.schemas, self._store.schema, None)
        return made

    def expire_snapshots(
        self,
        older_than: datetime | str | int | None = None,
        retain_max: int | None = None,
        retain_min: int | None = None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        """Remove old snapshots and the files that only they need; return what was removed.

        Arguments are those of `TableMaintenance.expire_snapshots`.
        """
        return self.maintenance.expire_snapshots(older_than, retain_max, retain_min, dry_run=dry_run)

    def remove_orphan_files(self, older_than: datetime | str | int | None = None, dry_run: bool = False) -> OrphanFiles:
        """Delete the files that nothing refers to, and return them.

        Arguments are those of `TableMaintenance.remove_orphan_files`.
        """
        return self.maintenance.remove_orphan_files(older_than, dry_run=dry_run)

    def rescale(
        self,
        buckets: int | None = None,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | None = None,
    ) -> Snapshot | None:
        """Change the number of buckets and rewrite the partitions; `None`: there is nothing to do.

        Arguments are those of `TableMaintenance.rescale`.
        """
        return self.maintenance.rescale(buckets, partitions=partitions, filter=filter, progress=progress)

    def verify(self, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Look for everything in the table, in all branches, that contradicts the format: `verify`.

        `deep` also reads the rows; `progress` is called with the bytes read and the bytes of all. Nothing is changed.
        """
        return verify(self.store, deep=deep, progress=progress)

    def health(self) -> TableHealth:
        """Return measures of each bucket of the newest snapshot, and the advice that follows from them.

        Metadata are read, and no data file; nothing is changed. docs/guides/advice.md lists the columns and the kinds.
        """
        return health(self.store)

    def advice(self) -> list[Advice]:
        """Return what would make the table faster or smaller, the most urgent first: see `health`.

        Each has a text, the measure behind it, and the command to run. An empty list: nothing would.
        """
        return list(advise(self.store))

    def repair(
        self,
        *,
        deep: bool = False,
        missing_files: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RepairReport:
        """Verify the table, and mend in all branches what can be mended without a guess; no row is lost: `repair`.

        `deep` also reads the rows, and mends what shows in them. `missing_files` removes data files that do not exist
        from the newest snapshot. `dry_run` changes nothing. `progress` is called as by `verify`.
        """
        return repair(self._writable(), deep=deep, missing_files=missing_files, dry_run=dry_run, progress=progress)

    # ---- changing

    def alter(self, changes: Changes) -> "Table":
        """Apply schema changes, all or none, and return the table with its new schema.

        `changes` may be a function of the newest schema: it is called again if another process changes the schema.
        """
        return Table(self._writable().alter(changes))

    # ---- inside

    def _interval(self, first: int | str | None, last: int | str | None, mode: str | None) -> Interval:
        """Return the ends of a read of changes, by arguments or else by options."""
        if first is not None:
            source = self._store.options.value(INCREMENTAL_BETWEEN_SCAN_MODE) if mode is None else mode
            return interval_between(self._store, first, last, source)
        if last is not None or mode is not None:
            raise InvalidInputError("where do the changes begin? Give from_snapshot, 0 for all changes")
        found = interval_of(self._store)
        if found is None:
            raise InvalidInputError("where do the changes begin? Give from_snapshot, or option 'incremental-between'")
        return found

    def _reads_changes(self, when: Mapping[str, object]) -> bool:
        chosen = any(value is not None for value in when.values())
        return asks_for_changes(self._store) and not chosen and not self._read_optimized

    def _reads_branches(self, when: Mapping[str, object]) -> bool:
        """Return True for the newest rows of two branches; a moment of both is refused when it is planned."""
        moments = (*when.values(), *(self._store.options.get(key) for key in TIME_TRAVEL_OPTIONS))
        return reads_branches(self._store) and all(moment is None for moment in moments)

    def _repeatable(
        self, columns: Sequence[str] | None, filter: Filter, limit: int | None, when: Mapping[str, object]
    ) -> RepeatableRead:
        """Return the rows of the snapshot that ``when`` chooses now, as a read that can be repeated."""
        if self._reads_changes(when):
            read_changes = self._change_read(columns, filter)
            schema = arrow_schema(project(self.schema, columns))
            return _repeatable(schema, read_changes, limit)
        scan, read = self._scan_and_reader(columns, filter, limit, when)
        if self._reads_branches(when):
            of_branches = cache(partial(branch_splits, scan))  # the newest snapshot of the other branch, once
            return _repeatable(read.schema, lambda: _of_branches(of_branches(), read), limit)
        if not scan.store.options.has(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED):
            return _repeatable(read.schema, lambda: _chained(read, scan.plan().splits), limit)
        return _repeatable(read.schema, lambda: _guarded(scan, read), limit)

    def _change_read(self, columns: Sequence[str] | None, filter: Filter) -> Callable[[], Iterator[pa.RecordBatch]]:
        """Return a function that yields the rows that the options ``incremental-*`` ask for."""
        interval, schema = self._interval(None, None, None), self._store.schema
        source = interval.source(without_start(self._store))
        fields, predicate = project(schema, columns), bound_filter(filter, schema.fields)

        def rows() -> Iterator[pa.RecordBatch]:
            for split in change_splits(source, interval):
                yield from ChangeRead(source, fields, predicate).to_batches(split)

        return rows

    def _scan_and_reader(
        self, columns: Sequence[str] | None, filter: Filter, limit: int | None, when: Mapping[str, object]
    ) -> tuple[TableScan, TableRead]:
        store, snapshot = self._travel(when)
        predicate = bound_filter(filter, store.schema.fields)
        fields = project(store.schema, columns, metadata=True)
        scan = TableScan(store, snapshot, predicate, _checked(limit), self._read_optimized)
        return scan, TableRead(store, fields, predicate, skip_bad_files=True)

    def _expired(self, made: Snapshot | None) -> Snapshot | None:
        """Expire as the options say after a commit, and return the snapshot of the commit."""
        if made is None:
            check_opened(self._store.schemas, self._store.schema, None)  # a dropped table looks empty
        else:
            expire_after_commit(self._store)
        return made

    def _travel(self, when: Mapping[str, object]) -> tuple[FileStore, Snapshot | None]:
        """Return the selected snapshot and its store: with the snapshot's schema for time travel, else the newest."""
        store, moment = self._store, TimeTravel.of(when)
        if moment == NEWEST:
            moment = TimeTravel.from_options(store.options)
        snapshot = moment.resolve(store.snapshots, store.tags)
        if moment != NEWEST and snapshot is not None:
            return store.at_schema(snapshot.schema_id), snapshot
        check_opened(store.schemas, store.schema, snapshot)
        return store, snapshot

    def _writable(self) -> FileStore:
        if self._read_optimized:
            raise UnsupportedError(
                f"cannot write to {self.path}{_VIEW}: a read-optimized view can only be read; write to the table itself"
            )
        return self._store

    def _repr_html_(self) -> str | None:
        """Return the page of the table for a notebook, or an error in its place; `None` without jinja2."""
        return notebook_html(name_of(self.location), lambda: summary_html(table_summary(self)))

    def __repr__(self) -> str:
        """Return the path, the snapshot, its rows and files; an error in their place. Reads a few small files."""
        return f"Table({hide_secrets(str(self.location))!r}, {summary(lambda: self._travel({}))})"


def table_summary(table: Table, **when: object) -> TableSummary:
    """Return the page of a table as a value: files, timeline and health, from metadata. ``when``: as of a read.

    Raises UnsupportedError for a system table.
    """
    return summary_of(table.store, table.location, lambda: table._travel(when))


def moment_of(table: Table, **when: object) -> tuple[FileStore, Snapshot | None]:
    """Return the store at the snapshot that ``when`` chooses, and the snapshot. `None`: the table has no commit."""
    return table._travel(when)


def _unpickled(store: FileStore, read_optimized: bool) -> Table:
    return Table(store, read_optimized=read_optimized)


def _chained(read: TableRead, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
    for split in splits:
        yield from read.to_batches(split)


def _repeatable(
    schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], limit: int | None
) -> RepeatableRead:
    _checked(limit)
    return RepeatableRead(schema, lambda: _limited(batches(), limit))


def _of_branches(
    branches: Sequence[tuple[FileStore, Sequence[DataSplit]]], read: TableRead
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of two branches."""
    for store, splits in branches:
        yield from _chained(replace(read, store=store), splits)


def _guarded(scan: TableScan, read: TableRead) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a scan, whose snapshot is protected until the last row."""
    with protected_read(scan.store, scan.snapshot):
        yield from _chained(read, scan.plan().splits)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    remaining = limit
    for batch in batches:
        if remaining is None:
            yield batch
            continue
        if remaining > 0:
            yield batch.slice(0, remaining)
            remaining -= batch.num_rows
        if remaining <= 0:
            return


def with_store(table: Table, store: FileStore) -> Table:
    """Return the table, or the view of it, over another form of its store, for engines."""
    if isinstance(table, SystemTable):
        return SystemTable(store, table.kind)
    return Table(store, read_optimized=table._read_optimized)


def viewed(table: Table, system_table: str | None) -> Table:
    """Return a system table of the table; `None`: the table itself.

    Raises InvalidInputError, which names the nearest one, for an unknown system table.
    """
    if system_table is None:
        return table
    if system_table == READ_OPTIMIZED:
        return table.read_optimized()
    return SystemTable(table.store, system_table_kind(system_table, f"{table.location}{SEPARATOR}{system_table}"))


class SystemTable(Table):
    """A system table: its rows tell of a table. It can only be read; everything else is an UnsupportedError.

    A filter on some columns saves reading: ``docs/reference/system-tables.md`` names them. ``when`` is possible
    where the rows belong to a snapshot.
    """

    def __init__(self, store: FileStore, kind: SystemTableKind) -> None:
        super().__init__(store)
        self.kind = kind
        """The columns, and the functions that read them."""

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[Any, ...]]:
        """Pickle without the caches."""
        return SystemTable, (self._store, self.kind)

    @property
    def location(self) -> TableLocation:
        """The directory, the branch and the name; its text opens the same again."""
        return replace(super().location, system_table=self.kind.name)

    @property
    def store(self) -> FileStore:
        """Raise UnsupportedError: files and snapshots are those of the table."""
        raise self._only_read("what is stored")

    @property
    def schema(self) -> TableSchema:
        """The columns; there are no keys, partitions or options."""
        fields = self.kind.fields(self._store)
        return TableSchema(0, fields, highest_field_id=len(fields))

    @property
    def arrow_schema(self) -> pa.Schema:
        """Column names and Arrow types of a read without projection."""
        return self.schema.arrow

    def with_options(self, options: Mapping[str, str | None]) -> "Table":
        """Return this system table of the table under dynamic options; a value `None` removes an option."""
        return SystemTable(self._store.with_options(options), self.kind)

    def read(self, columns: Sequence[str] | None = None, filter: Filter = None, **when: object) -> SystemRead:
        """Return the read as a value, for engines: ``plan()`` returns parts, ``to_batches(part)`` reads one anywhere.

        Raises InvalidInputError for ``when`` if the rows are not those of a snapshot.
        """
        store, snapshot = self._moment(when)
        schema = SystemTable(store, self.kind).schema
        return SystemRead(self.kind, store, snapshot, project(schema, columns), bound_filter(filter, schema.fields))

    def schema_at(self, **when: object) -> TableSchema:
        """Return the columns of a moment. Raises as `read`."""
        return SystemTable(self._moment(when)[0], self.kind).schema

    def in_microseconds(self) -> "SystemTable":
        """Return the table with the timestamps of its rows cut to microseconds, for engines that have no finer ones."""
        return SystemTable(self._store.in_microseconds(), self.kind) if self.kind.of_rows else self

    def _moment(self, when: Mapping[str, object]) -> tuple[FileStore, Snapshot | None]:
        given = [name for name, value in when.items() if value is not None]
        if given and not self.kind.travels:
            raise InvalidInputError(f"{self.location} has no past, which {given[0]!r} would choose: leave it out")
        return self._travel(when) if self.kind.travels else (self._store, None)

    def to_arrow(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> pa.Table:
        """Read rows into one Arrow table in memory; :meth:`to_batches` reads in bounded memory."""
        read = self.read(columns, filter, **when)
        return pa.Table.from_batches(_limited(_parts(read), _checked(limit)), read.schema)

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Filter = None, limit: int | None = None, **when: object
    ) -> Iterator[pa.RecordBatch]:
        """Read rows as a stream of record batches, in bounded memory."""
        return self._repeatable(columns, filter, limit, when).batches()

    def _repeatable(
        self, columns: Sequence[str] | None, filter: Filter, limit: int | None, when: Mapping[str, object]
    ) -> RepeatableRead:
        read = self.read(columns, filter, **when)
        return _repeatable(read.schema, lambda: _parts(read), limit)

    def operation_metrics(self, **when: object) -> dict[str, int]:
        """Raise UnsupportedError."""
        raise self._only_read("commits")

    def read_optimized(self) -> Table:
        """Raise UnsupportedError."""
        raise self._only_read("a view without merging")

    def changes(
        self, from_snapshot: int | str | None = None, to_snapshot: int | str | None = None, mode: str | None = None
    ) -> pa.Table:
        """Raise UnsupportedError."""
        raise self._only_read("changes")

    def stream(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        changelog: bool = False,
        ignore_deletes: bool = False,
    ) -> Stream:
        """Raise UnsupportedError."""
        raise self._only_read("a stream of changes")

    def get(self, key: object, columns: Sequence[str] | None = None) -> NoReturn:
        """Raise UnsupportedError."""
        raise self._only_read("rows by their key")

    def _scan_and_reader(
        self, columns: Sequence[str] | None, filter: Filter, limit: int | None, when: Mapping[str, object]
    ) -> tuple[TableScan, TableRead]:
        raise self._only_read("files to scan")

    def _writable(self) -> FileStore:
        raise UnsupportedError(
            f"cannot write to {self.location}: a system table can only be read; write to the table itself"
        )

    def _expired(self, made: Snapshot | None) -> Snapshot | None:
        raise self._only_read("commits")

    def _only_read(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.location} is a system table, which has rows and not {what}: use to_arrow, or ask {self.path}"
        )

    def _repr_html_(self) -> str | None:
        """Return the first rows for a notebook; `None`: the rows are those of data files, or jinja2 is missing."""
        return None if self.kind.of_rows else notebook_html(name_of(self.location), self._first_rows)

    def _first_rows(self) -> str:
        found = self.to_arrow(limit=_NOTEBOOK_ROWS + 1)
        rows = [[str(value) for value in row.values()] for row in found.slice(0, _NOTEBOOK_ROWS).to_pylist()]
        return rows_html(name_of(self.location), found.column_names, rows, found.num_rows > _NOTEBOOK_ROWS)

    def __repr__(self) -> str:
        return f"SystemTable({hide_secrets(str(self.location))!r})"


def _parts(read: SystemRead) -> Iterator[pa.RecordBatch]:
    for part in read.plan():
        yield from read.to_batches(part)


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise InvalidInputError(f"limit must not be negative, but is {limit}")
    return limit


def _batches(data: Data) -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    else:
        yield from data


def _completed(batch: pa.RecordBatch, partition: Mapping[str, object] | str | None) -> pa.RecordBatch:
    """Return the batch with the partition columns that it lacks, filled from the overwritten partition."""
    if partition is None or isinstance(partition, str):
        return batch
    for column, value in partition.items():
        if column not in batch.schema.names:
            batch = batch.append_column(column, pa.array([value] * batch.num_rows))
    return batch
