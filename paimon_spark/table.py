"""PaimonTable: a table opened by its path, in classic Spark sessions and over Connect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

from paimon_core import (
    AddedFiles,
    Advice,
    CompactionRequest,
    Expired,
    Explanation,
    OrphanFiles,
    RepairReport,
    Snapshot,
    SystemTable,
    Table,
    TableBranches,
    TableConsumers,
    TableHealth,
    TableLocation,
    TableMaintenance,
    TableTags,
    VerifyReport,
)
from paimon_core.engine import (
    DEFAULT_LISTED,
    MERGE_OPTIONS,
    READ_OPTIMIZED,
    FileStore,
    Filter,
    MergeRules,
    Predicate,
    Progress,
    bind,
    collect,
    drop_counted,
    drops_partitions,
    notebook_html,
    operation_metrics,
    parallel_map,
    parse_predicate,
    repr_text,
    resolved_snapshot,
    summary_html,
    table_summary,
)
from paimon_core.errors import InvalidInputError, OutOfRangeError, hide_secrets
from paimon_spark.analyze import analyze
from paimon_spark.distribute import SparkRunner, parallelism
from paimon_spark.internals import map_in_arrow
from paimon_spark.option_names import canonical
from paimon_spark.options import TableAddress, pop_merge_rules, read_request
from paimon_spark.progress import progress_bar
from paimon_spark.reader import open_any, open_table
from paimon_spark.report import reporting
from paimon_spark.row_level.filter_column import filter_column
from paimon_spark.row_level.merge_builder import MergeBuilder
from paimon_spark.row_level.new_values import as_column, assigned
from paimon_spark.row_level.run import delete, update
from paimon_spark.row_level.statement_result import RowChanges
from paimon_spark.row_level.target import Target
from paimon_spark.sql.reads.path_table import explain, options_of_name, path_frame
from paimon_spark.sql.writes.target_access import DriverAccess
from paimon_spark.times import in_session_zone, session_millis
from paimon_spark.types import expected_arrow_schema

HISTORY = StructType(
    [
        StructField("snapshot_id", LongType(), False),
        StructField("schema_id", LongType(), False),
        StructField("commit_kind", StringType(), False),
        StructField("commit_time", TimestampType(), False),
        StructField("commit_user", StringType(), False),
        StructField("commit_identifier", LongType(), False),
        StructField("total_record_count", LongType(), True),
        StructField("delta_record_count", LongType(), True),
    ]
)


_METRICS = StructField("operation_metrics", MapType(StringType(), LongType(), False), True)
_MIN_TASKS = "read.min-tasks"


class PaimonTable:
    """A table opened by its path, in classic and Connect sessions. The driver reads and writes small results itself.

    Examples:
        >>> from paimon_spark import PaimonTable
        >>> table = PaimonTable.forPath(spark, "/tmp/warehouse/shop.db/items")
        >>> table.update("id = 1", set={"name": "'red pen'"}).num_updated_rows
        1
        >>> table.toDF().orderBy("id").collect()
        [Row(id=1, name='red pen'), Row(id=2, name='blue ink')]
    """

    def __init__(self, spark: SparkSession, address: TableAddress, options: Mapping[str, str]) -> None:
        merging = {
            key: value for key, value in options.items() if not canonical({key: value}).keys().isdisjoint(MERGE_OPTIONS)
        }
        self._spark, self._address, self._merging = spark, address, merging
        self._options = {key: value for key, value in options.items() if key not in merging}
        self._parallelism: int | None = None
        self._alias: str | None = None

    @classmethod
    def forPath(cls, spark: SparkSession, path: str, **options: str) -> "PaimonTable":
        """Return the table in the directory `path`, for `spark`; `options`: read options and storage options."""
        read_options = in_session_zone({**options, "path": path}, lambda: spark)
        return cls(spark, read_request(read_options).address, read_options)

    @classmethod
    def forName(cls, spark: SparkSession, name: str, **options: str) -> "PaimonTable":
        """Return the table with a name such as ``"paimon.db.t"``, which `spark`, a classic session, resolves.

        `options`: as in `forPath`. Raises UnsupportedError for Spark Connect and for a table of another format.
        """
        located = options_of_name(spark, name, "PaimonTable.forName")
        return cls.forPath(spark, **{**located, **options})

    def toDF(self, **options: str) -> DataFrame:
        """Return the rows as a DataFrame; `options` apply to this read only.

        As in SQL, Spark's own Parquet scan reads files that need no merge; `explain` shows which. By default,
        'read.min-tasks' is the number of tasks that the cluster runs at a time, so a large read uses the whole cluster.
        """
        read_options = {**self._options, **in_session_zone(options, lambda: self._spark)}
        full = dict(read_options)
        if _MIN_TASKS not in canonical(read_options):
            self._parallelism = self._parallelism or parallelism(self._spark)
            full[_MIN_TASKS] = str(self._parallelism)
        frame = path_frame(self._spark, read_options, full)
        return self._spark.read.format("paimon").options(**full).load() if frame is None else frame

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        analyze: bool = False,
        listed: int = DEFAULT_LISTED,
    ) -> Explanation:
        """Return the plan of `toDF`, and why Spark or Python reads each part (docs/guides/explain-reads.md).

        The text is the same as for EXPLAIN in SQL. Raises UnsupportedError for a read of changes.

        Args:
            columns: the names of the columns to read; `None`: all columns.
            filter: a filter as SQL text or as a predicate; `None`: all rows.
            analyze: True: Spark tasks read the rows with Python, discard them and measure the read.
            listed: the most splits, and the most sections, that the text lists.
        """
        return explain(self._spark, self._options, columns, filter, analyze=analyze, listed=listed)

    def health(self) -> TableHealth:
        """Return measurements of each bucket, and advice based on them: see `paimon_core.Table.health`.

        This process reads the metadata, so it needs access to the table.
        """
        return self._newest_table("measured").health()

    def advice(self) -> list[Advice]:
        """Return advice to make the table faster or smaller, most urgent first: see `paimon_core.Table.advice`."""
        return self._newest_table("measured").advice()

    def history(self, metrics: bool = False) -> DataFrame:
        """Return one row per snapshot, oldest first.

        ``metrics``: True: add the column ``operation_metrics``, a map of the counts of
        `paimon_core.Table.operation_metrics`; NULL for a snapshot that expires during the read. This reads the
        manifests of every commit.
        """
        address, schema = self._address, StructType([*HISTORY, _METRICS]) if metrics else HISTORY

        @reporting
        def snapshots(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            table = address.open()
            yield _history(table.snapshots(), table if metrics else None, schema)

        return map_in_arrow(self._spark.range(1, numPartitions=1), snapshots, schema)

    def compact(
        self,
        *,
        full: bool = False,
        orderBy: Sequence[str] | None = None,
        orderStrategy: str | None = None,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        buckets: Sequence[int] | None = None,
        progress: Progress | bool | None = None,
    ) -> Snapshot | None:
        """Rewrite files in one commit that changes no row; return its snapshot, `None` if no file needs compaction.

        Every bucket, group of files or range to sort is a Spark task. This process plans and commits, so it needs
        access to the table. A failed job leaves the table unchanged.

        Args:
            full, orderBy, orderStrategy, partitions, filter, buckets: the fields of `paimon_core.CompactionRequest`.
            progress: a function that is called with the bytes done and the total bytes; True: show a bar; False: show
                no bar; `None`: show a bar on terminals and in notebooks.
        """
        request = CompactionRequest(
            full=full,
            order_by=orderBy,
            order_strategy=orderStrategy,
            partitions=partitions,
            filter=filter,
            buckets=buckets,
        )
        table = self._newest_table("compacted")
        name = hide_secrets(f"compact {table.path}")
        with progress_bar(progress, name) as report:
            return TableMaintenance(table.maintenance.store, SparkRunner(self._spark, name)).run(
                request, progress=report
            )

    def alias(self, name: str) -> "PaimonTable":
        """Return the table with an alias, for use in conditions and new values of `update` and `merge`."""
        named = PaimonTable(self._spark, self._address, {**self._options, **self._merging})
        named._alias = name
        return named

    def delete(self, filter: str | Predicate | Column, *, progress: Progress | bool | None = None) -> RowChanges:
        """Delete the rows that match a filter in one commit; return their number and the snapshot.

        Spark reads the matching rows. Without a primary key, their positions are added to deletion vectors, or the
        files that contain them are rewritten. With a primary key, they are written back as deletes. A filter on
        partition columns only drops the partitions without reading them.

        Args:
            filter: a filter as SQL text or as a predicate of the engine, or any Spark condition as a Column.
            progress: as in `compact`, for the files that are rewritten.

        Raises UnsupportedError if the table does not accept deletes, CommitConflictError if other commits changed the
        same rows during every attempt.
        """
        table = self._newest_table("deleted from")
        if isinstance(filter, Column):
            with self._progress("delete from", progress) as report:
                return delete(self._target(table), filter, report)
        predicate = parse_predicate(filter) if isinstance(filter, str) else filter
        bound = bind(predicate, table.schema.fields)
        if drops_partitions(table.schema, bound):
            with collect() as metrics:
                dropped = drop_counted(table.store, bound)
                if dropped is not None:
                    return RowChanges(num_deleted_rows=dropped.rows, snapshot=dropped.snapshot, metrics=metrics)
                snapshot = table.delete(predicate)
            deleted = 0 if snapshot is None else None
            return RowChanges(num_deleted_rows=deleted, snapshot=snapshot, metrics=metrics)
        target = replace(self._target(table, str(predicate)), filter_column=filter_column(bound, table.schema.fields))
        with self._progress("delete from", progress) as report:
            return delete(target, None, report)

    def update(
        self,
        condition: str | Column | None,
        set: Mapping[str, str | Column],
        *,
        progress: Progress | bool | None = None,
    ) -> RowChanges:
        """Set columns to new values in the rows that match, in one commit; return their number and the snapshot.

        With a primary key, the changed rows are written as upserts, and no file is rewritten. Without one, the changed
        rows are written to new files, and the old rows are removed as in `delete`.

        Args:
            condition: the rows to update, as Spark SQL text or as a Column; `None`: all rows.
            set: the new value of each column that changes, as Spark SQL text or as a Column.
            progress: as in `delete`.

        Raises InvalidInputError for an unknown column, UnsupportedError if a merge of the table would discard the new
        values, CommitConflictError if other commits changed the same rows during every attempt.
        """
        table = self._newest_table("updated")
        values = assigned(table.schema, set, self._alias)
        with self._progress("update", progress) as report:
            return update(self._target(table), as_column(condition), values, report)

    def merge(self, source: DataFrame, condition: str | Column) -> MergeBuilder:
        """Return a builder of a MERGE from `source`, which `execute` runs.

        Args:
            source: the source rows; name the source and the table with `alias`.
            condition: the join condition of source rows and table rows, as Spark SQL text or as a Column.

        If this object has the option 'write.merge-schema', clauses for all columns add the columns that the table
        lacks.
        """
        target = self._target(self._newest_table("merged into"))
        return MergeBuilder(target, self._alias, source, condition, self._merge_rules)

    def _merge_rules(self, demanded: bool) -> MergeRules | None:
        """Return the schema changes that options allow, or that a statement demands; `None`: no schema changes."""
        return pop_merge_rules(canonical(self._merging), demanded=demanded)

    def _target(self, table: Table, filter: str | None = None) -> Target:
        """Return the table as the target of a statement."""
        address = self._address
        job_options = {**address.storage_options, **read_request(self._options).options, "path": address.path}
        if address.branch is not None:
            job_options["branch"] = address.branch
        alias = self._alias
        bind = (lambda rows: rows) if alias is None else (lambda rows: rows.alias(alias))
        return Target(self._spark, table, job_options, bind, filter, access=DriverAccess())

    def _progress(self, work: str, progress: Progress | bool | None) -> AbstractContextManager[Progress | None]:
        return progress_bar(progress, hide_secrets(f"{work} {self._address.path}"))

    def analyze(self, columns: Sequence[str] | str | None = None) -> Snapshot | None:
        """Compute statistics of the newest snapshot and commit them; return the new snapshot.

        Query optimizers use the statistics to plan joins. Return `None` if the table has no snapshot.

        Args:
            columns: the names of the columns to analyze; ``"*"``: every column whose type supports statistics; `None`:
                only the number of rows and their bytes.

        Raises InvalidInputError for an unknown column, UnsupportedError for a column of a nested type.
        """
        return analyze(self._spark, self._newest_table("analyzed").store, self._options, columns)

    def addFiles(
        self, paths: str | Sequence[str], partition: Mapping[str, object] | None = None, *, move: bool = False
    ) -> AddedFiles:
        """Add existing Parquet, ORC or Avro files, or directories of them: see `paimon_core.Table.add_files`.

        This process reads the footers and copies or moves the files, so it needs access to the files and the table.
        """
        return self._newest_table("added to").add_files(paths, partition, move=move)

    def expireSnapshots(
        self,
        olderThan: datetime | str | int | None = None,
        retainMax: int | None = None,
        retainMin: int | None = None,
        *,
        maxDeletes: int | None = None,
        dryRun: bool = False,
    ) -> Expired:
        """Delete old snapshots and the files that only they need, in this process; return the counts.

        Args:
            olderThan, retainMax, retainMin, maxDeletes, dryRun: the arguments of
                `paimon_core.Table.maintenance.expire_snapshots`; a text is a time in the session's time zone.
        """
        maintenance = self._newest_table("expired").maintenance
        before = self._in_session(olderThan)
        return maintenance.expire_snapshots(before, retainMax, retainMin, max_deletes=maxDeletes, dry_run=dryRun)

    def _in_session(self, time: datetime | str | int | None) -> datetime | int | None:
        """Return a time, converted to epoch milliseconds if it is a text."""
        return session_millis(time, self._spark) if isinstance(time, str) else time

    def removeOrphanFiles(self, olderThan: datetime | str | int | None = None, *, dryRun: bool = False) -> OrphanFiles:
        """Delete the unreferenced files in the table's directories; return their paths and sizes.

        If there are many, the cluster lists directories, reads manifests and deletes files.

        Args:
            olderThan, dryRun: the arguments of `paimon_core.Table.maintenance.remove_orphan_files`; a text is a time in
                the session's time zone.
        """
        return self.maintenance.remove_orphan_files(self._in_session(olderThan), dry_run=dryRun)

    def verify(self, deep: bool = False, *, progress: Progress | bool | None = None) -> VerifyReport:
        """Check all branches of the table for violations of the format, without changing anything.

        This process reads the metadata, and with `deep` the rows. `progress`: as for `compact`.
        """
        table = self._newest_table("verified")
        with self._progress("verify", progress) as report:
            return table.verify(deep, report)

    def repair(
        self,
        *,
        deep: bool = False,
        missingFiles: bool = False,
        dryRun: bool = False,
        progress: Progress | bool | None = None,
    ) -> RepairReport:
        """Repair the problems that `verify` finds, without guessing; report what was repaired and what is left.

        Args:
            deep, missingFiles, dryRun: the arguments of `paimon_core.Table.repair`. This process does the work.
            progress: as for `compact`.
        """
        table = self._newest_table("repaired")
        with self._progress("repair", progress) as report:
            return table.repair(deep=deep, missing_files=missingFiles, dry_run=dryRun, progress=report)

    @property
    def tags(self) -> TableTags:
        """Methods for tags: `list`, `get`, `create`, `replace`, `rename`, `delete`, `expire`."""
        return self._newest_table("changed").tags

    @property
    def branches(self) -> TableBranches:
        """Methods for branches: `list`, `create`, `rename`, `delete`, `fast_forward`."""
        return self._newest_table("changed").branches

    @property
    def consumers(self) -> TableConsumers:
        """Methods for consumers, the positions of named streams: `list`, `reset`, `clear`."""
        return self._newest_table("changed").consumers

    @property
    def maintenance(self) -> TableMaintenance:
        """Methods for files and snapshots that change no row; compactions run on the cluster."""
        store = self._newest_table("changed").maintenance.store
        return TableMaintenance(store, SparkRunner(self._spark, hide_secrets(f"compact {store.root}")))

    def rollbackTo(
        self,
        snapshotIdOrTag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Roll the table back to an older snapshot and return it. Newer snapshots and their tags are deleted.

        Args:
            snapshotIdOrTag: the id of the snapshot, or the name of a tag.
            timestamp: choose the newest snapshot at or before this time; a text is in the session's time zone.
            watermark: choose the newest snapshot whose watermark is not above this number.
        """
        table = self._newest_table("rolled back")
        return table.rollback_to(snapshotIdOrTag, timestamp=self._in_session(timestamp), watermark=watermark)

    def restore(
        self,
        snapshotIdOrTag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Commit the rows of an older snapshot as a new snapshot; return the newest snapshot. No snapshot is lost.

        `snapshotIdOrTag`, `timestamp` and `watermark`: as for `rollbackTo`.
        """
        table = self._newest_table("restored")
        return table.restore(snapshotIdOrTag, timestamp=self._in_session(timestamp), watermark=watermark)

    def truncate(self) -> Snapshot | None:
        """Remove every row in one commit, and return its snapshot; older snapshots stay readable."""
        return self._newest_table("truncated").truncate()

    def dropPartitions(self, partitions: Sequence[Mapping[str, object]]) -> Snapshot | None:
        """Drop `partitions`, each {column: value}, in one commit; return its snapshot, `None` if they have no rows."""
        return self._newest_table("changed").drop_partitions(partitions)

    def _newest_table(self, action: str) -> Table:
        """Return the table at its newest snapshot. Raise InvalidInputError if this object has a time travel option."""
        request = read_request(self._options)
        if request.when:
            path = hide_secrets(self._address.path)
            raise InvalidInputError(f"{path} was opened with time travel, and only its newest snapshot can be {action}")
        return open_table(request)

    def _repr_html_(self) -> str | None:
        """Return an HTML summary of the table for a notebook; this process reads the metadata."""
        return notebook_html(hide_secrets(self._address.path), self._page)

    def _page(self) -> str | None:
        request = read_request(self._options)
        table = open_any(request)
        if isinstance(table, SystemTable) or not request.when:
            return table._repr_html_()
        return summary_html(table_summary(table, **request.when))

    def __repr__(self) -> str:
        """Return the path, the snapshot, its rows and files, or the error of reading them. Reads a few small files."""
        address = self._address
        path = hide_secrets(str(TableLocation(address.path, address.branch, address.system_table)))
        details = "" if address.system_table not in (None, READ_OPTIMIZED) else f", {repr_text(self._resolved)}"
        return f"PaimonTable({path!r}{details})"

    def _resolved(self) -> tuple[FileStore, Snapshot | None]:
        request = read_request(self._options)
        return resolved_snapshot(open_table(request), **request.when)


def _history(snapshots: Sequence[Snapshot], measured: Table | None, spark_schema: StructType) -> pa.RecordBatch:
    """Return the rows of the history; most columns are attributes of a snapshot.

    `measured`: the table whose commits are measured; `None`: no metrics.
    """
    values: dict[str, list[Any]] = {
        "snapshot_id": [s.id for s in snapshots],
        "commit_time": [s.time_millis * 1000 for s in snapshots],
    }
    if measured is not None:
        values[_METRICS.name] = list(parallel_map(partial(_metrics, measured), snapshots))
    schema = expected_arrow_schema(spark_schema)
    columns = {f.name: values.get(f.name) or [getattr(s, f.name) for s in snapshots] for f in schema}
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def _metrics(table: Table, snapshot: Snapshot) -> dict[str, int] | None:
    try:
        return operation_metrics(table.store, snapshot)
    except OutOfRangeError:
        return None
