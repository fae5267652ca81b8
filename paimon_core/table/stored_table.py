"""StoredTable: the reads of a table that has snapshots and files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, overload

import pyarrow as pa

from paimon_core.errors import UnsupportedError, hide_secrets
from paimon_core.inspect.explain.limits import DEFAULT_LISTED
from paimon_core.lazy import deferred
from paimon_core.memory import MemoryShares
from paimon_core.operations.history.read_guard import protected_read
from paimon_core.operations.jobs.runner import Progress
from paimon_core.predicate.filter import Filter
from paimon_core.scan.projection import project
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshot_list import SnapshotList
from paimon_core.snapshot.time_travel import TimeTravel, TimeTravelArguments
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR, TableLocation
from paimon_core.table.readable import ReadableTable
from paimon_core.table.reading import TableReading
from paimon_core.table.selection import Selection
from paimon_core.write.input_data import Rows, arrow_table

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from paimon_core.commit.measure import operation_metrics
    from paimon_core.inspect.advice.advise import advise, health
    from paimon_core.inspect.advice.report import Advice, AdviceList, TableHealth
    from paimon_core.inspect.explain.explain import execute, explain
    from paimon_core.inspect.explain.explanation import Explanation
    from paimon_core.inspect.html.preview import Preview, check_rows, preview_columns, preview_of
    from paimon_core.inspect.html.render import TablePage, notebook_html, summary_html
    from paimon_core.inspect.html.repr_text import summary
    from paimon_core.inspect.html.table_summary import TableSummary, name_of, summary_of
    from paimon_core.inspect.verify.verify import verify
    from paimon_core.inspect.verify.verify_report import VerifyReport
    from paimon_core.read.changed_rows import changes, changes_schema
    from paimon_core.read.frames import RepeatableRead
    from paimon_core.read.key_cache import KeyCache
    from paimon_core.read.lookup import Lookup, key_table
    from paimon_core.read.stream import Stream
    from paimon_core.read.table_read import TableRead
    from paimon_core.scan.table_scan import TableScan
else:
    operation_metrics = deferred("paimon_core.commit.measure", "operation_metrics")
    advise = deferred("paimon_core.inspect.advice.advise", "advise")
    health = deferred("paimon_core.inspect.advice.advise", "health")
    AdviceList = deferred("paimon_core.inspect.advice.report", "AdviceList")
    execute = deferred("paimon_core.inspect.explain.explain", "execute")
    explain = deferred("paimon_core.inspect.explain.explain", "explain")
    preview_columns = deferred("paimon_core.inspect.html.preview", "preview_columns")
    check_rows = deferred("paimon_core.inspect.html.preview", "check_rows")
    preview_of = deferred("paimon_core.inspect.html.preview", "preview_of")
    TablePage = deferred("paimon_core.inspect.html.render", "TablePage")
    notebook_html = deferred("paimon_core.inspect.html.render", "notebook_html")
    summary_html = deferred("paimon_core.inspect.html.render", "summary_html")
    summary = deferred("paimon_core.inspect.html.repr_text", "summary")
    name_of = deferred("paimon_core.inspect.html.table_summary", "name_of")
    summary_of = deferred("paimon_core.inspect.html.table_summary", "summary_of")
    verify = deferred("paimon_core.inspect.verify.verify", "verify")
    changes = deferred("paimon_core.read.changed_rows", "changes")
    changes_schema = deferred("paimon_core.read.changed_rows", "changes_schema")
    KeyCache = deferred("paimon_core.read.key_cache", "KeyCache")
    Lookup = deferred("paimon_core.read.lookup", "Lookup")
    key_table = deferred("paimon_core.read.lookup", "key_table")
    TableScan = deferred("paimon_core.scan.table_scan", "TableScan")


Keys: TypeAlias = Sequence[Mapping[str, object]] | Rows
_VIEW = SEPARATOR + READ_OPTIMIZED


class StoredTable(ReadableTable):
    """The reads of a table in a directory, or of its read-optimized view: rows, changes, streams and metadata."""

    def __init__(self, store: FileStore, *, read_optimized: bool = False) -> None:
        super().__init__(store)
        self._read_optimized = read_optimized
        self._key_cache = KeyCache(MemoryShares.of(store.options).key_cache)
        self._lookup: Lookup | None = None

    def with_store(self, store: FileStore) -> Self:
        """Return the same table or view with another form of its store, for engines."""
        return type(self)(store, read_optimized=self._read_optimized)

    @property
    def location(self) -> TableLocation:
        """The directory, the branch and the view; its text opens the same table again."""
        branch, view = self._store.branch, READ_OPTIMIZED if self._read_optimized else None
        return TableLocation(self.path, None if branch == MAIN_BRANCH else branch, view)

    @property
    def schema(self) -> TableSchema:
        """The newest schema, including dynamic options."""
        return self._store.schema

    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots that have not expired, oldest first. ``print`` and notebooks show them as a table."""
        return SnapshotList(self._store.snapshots.all())

    def snapshot(self, **at: Unpack[TimeTravelArguments]) -> Snapshot | None:
        """Return a snapshot, by default the newest; `None`: the table has no commit. ``at``: as for `to_arrow`."""
        return self._reading.find(TimeTravel.of(at))[1]

    def operation_metrics(self, **at: Unpack[TimeTravelArguments]) -> dict[str, int]:
        """Return the files, rows and bytes that the commit of a snapshot, by default the newest, added and deleted.

        The counts come from manifests, so every snapshot has them, regardless of the engine that committed it. Their
        names are the same as in `paimon_core.metrics.CommitMetrics`, which also measures time. An empty table has no
        counts. ``at``: as for `to_arrow`. Raises OutOfRangeError for the tag of an expired snapshot.
        """
        store, snapshot = self._reading.find(TimeTravel.of(at))
        return {} if snapshot is None else operation_metrics(store, snapshot)

    # ---- reading

    def changes(
        self, from_snapshot: int | str | None = None, to_snapshot: int | str | None = None, mode: str | None = None
    ) -> pa.Table:
        """Return the changes after ``from_snapshot`` (0: all changes) through ``to_snapshot`` (`None`: the newest).

        The first column, ``rowkind``, is "+I" for an inserted row, "-U" and "+U" for a row before and after an update,
        "-D" for a deleted row. ``mode`` is the source: "changelog"; "delta", the written rows, once per key and commit;
        "auto", the changelog if option ``changelog-producer`` makes one, else the written rows; "diff", the difference
        of the rows of both snapshots, regardless of the commits between them. `None`: the option
        ``incremental-between-scan-mode``, "auto" by default. An overwrite emits no changes, except to "diff".

        Both ends may be tags, which are compared, as by "diff". Without ends, the options ``incremental-*`` of
        :meth:`with_options` name them. Raises OutOfRangeError for snapshots that have expired, NotFoundError for an
        unknown tag, UnsupportedError if append files do not determine the difference.
        """
        batches = changes(self._store, self._reading.interval(from_snapshot, to_snapshot, mode))
        return pa.Table.from_batches(batches, changes_schema(self._store))

    def stream(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        changelog: bool = False,
        ignore_deletes: bool = False,
    ) -> Stream:
        """Return a stream of changes: ``plan()`` returns new splits; ``checkpoint()`` and ``restore()`` its position.

        The stream starts with all rows, or where ``scan.mode`` and related options of :meth:`with_options` say. It has
        the ``columns`` of the rows that match the ``filter``. With ``changelog``, a first column ``rowkind`` has the
        kind of each row. Without ``changelog``, a deleted row raises UnsupportedError, or is skipped with
        ``ignore_deletes``.
        """
        if self._read_optimized:
            raise UnsupportedError(f"{self.path}{_VIEW} shows compacted rows, not changes: stream {self.path}")
        return self._reading.stream(columns, filter, changelog=changelog, ignore_deletes=ignore_deletes)

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        analyze: bool = False,
        listed: int = DEFAULT_LISTED,
        **at: Unpack[TimeTravelArguments],
    ) -> Explanation:
        """Return what a read would read and why, to print or to use field by field (docs/guides/explain-reads.md).

        Reads metadata only, unless ``analyze`` is set.

        Args:
            columns, filter, at: as for `to_arrow`.
            analyze: True to read the rows batch by batch, discard them, and measure rows and the time of each phase.
            listed: the most splits, and the most sections, that the text lists; all are counted.

        Raises UnsupportedError for a read of changes (options ``incremental-*``) and of two branches.
        """
        selection = Selection.of(columns, filter, None, at)
        if self._reading.reads_changes(selection):
            raise UnsupportedError(
                f"cannot explain a read of the changes of {self.path}: leave the options 'incremental-*' out"
            )
        scan, read = self._reading.scan_and_reader(selection)
        started = time.monotonic()
        if not analyze:
            return explain(scan, scan.plan(), columns, listed=listed)
        with protected_read(scan.store, scan.snapshot):
            plan = scan.plan()
            seconds = time.monotonic() - started
            return execute(explain(scan, plan, columns, listed=listed), read, plan, seconds)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        **at: Unpack[TimeTravelArguments],
    ) -> TableScan:
        """Return a scan; a reader with the same columns and filter can read the splits of its ``plan()`` anywhere.

        Arguments as for `to_arrow`.
        """
        return self._reading.scan_and_reader(Selection.of(columns, filter, limit, at))[0]

    def reader(
        self, columns: Sequence[str] | None = None, filter: Filter = None, **at: Unpack[TimeTravelArguments]
    ) -> TableRead:
        """Return a reader of the splits of a scan with the same arguments: ``reader.to_batches(split)``.

        Arguments as for `to_arrow`.
        """
        return self._reading.scan_and_reader(Selection.of(columns, filter, None, at))[1]

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
        store, snapshot = self._reading.resolve()
        keys = key_table(store.schema, key if isinstance(key, Mapping | Sequence) else arrow_table(key))
        scan = TableScan(store, snapshot, read_optimized=self._read_optimized)
        with raise_if_expired(store, snapshot):
            if self._lookup is None or self._lookup.scan != scan:
                self._lookup = Lookup(scan, self._key_cache)
            rows = self._lookup.rows(keys, project(store.schema, columns))
        if not isinstance(key, Mapping):
            return rows
        return rows.to_pylist()[0] if rows.num_rows else None

    # ---- metadata

    def verify(self, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Find everything in the table, in all branches, that violates the format: `verify`.

        `deep` also reads the rows; `progress` is called with the bytes read and the total bytes. Nothing is changed.
        """
        return verify(self.store, deep=deep, progress=progress)

    def health(self) -> TableHealth:
        """Return measures of each bucket of the newest snapshot, and the advice that follows from them.

        Reads metadata only and changes nothing. docs/guides/advice.md lists the columns and the kinds of advice.
        """
        return health(self.store)

    def advice(self) -> list[Advice]:
        """Return advice that would make the table faster or smaller, the most urgent first: see `health`.

        Each advice has a text, the measure behind it, and the command to run. ``print`` shows the texts, a notebook a
        table.
        """
        return AdviceList(advise(self.store.forgetting()))

    def page(self, rows: int = 0, **at: Unpack[TimeTravelArguments]) -> TablePage:
        """Return the HTML page of the table, which a notebook shows and ``page.write(file)`` stores.

        Reads metadata, and ``rows`` rows. A part that cannot be read shows its error instead.

        Args:
            rows: the number of rows to read and show, from 0 to 100, of the first 20 columns without blobs; 0: no row.
            at: the snapshot, as for `to_arrow`; by default the newest.

        Raises InvalidInputError for another number of rows.
        """
        return TablePage(table_summary(self, rows, **at))

    # ---- inside

    @property
    def _reading(self) -> TableReading:
        return TableReading(self._store.for_query(), self._read_optimized)

    def _read(self, selection: Selection) -> RepeatableRead:
        return self._reading.rows(selection)

    def _repr_html_(self) -> str | None:
        """Return the summary of the table for a notebook, or an error instead; `None` without jinja2."""
        return notebook_html(name_of(self.location), lambda: summary_html(table_summary(self)))

    def __repr__(self) -> str:
        """Return the path, the snapshot, its rows and files, or an error instead. Reads a few small files."""
        return f"Table({hide_secrets(str(self.location))!r}, {summary(self._reading.resolve)})"


def table_summary(table: StoredTable, rows: int = 0, **at: Unpack[TimeTravelArguments]) -> TableSummary:
    """Return the summary of a table as a value: files, timeline and health, from metadata.

    Args:
        table: the table.
        rows: the number of rows to read and show, from 0 to 100; 0: read no data file.
        at: as for a read.
    """
    check_rows(rows)
    return summary_of(
        table.store,
        table.location,
        lambda: resolved_snapshot(table, **at),
        (lambda store, snapshot: _preview(table, store, snapshot, rows)) if rows else None,
    )


def _preview(table: StoredTable, store: FileStore, snapshot: Snapshot | None, rows: int) -> Preview:
    """Read the first rows of the first columns of a snapshot; ``store`` has its schema."""
    names = preview_columns(store.schema)
    reading = TableReading(store.in_microseconds().for_query(), table._read_optimized)
    return preview_of(reading.first_rows(snapshot, names, rows), store.schema)


def resolved_snapshot(table: StoredTable, **at: Unpack[TimeTravelArguments]) -> tuple[FileStore, Snapshot | None]:
    """Return the selected snapshot, and the store with its schema; `None`: the table has no commit."""
    return table._reading.resolve(TimeTravel.of(at))
