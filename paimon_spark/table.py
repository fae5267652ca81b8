"""A Paimon table by its place, for Spark sessions of both kinds."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from paimon_core.commit.retry import retry_on_conflict
from paimon_core.errors import CommitConflictError, InvalidInputError, OutOfRangeError, hide_secrets
from paimon_core.maintenance.delete import RETRIES, check_deletes, drops_partitions, shows_all
from paimon_core.maintenance.execute import Progress
from paimon_core.maintenance.expire_snapshots import Expired
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.table import Filter, Table
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.distribute import SparkRunner, slots
from paimon_spark.option_names import canonical
from paimon_spark.options import Place, read_request
from paimon_spark.progress import progress_bar
from paimon_spark.reader import open_table
from paimon_spark.report import reporting
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


_MIN_TASKS = "read.min-tasks"


class PaimonTable:
    """A table at a place, in sessions of both kinds. Rows are touched on the cluster only."""

    def __init__(self, spark: SparkSession, place: Place, options: Mapping[str, str]) -> None:
        self._spark, self._place, self._options = spark, place, dict(options)
        self._slots: int | None = None

    @classmethod
    def forPath(cls, spark: SparkSession, path: str, **options: str) -> "PaimonTable":
        """The table in the directory `path`; `options` are those of a read, storage options among them."""
        given = {**options, "path": path}
        return cls(spark, read_request(given).place, given)

    def toDF(self, **options: str) -> DataFrame:
        """The rows as a DataFrame; `options` are added for this read.

        Unless option 'read.min-tasks' is given, it is the number of tasks that the cluster runs at a time, so that a
        read which is large enough keeps all of them busy.
        """
        given = {**self._options, **options}
        if _MIN_TASKS not in canonical(given):
            if self._slots is None:
                self._slots = slots(self._spark)
            given[_MIN_TASKS] = str(self._slots)
        return self._spark.read.format("paimon").options(**given).load()

    def history(self) -> DataFrame:
        """One row per snapshot kept, oldest first."""
        place = self._place

        @reporting
        def snapshots(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _history(place.open().snapshots())

        return self._spark.range(1, numPartitions=1).mapInArrow(snapshots, HISTORY)

    def compact(
        self,
        *,
        full: bool = False,
        order_by: Sequence[str] | None = None,
        order_strategy: str | None = None,
        partitions: Sequence[Mapping[str, object]] | None = None,
        filter: Filter = None,
        progress: Progress | bool | None = None,
    ) -> Snapshot | None:
        """Rewrite files in one commit that changes no row; None when there is nothing to do.

        As `paimon_core.Table.compact`, but every bucket, group of files or range to be sorted is a task of Spark. It is
        planned and committed here, so this process has to reach the table as well. A job that fails leaves the table
        as it was. `progress`: None for a bar on terminals and in notebooks, False for none, True for one anywhere, or a
        function that is told about how many bytes are done, of how many.
        """
        table = self._of_now("compacted")
        name = hide_secrets(f"compact {table.path}")
        with progress_bar(progress, name) as tell:
            return table.compact(
                full=full,
                order_by=order_by,
                order_strategy=order_strategy,
                partitions=partitions,
                filter=filter,
                progress=tell,
                runner=SparkRunner(self._spark, name),
            )

    def delete(self, filter: str | Predicate, *, progress: Progress | bool | None = None) -> Snapshot | None:
        """Delete the rows that match, in one commit; None where there are none.

        As `paimon_core.Table.delete`, but rows are looked at on the cluster: of a table without a primary key every
        file is a task of Spark (every bucket, where deletes are marked), of one with a primary key Spark reads what
        matches and writes it back as deletes. `progress` is that of `compact`, for tables without a primary key.
        """
        table = self._of_now("deleted from")
        predicate = parse_predicate(filter) if isinstance(filter, str) else filter
        bound = bind(predicate, table.schema.fields)
        if table.schema.primary_keys and not drops_partitions(table.schema, bound):
            check_deletes(table.schema)
            table.committer()  # what cannot be committed to is refused before any work
            return retry_on_conflict(partial(self._retracted, table, predicate), RETRIES)
        name = hide_secrets(f"delete from {table.path}")
        with progress_bar(progress, name) as tell:
            return table.delete(predicate, progress=tell, runner=SparkRunner(self._spark, name))

    def _retracted(self, table: Table, predicate: Predicate) -> Snapshot | None:
        """Rows of kind -D for those that match, written by Spark and committed while they are the rows there are."""
        snapshot = table.snapshot()
        if snapshot is None:
            return None
        place, user, read_at = self._place, uuid.uuid4().hex, str(snapshot.id)
        given = {**place.storage_options, **read_request(self._options).options, "path": place.path}
        if place.branch is not None:
            given["branch"] = place.branch
        seen = {**given, **shows_all(table.schema), "filter": str(predicate)}
        try:
            rows = self._spark.read.format("paimon").options(**seen).load()  # of this snapshot or of a later one
            deletes = rows.withColumn(ROW_KIND.name, F.lit("-D"))
            write = deletes.write.format("paimon").mode("append").options(**given)
            write = write.option("row-kind-column", ROW_KIND.name).option("commit.user", user)
            write.option("write.unchanged-since", read_at).save()
        except Exception as error:  # of a class of Spark's, whatever was raised in its Python worker
            reason = str(error)
            if CommitConflictError.__name__ in reason:
                raise CommitConflictError(
                    f"others changed rows of {table.path} that are to be deleted: {reason}"
                ) from error
            if OutOfRangeError.__name__ in reason:
                raise OutOfRangeError(
                    f"rows of {table.path} that are to be deleted could not be read: {reason}"
                ) from error
            raise
        later = range(table.store.snapshots.latest_id() or 0, snapshot.id, -1)
        return next(
            (s for s in map(table.store.snapshots.find, later) if s is not None and s.commit_user == user), None
        )

    def expireSnapshots(
        self,
        older_than: datetime | str | int | None = None,
        retain_max: int | None = None,
        retain_min: int | None = None,
        *,
        dry_run: bool = False,
    ) -> Expired:
        """Remove old snapshots, and the files that only they need; what went, or with `dry_run` would go.

        As `paimon_core.Table.expire_snapshots`; it is done by this process, which has to reach the table.
        """
        table = self._of_now("expired")
        return table.expire_snapshots(older_than, retain_max, retain_min, dry_run=dry_run)

    def _of_now(self, done: str) -> Table:
        """The table, which is to be changed from here."""
        request = read_request(self._options)
        if request.when:
            raise InvalidInputError(f"{self!r} was opened at a moment in time, and only the present can be {done}")
        return open_table(request)

    def __repr__(self) -> str:
        return f"PaimonTable({hide_secrets(self._place.path)!r})"


def _history(snapshots: Iterable[Snapshot]) -> pa.RecordBatch:
    rows = [
        {
            "snapshot_id": s.id,
            "schema_id": s.schema_id,
            "commit_kind": s.commit_kind,
            "commit_time": s.time_millis * 1000,
            "commit_user": s.commit_user,
            "commit_identifier": s.commit_identifier,
            "total_record_count": s.total_record_count,
            "delta_record_count": s.delta_record_count,
        }
        for s in snapshots
    ]
    schema = expected_arrow_schema(HISTORY)
    return pa.RecordBatch.from_arrays([pa.array([row[f.name] for row in rows], f.type) for f in schema], schema=schema)
