"""The maintenance and the history of a table opened by its path, in classic Spark sessions and over Connect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

from paimon_core import (
    Advice,
    CompactionRequest,
    Expired,
    OrphanFiles,
    RepairReport,
    Snapshot,
    Table,
    TableBranches,
    TableConsumers,
    TableHealth,
    TableMaintenance,
    TableTags,
    VerifyReport,
)
from paimon_core.engine import Filter, Progress, operation_metrics, parallel_map
from paimon_core.errors import InvalidInputError, OutOfRangeError, hide_secrets
from paimon_spark.analyze import analyze
from paimon_spark.distribute import SparkRunner
from paimon_spark.internals import map_in_arrow
from paimon_spark.options import TableAddress, read_request
from paimon_spark.progress import progress_bar
from paimon_spark.reader import open_table
from paimon_spark.report import reporting
from paimon_spark.times import session_millis
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
        StructField("operation", StringType(), True),
        StructField("writer_version", StringType(), True),
    ]
)


_METRICS = StructField("operation_metrics", MapType(StringType(), LongType(), False), True)


class MaintainedTable:
    """A table opened by its path: its history, its metadata, and changes of files and snapshots that change no row.

    Args:
        spark: the session, classic or of Connect.
        address: the path and the storage of the table.
        options: the read options.
    """

    def __init__(self, spark: SparkSession, address: TableAddress, options: Mapping[str, str]) -> None:
        self._spark, self._address, self._options = spark, address, options

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
            maintenance = TableMaintenance(table.maintenance.store, SparkRunner(self._spark, name))
            return maintenance.run(request, progress=report).snapshot

    def analyze(self, columns: Sequence[str] | str | None = None) -> Snapshot | None:
        """Compute statistics of the newest snapshot and commit them; return the new snapshot.

        Query optimizers use the statistics to plan joins. Return `None` if the table has no snapshot.

        Args:
            columns: the names of the columns to analyze; ``"*"``: every column whose type supports statistics; `None`:
                only the number of rows and their bytes.

        Raises InvalidInputError for an unknown column, UnsupportedError for a column of a nested type.
        """
        return analyze(self._spark, self._newest_table("analyzed").store, self._options, columns)

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

    def _progress(self, work: str, progress: Progress | bool | None) -> AbstractContextManager[Progress | None]:
        return progress_bar(progress, hide_secrets(f"{work} {self._address.path}"))

    def _newest_table(self, action: str) -> Table:
        """Return the table at its newest snapshot. Raise InvalidInputError if this object has a time travel option."""
        request = read_request(self._options)
        if request.when:
            path = hide_secrets(self._address.path)
            raise InvalidInputError(f"{path} was opened with time travel, and only its newest snapshot can be {action}")
        return open_table(request)


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
