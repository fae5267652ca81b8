"""A table that is opened by its path in a classic session and read with the same strategies as a catalog table."""

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core import Explanation, Table, TableRead, TableScan
from paimon_core.engine import (
    DEFAULT_LISTED,
    MAIN_BRANCH,
    TIME_TRAVEL_OPTIONS,
    Filter,
    Predicate,
    Runner,
    bound_filter,
    conjunction,
    execute,
    predicate_columns,
    project,
    protected_read,
    reads_branches,
    split_parts,
)
from paimon_core.errors import PaimonError, UnsupportedError, hide_secrets
from paimon_spark.char_columns import marked
from paimon_spark.distribute import SparkRunner
from paimon_spark.filter_text import needs_spark
from paimon_spark.internals import is_classic, java_session
from paimon_spark.option_names import READ_OPTIONS, canonical
from paimon_spark.options import ReadRequest, batch_request, is_about_changes, read_request
from paimon_spark.reader import open_table, schema_at
from paimon_spark.sql.bridge.catalogs import open_table_and_storage
from paimon_spark.sql.bridge.conversions import java_struct
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.explanation import explanation_of_plan
from paimon_spark.sql.reads.native import with_options
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.strategy import Tasks, choose, summary
from paimon_spark.sql.reads.table_reads import TableReads
from paimon_spark.sql.session_options import (
    MASK_MEMORY,
    NATIVE_READS,
    VARIANT_SETTINGS,
    ReadSettings,
    native_reads,
)
from paimon_spark.types import spark_schema

_log = logging.getLogger(__name__)
_OF_THE_DATA_SOURCE = READ_OPTIONS.keys() - {"columns", "filter", "limit"}
"""Options that only the Python data source supports."""
_SNAPSHOT_OPTIONS = {*TIME_TRAVEL_OPTIONS, "scan.mode"}


@dataclass
class PathReads(TableReads):
    """The reads of a table by its path, for ``PathTable.java``."""

    request: ReadRequest
    options: Mapping[str, str]
    """The read options under their canonical names."""
    own_filter: Predicate | None = None
    """The option `filter`, bound to the columns of the read; `None`: not set."""

    @classmethod
    def of(cls, jvm: Any, options: Mapping[str, str]) -> "PathReads":
        """Return the reads with these options. `jvm`: the JVM of the session; `None`: the session is not classic."""
        request = batch_request(options)
        table = open_table(request)
        reads = cls(jvm, table, schema_at(table, request.when), {}, request, canonical(options))
        return replace(reads, own_filter=bound_filter(request.filter, reads._read_schema().fields))

    def whole(self) -> StructType:
        """Return the columns of the read."""
        fields = project(self.schema, self.request.columns, metadata=True)
        return marked(spark_schema(fields), fields)

    def handler(self) -> Any:
        """Return the reads as a handler for ``PaimonScanBuilder.java``."""
        return handler_of(self.jvm, self)

    def frame(self) -> DataFrame:
        """Return the rows as a DataFrame that chooses a reader for each query."""
        name = f"paimon {hide_secrets(str(self.table.location))}"
        table = self.jvm.bridge.PathTable(name, java_struct(self.jvm, self.whole()), self.handler())
        return DataFrame(table.rows(java_session(self.jvm.spark)), self.jvm.spark)

    def explain(
        self, columns: Sequence[str] | None, filter: Filter, reason: str | None, listed: int, runner: Runner | None
    ) -> Explanation:
        """Return the explanation of a read.

        Args:
            columns: the names of the columns; `None`: the columns of the options, or all.
            filter: an additional filter; `None`: no filter.
            reason: the reason why Spark's own scan does not read; `None`: no reason is known yet.
            listed: the most splits, and the most sections, to list.
            runner: the runner that runs and measures the read; `None`: do not run it.
        """
        fields = project(self.schema, columns or self.request.columns, metadata=True)
        schema_fields = self._read_schema().fields
        parts = [part for part in (bound_filter(filter, schema_fields), self.own_filter) if part is not None]
        request = ScanRequest(spark_schema(fields), conjunction(parts), self.request.limit, self._snapshot_options())
        table = self._current()
        planned = self._planned(table, self._scan_of(table, request), request)
        if reason is not None and not reads_branches(table.store):
            planned = planned.of_options()
        started = time.monotonic()
        plan, scan = planned.plan, planned.scan
        seconds = time.monotonic() - started
        explained = explanation_of_plan(planned, self.whole(), self._strategy(planned, reason), listed)
        if runner is None:
            return explained
        if reads_branches(table.store) and not request.time_travel:
            raise UnsupportedError(f"cannot measure a read of two branches of {table.path}: measure each of them")
        read = TableRead(scan.store, project(scan.store.schema, request.columns.names, metadata=True), scan.predicate)
        with protected_read(scan.store, scan.snapshot):
            return execute(explained, replace(read, skip_bad_files=True), plan, seconds, runner)

    def _planned(self, table: Table, scan: TableScan, request: ScanRequest) -> PlannedScan:
        planned, rows = super()._planned(table, scan, request), self.request
        selects = None if self._is_by_partition() else self.own_filter
        return replace(planned, batch_rows=rows.batch_rows, min_tasks=rows.min_tasks, selects=selects)

    def _is_by_partition(self) -> bool:
        """Return True if partition values decide the option `filter`, so that every row of the plan's files matches."""
        names = set() if self.own_filter is None else predicate_columns(self.own_filter)
        return names <= set(self.schema.partition_keys)

    def _with_options(self, request: ScanRequest) -> ScanRequest:
        parts = [part for part in (self.own_filter, request.predicate) if part is not None]
        limits = [limit for limit in (self.request.limit, request.limit) if limit is not None]
        return replace(request, predicate=conjunction(parts), limit=min(limits, default=None))

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """See `TableReads`. The option `limit` chooses rows before the filters and the order of the query."""
        if self.request.limit is not None:
            trees, order = "[]", None
        return super().scan(required, trees, limit, order, options, settings)

    def decided_filters(self, trees: str) -> str:
        """See `TableReads`. After the option `limit`, Spark evaluates all filters."""
        return super().decided_filters(trees) if self.request.limit is None else "0" * len(json.loads(trees))

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """See `TableReads`. The options `filter` and `limit` choose rows, which metadata do not count."""
        if self.own_filter is not None or self.request.limit is not None:
            return None
        return super().aggregate(trees, aggregation, options, settings)

    def _strategy(self, planned: PlannedScan, reason: str | None) -> str:
        """Describe the reader of a scan. `reason`: why it is not native; `None`: it depends on the files."""
        try:
            strategy = Tasks(reason) if reason else choose(planned, self.jvm, self._settings())
        except UnsupportedError as error:  # the JVM accepts no classes
            strategy = Tasks(str(error))
        return summary(strategy)

    def _settings(self) -> ReadSettings:
        return ReadSettings.of({name: self.jvm.spark.conf.get(name, None) for name in (MASK_MEMORY, *VARIANT_SETTINGS)})

    def _current(self) -> Table:
        return open_table(self.request)  # a DataFrame reads the newest rows each time it runs

    def _read_options(self, options: str, settings: Mapping[str, str]) -> dict[str, str]:
        return self._snapshot_options()

    def _snapshot_options(self) -> dict[str, str]:
        return {key: value for key, value in self.options.items() if key in _SNAPSHOT_OPTIONS}

    def _options(self) -> dict[str, str]:
        return {key: value for key, value in self.options.items() if key not in {*_SNAPSHOT_OPTIONS, "filter", "limit"}}


def unsuitable_read(spark: SparkSession, options: Mapping[str, str]) -> str | None:
    """Return the reason why no read with these options can be native; `None`: it depends on the files."""
    if not is_classic(spark):
        return "a session of Spark Connect has no JVM to call"
    return unsuitable_options(options, spark.conf.get(NATIVE_READS, None))


def unsuitable_options(options: Mapping[str, str], setting: str | None) -> str | None:
    """Return the reason why no read of a classic session can be native; `None`: it depends on the files.

    Args:
        options: the options of the read.
        setting: the value of `NATIVE_READS` in the session; `None`: not set.
    """
    if not native_reads(setting):
        return f"{NATIVE_READS} is off"
    if is_about_changes(options):
        return "it reads changes"
    others = _OF_THE_DATA_SOURCE.intersection(canonical(options)).union(read_request(options).options)
    return with_options(others) if others else None


def path_frame(spark: SparkSession, user_options: Mapping[str, str], options: Mapping[str, str]) -> DataFrame | None:
    """Return a table's rows as a DataFrame that chooses a reader per query; `None`: use the Python data source.

    Args:
        spark: the session.
        user_options: the options that the user gave.
        options: the options with which the Python data source would read.
    """
    try:
        if unsuitable_read(spark, user_options) is not None or needs_spark(spark, canonical(options).get("filter")):
            return None
        return PathReads.of(Jvm(spark), options).frame()
    except (PaimonError, Py4JError) as error:  # the data source will raise its own errors, and needs no Java classes
        _log.info("the Python data source reads: %s", hide_secrets(str(error)))
        return None


def options_of_name(spark: SparkSession, name: str, command: str) -> dict[str, str]:
    """Resolve a table name in the session and return the options that locate the table.

    Raises UnsupportedError for Spark Connect and for another table format, and Spark's error for an unknown table.
    """
    if not is_classic(spark):
        raise UnsupportedError(f"{command} needs a classic session, which has catalogs: use PaimonTable.forPath")
    table, storage = open_table_and_storage(Jvm(spark), spark, split_parts(name), command)
    return {
        **storage,
        "path": str(replace(table.location, branch=None)),
        "branch": table.location.branch or MAIN_BRANCH,
    }


def explain(
    spark: SparkSession,
    user_options: Mapping[str, str],
    columns: Sequence[str] | None,
    filter: Filter,
    *,
    analyze: bool = False,
    listed: int = DEFAULT_LISTED,
) -> Explanation:
    """Return the plan of a read and its reader; the text is the same as for EXPLAIN in SQL.

    Raises UnsupportedError for a read of changes.

    Args:
        spark: the session.
        user_options: the options that the user gave.
        columns: the names of the columns; `None`: all columns.
        filter: a filter as SQL text or as a predicate; `None`: all rows.
        analyze: True: Spark tasks read the rows, discard them and measure the read.
        listed: the most splits, and the most sections, that the text lists.
    """
    if is_about_changes(user_options):
        raise UnsupportedError("cannot explain a read of changes: leave out the options that choose changes")
    runner = SparkRunner(spark, "explain") if analyze else None
    jvm = Jvm(spark) if is_classic(spark) else None
    return PathReads.of(jvm, user_options).explain(
        columns, filter, unsuitable_read(spark, user_options), listed, runner
    )
