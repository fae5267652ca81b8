"""The scans of one table: of a catalog, or by its path."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql.types import StructType

from paimon_core import Explanation, Plan, Table, TableScan, TableSchema
from paimon_core.engine import (
    DEFAULT_LISTED,
    TIME_TRAVEL_OPTIONS,
    TopRows,
    conjunction,
    explain,
    first_rows,
    reads_branches,
)
from paimon_core.engine import predicate_columns as columns
from paimon_core.errors import UnsupportedError, hide_secrets
from paimon_core.options.scan import SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.internals import analyzed, java_rows, planned_read
from paimon_spark.option_names import canonical
from paimon_spark.options import batch_request, is_about_changes
from paimon_spark.reader import batch_reader
from paimon_spark.sql.bridge.conversions import java_array
from paimon_spark.sql.bridge.endpoints import ReadEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.aggregate import local_rows
from paimon_spark.sql.reads.driver_rows import small_read, small_rows
from paimon_spark.sql.reads.native import NativeChoice, divided_files, is_same_field, native_files, with_options
from paimon_spark.sql.reads.pushdown import Tree, decided_by_partitions, predicate_of, without_implied
from paimon_spark.sql.reads.scan import MatchingFiles, ScanHandler
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.session_options import NATIVE_READS, native_reads
from paimon_spark.types import spark_schema

_WIDTHS = ("TINYINT", "BOOLEAN", "SMALLINT", "INT", "DATE", "FLOAT", "BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types of columns that are cheap to decode, the cheapest first."""


def cheapest_column(schema: TableSchema) -> str:
    """Return the name of the column that costs least to read: of a partition, of a key, or the narrowest."""
    known = [*schema.partition_keys, *schema.primary_keys]
    if known:
        return known[0]
    roots = {field.name: getattr(field.type, "root", "") for field in schema.fields}
    return min(roots, key=lambda name: _WIDTHS.index(roots[name]) if roots[name] in _WIDTHS else len(_WIDTHS))


@dataclass
class TableReads(ReadEndpoint):
    """The reads of a table, for ``PaimonScanBuilder.java``."""

    jvm: Jvm
    table: Table
    schema: TableSchema
    when: Mapping[str, Any]

    def decided_filters(self, trees: str) -> str:
        """Return a text with '1' for each filter that partitions alone decide, and '0' for others."""
        schema = self._read_schema()
        return "".join("01"[decided_by_partitions(tree, schema)] for tree in json.loads(trees))

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the function of a scan narrowed to the columns and filters of the query."""
        session: dict[str, str] = json.loads(settings)
        table, given = self._current(), self._read_options(options, session)
        request = ScanRequest(
            self._columns(required),
            predicate_of(json.loads(trees), self._read_schema()),
            limit if limit >= 0 and not is_about_changes(given) else None,  # changes are read whole
            given,
            self.when,
        )
        scan = self._scan_of(table, request)
        if order is not None:
            request = self._first_rows(scan, request, json.loads(order))
        choose = partial(self._choose, native=native_reads(session.get(NATIVE_READS)))
        return handler_of(self.jvm, self._scan_function(table, scan, request, choose))

    def _scan_function(
        self,
        table: Table,
        scan: TableScan,
        request: ScanRequest,
        choose: Callable[[MatchingFiles], NativeChoice],
    ) -> ScanHandler:
        matching = MatchingFiles(replace(scan, predicate=request.predicate), request)
        return ScanHandler(
            self.schema,
            str(table.location),
            matching,
            self._planned,
            self._planned_part,
            self._stream,
            self._small_rows,
            choose,
            self.explanation,
            lambda targets: java_array(self.jvm, "java.lang.Object", [handler_of(self.jvm, one) for one in targets]),
        )

    def explanation(self, matching: MatchingFiles, choice: NativeChoice, listed: int = DEFAULT_LISTED) -> Explanation:
        """Return the explanation of a read of files in the way that was chosen.

        Raises UnsupportedError for a read of changes. ``listed``: the number of splits, and of sections, to list.
        """
        found = self._read_files(matching)
        columns = None if matching.request.columns == self.whole() else matching.request.columns.names
        scan = replace(found.scan, predicate=without_implied(found.scan.predicate))
        return replace(explain(scan, found.plan, columns, listed=listed), engine=choice.description)

    def _read_files(self, matching: MatchingFiles) -> MatchingFiles:
        """Return the files that are read, which options of the request may choose."""
        request = matching.request
        if is_about_changes(request.options):
            raise UnsupportedError(
                f"cannot explain a read of the changes of {self.table.path}: leave the options 'incremental-*' out"
            )
        return self._files_of_options(request) if request.others else matching

    def _files_of_options(self, request: ScanRequest) -> MatchingFiles:
        """Return the files that the Python data source reads for a request."""
        return MatchingFiles(batch_reader(batch_request(self._given(request)), request.columns).scan, request)

    def _first_rows(self, scan: TableScan, request: ScanRequest, order: Tree) -> ScanRequest:
        """Return the request without rows that statistics know not to be among the first ones of an order."""
        if request.others or reads_branches(scan.store) or len(order["by"].get("column", ())) != 1:
            return request
        if scan.store.schema.fields != self._read_schema().fields:
            return request
        top = TopRows(order["by"]["column"][0], order["rows"], order["descending"], order["nulls_first"])
        found = first_rows(replace(scan, predicate=request.predicate), top)
        parts = [part for part in (request.predicate, found) if part is not None]
        return replace(request, predicate=conjunction(parts))

    def _choose(self, matching: MatchingFiles, *, native: bool) -> NativeChoice:
        """Return the files of the native path, or why there is none; `native`: the session lets it be taken."""
        return self._native_files(matching) if native else NativeChoice.refused(f"{NATIVE_READS} is off")

    def _native_files(self, matching: MatchingFiles) -> NativeChoice:
        """Return the files of the native path, or why there is none."""
        request, scan = matching.request, matching.scan
        if request.others:
            return NativeChoice.refused(with_options(request.others))
        if reads_branches(scan.store):
            return NativeChoice.refused("rows come from two branches")
        if scan.store.options.has(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED):
            return NativeChoice.refused(f"{SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED.key} tags what tasks read")
        changed = self._changed_column(scan, request)
        if changed is not None:
            return NativeChoice.refused(f"column {changed} is another one in schema {scan.store.schema.id}")
        found = native_files(self.jvm, scan.store, request.columns, lambda: matching.plan)
        if isinstance(found, str):
            small = small_read(scan.store.schema, matching.plan.splits, request.columns, request.predicate)
            if small is not None:
                return NativeChoice(None, f"in the driver: {small}; {found}", by_driver=True)
            division = divided_files(self.jvm, scan.store, request.columns, matching.plan)
            return replace(NativeChoice.refused(found), division=division)
        return NativeChoice.of(found)

    def _scan_of(self, table: Table, request: ScanRequest) -> TableScan:
        """Return a scan of the moment that the request names, without its filter."""
        return table.with_store(table.store.in_microseconds()).scan(limit=request.limit, **request.moment)

    def _changed_column(self, scan: TableScan, request: ScanRequest) -> str | None:
        """Return a column of the request that the schema of the scan does not have as Spark knows it."""
        known = {field.name: field for field in self._read_schema().fields}
        there = {field.name: field for field in scan.store.schema.fields}
        asked = {*request.columns.names, *(() if request.predicate is None else columns(request.predicate))}
        names = (name for name in sorted(asked) if name in known)
        return next((n for n in names if n not in there or not is_same_field(known[n], there[n])), None)

    def _current(self) -> Table:
        """Return the table for a scan that begins now."""
        return self.table

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return the rows of an aggregation that metadata answer, as ``PaimonLocalScan.java`` reads them."""
        filters = json.loads(trees)
        request = ScanRequest(StructType(), options=self._read_options(options, json.loads(settings)), when=self.when)
        if request.others or reads_branches(self.table.store):  # they may choose other rows
            return None
        schema = self._read_schema()
        if not all(decided_by_partitions(tree, schema) for tree in filters):
            return None
        scan = self._scan_of(self._current(), request)
        if scan.store.schema.fields != schema.fields:
            return None
        scan = replace(scan, predicate=predicate_of(filters, schema))
        return local_rows(
            scan, json.loads(aggregation), f"paimon {hide_secrets(str(self.table.location))}: rows from metadata"
        )

    def _read_options(self, options: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a read; `options`: of the statement, as JSON; `settings`: of the session."""
        given: dict[str, str] = json.loads(options)
        return given

    def _options(self) -> dict[str, str]:
        """Return the options by which the Python data source finds the table."""
        raise NotImplementedError

    def _planned(self, request: ScanRequest) -> Any:
        """Return the tasks of the Python data source, as ``PlannedTasks.java`` takes them.

        Spark would start two Python processes to plan them.
        """
        planned = planned_read(PaimonDataSource(self._given(request)), request.columns)
        return self._stream(request) if planned is None else planned

    def _planned_part(self, matching: MatchingFiles, part: Plan) -> bytes | None:
        """Return the tasks of the Python data source for a part of a plan; `None`: it would read another snapshot."""
        request, snapshot = matching.request, matching.scan.snapshot
        given = self._given(request)
        if not request.moment and snapshot is not None:
            given["read.rows-of-snapshot"] = str(snapshot.id)
        reader = batch_reader(batch_request(given), request.columns)
        if snapshot is None or reader.scan.snapshot is None or reader.scan.snapshot.fingerprint != snapshot.fingerprint:
            return None
        return planned_read(PaimonDataSource(given), request.columns, reader.of_splits(part.splits))

    def _stream(self, request: ScanRequest) -> Any:
        """Return the scan of the Python data source, which has streams."""
        spark = self.jvm.active_session()
        frame = spark.read.format("paimon").options(**self._given(request)).schema(request.columns).load()
        relation = analyzed(frame)
        return relation.table().newScanBuilder(relation.options()).build()

    def _small_rows(self, matching: MatchingFiles) -> Any:
        """Return a Java Dataset of the few rows of a scan, of the snapshot that has so few; `None`: they are many."""
        request, snapshot = matching.request, matching.scan.snapshot
        given = self._given(request)
        if not request.moment and snapshot is not None:
            given["read.rows-of-snapshot"] = str(snapshot.id)
        rows = small_rows(self.jvm.active_session(), given, request.columns)
        return None if rows is None else java_rows(rows)

    def _given(self, request: ScanRequest) -> dict[str, str]:
        """Return the options of the Python data source for a request."""
        return {**self._options(), **self._with_known_columns(request).reader_options()}

    def _with_known_columns(self, request: ScanRequest) -> ScanRequest:
        """Return the request so that a moment chosen by an option has the columns that Spark knows: those of now."""
        if self.when or not request.moment:
            return request
        scan = self._scan_of(self._current(), request)
        if scan.snapshot is None or scan.store.schema.fields == self._read_schema().fields:
            return request
        named = canonical(request.options)
        others = {key: value for key, value in named.items() if key not in (*TIME_TRAVEL_OPTIONS, "scan.mode")}
        return replace(request, options={**others, "read.rows-of-snapshot": str(scan.snapshot.id)})

    def _read_schema(self) -> TableSchema:
        """Return the schema that reads use: Spark's timestamps have microseconds."""
        return self.table.store.with_schema(self.schema).in_microseconds().schema

    def _columns(self, required: str | None) -> StructType:
        """Return the columns of a query, or the cheapest column of the table if it needs none: a count.

        Spark's Python source cannot read rows without columns.
        """
        if required is None:
            return self.whole()
        columns = StructType.fromJson(json.loads(required))
        return (
            columns if columns.fields else StructType([spark_schema(self.schema.fields)[cheapest_column(self.schema)]])
        )

    def whole(self) -> StructType:
        """Return the columns that Spark knows."""
        return spark_schema(self.schema.fields)
