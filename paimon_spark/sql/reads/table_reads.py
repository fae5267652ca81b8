"""The scans of a table that is opened by its name in a catalog or by its path."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import StructType

from paimon_core import Table, TableScan, TableSchema
from paimon_core.engine import Predicate, TopRows, bind, conjunction, first_rows, predicate_columns, reads_branches
from paimon_core.errors import hide_secrets
from paimon_spark.internals import plans_reads
from paimon_spark.options import is_about_changes
from paimon_spark.sql.bridge.endpoints import ReadEndpoint
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.aggregate import local_rows
from paimon_spark.sql.reads.bucketed import SETTING as BUCKETING
from paimon_spark.sql.reads.live_rows import live_rows
from paimon_spark.sql.reads.native import is_same_field
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.pushdown import Tree, decided_by_partitions, predicate_of, variant_tests
from paimon_spark.sql.reads.scan import ScanHandler
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.session_options import ReadSettings
from paimon_spark.types import spark_schema

_WIDTHS = ("TINYINT", "BOOLEAN", "SMALLINT", "INT", "DATE", "FLOAT", "BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Column types that are cheap to decode, cheapest first."""


def cheapest_column(schema: TableSchema) -> str:
    """Return the cheapest column to read: a partition column, a key column, or the narrowest column."""
    key_columns = [*schema.partition_keys, *schema.primary_keys]
    if key_columns:
        return key_columns[0]
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
        """Return a text with one digit per filter: '1' if partition values decide the filter, else '0'."""
        schema = self._read_schema()
        if self.table.store.is_restricted:
            return "0" * len(json.loads(trees))  # Spark tests masked values
        return "".join("01"[decided_by_partitions(tree, schema)] for tree in json.loads(trees))

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the handler of a scan with the columns and filters of the query, as ``Tagged.java``."""
        session: dict[str, str] = json.loads(settings)
        table, chosen_options = self._current(), self._read_options(options, session)
        request = ScanRequest(
            self._columns(required),
            predicate_of(json.loads(trees), self._read_schema()),
            limit if limit >= 0 and not is_about_changes(chosen_options) else None,  # changes are read whole
            chosen_options,
            self.when,
        )
        request = self._with_options(request)
        scan = self._scan_of(table, request)
        if order is not None:
            request = self._first_rows(scan, request, json.loads(order))
        planned, settings_of_reads = self._planned(table, scan, request), ReadSettings.of(session)
        planned.variant_tests = self._variant_tests(planned.scan, json.loads(trees))
        planned.scan = planned.scan.enforcing()
        restricted = planned.scan.store.is_restricted
        planned.asks_buckets = plans_reads() and session.get(BUCKETING) == "true" and not restricted
        handler = ScanHandler(self.jvm, self.schema, self.whole(), str(table.location), planned, settings_of_reads)
        return handler.to_java()

    def _with_options(self, request: ScanRequest) -> ScanRequest:
        """Return the request with the filter and the limit of the options of the reads."""
        return request

    def _planned(self, table: Table, scan: TableScan, request: ScanRequest) -> PlannedScan:
        """Return the unplanned scan of a request, with its predicate.

        If an option chooses the snapshot, its rows are read with the table's current columns, which Spark expects.

        Args:
            table: the table.
            scan: the result of `_scan_of` for the request.
            request: the request.
        """
        fields, predicate = self._read_schema().fields, request.predicate
        mismatch = self._mismatch(scan, request)
        current_columns = bool(
            not self.when and request.time_travel and scan.snapshot and scan.store.schema.fields != fields
        )
        if current_columns:
            now = table.with_store(table.store.in_microseconds()).scan(limit=request.limit)
            scan = replace(now, snapshot=scan.snapshot)
        if predicate is not None and scan.store.schema.fields != fields:
            predicate = bind(predicate, scan.store.schema.fields)
        return PlannedScan(replace(scan, predicate=predicate), request, self._options(), mismatch, current_columns)

    def _variant_tests(self, scan: TableScan, trees: list[Tree | None]) -> Predicate | None:
        """Return the tests of values in variants, bound to the columns of the scan; `None`: no test can be used."""
        fields, tests = scan.store.schema.fields, variant_tests(trees, self._read_schema())
        if tests is None or scan.store.is_restricted:
            return None
        return bind(tests, fields) if fields != self._read_schema().fields else tests

    def _first_rows(self, scan: TableScan, request: ScanRequest, order: Tree) -> ScanRequest:
        """Narrow the request to rows that may be among the first rows of an order, according to statistics."""
        restricted = scan.store.is_restricted
        if restricted or request.other_options or reads_branches(scan.store) or len(order["by"].get("column", ())) != 1:
            return request
        if scan.store.schema.fields != self._read_schema().fields:
            return request
        top = TopRows(order["by"]["column"][0], order["rows"], order["descending"], order["nulls_first"])
        bound = first_rows(replace(scan, predicate=request.predicate), top)
        parts = [part for part in (request.predicate, bound) if part is not None]
        return replace(request, predicate=conjunction(parts))

    def _scan_of(self, table: Table, request: ScanRequest) -> TableScan:
        """Return a scan of the snapshot that the request chooses, without its filter."""
        return table.with_store(table.store.in_microseconds()).scan(limit=request.limit, **request.time_travel)

    def _mismatch(self, scan: TableScan, request: ScanRequest) -> str | None:
        """Describe a requested column that differs between Spark's schema and the scan's; `None`: no difference."""
        fields = {field.name: field for field in self._read_schema().fields}
        stored = {field.name: field for field in scan.store.schema.fields}
        names = {*request.columns.names, *(() if request.predicate is None else predicate_columns(request.predicate))}
        for name in sorted(names & fields.keys()):
            if name not in stored or not is_same_field(fields[name], stored[name]):
                return f"column {name} differs in schema {scan.store.schema.id}"
        return None

    def _current(self) -> Table:
        """Return the table for a new scan."""
        return self.table

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return the rows of an aggregation that metadata can answer, in the form of ``PaimonLocalScan.java``."""
        filters, session = json.loads(trees), json.loads(settings)
        request = ScanRequest(StructType(), options=self._read_options(options, session), when=self.when)
        if request.other_options or reads_branches(self.table.store):  # they may change the rows
            return None
        if self.table.store.is_restricted:
            return None
        schema = self._read_schema()
        if not all(decided_by_partitions(tree, schema) for tree in filters):
            return None
        scan = self._scan_of(self._current(), request)
        if scan.store.schema.fields != schema.fields:
            return None
        scan = replace(scan, predicate=predicate_of(filters, schema))
        return local_rows(
            scan,
            json.loads(aggregation),
            f"paimon {hide_secrets(str(self.table.location))}: rows from metadata",
            lambda plan: live_rows(self.jvm, scan.store, plan, ReadSettings.of(session)),
        )

    def _read_options(self, options: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the read options, from the statement (`options`, as JSON) and the session (`settings`)."""
        statement_options: dict[str, str] = json.loads(options)
        return statement_options

    def _options(self) -> dict[str, str]:
        """Return the options with which the Python data source opens the table."""
        raise NotImplementedError

    def _read_schema(self) -> TableSchema:
        """Return the schema for reads, with timestamps in microseconds as in Spark."""
        return self.table.store.with_schema(self.schema).in_microseconds().schema

    def _columns(self, required: str | None) -> StructType:
        """Return the columns of a query; for a query without columns, such as a count, the cheapest column.

        Spark's Python data source cannot read rows without columns.
        """
        if required is None:
            return self.whole()
        columns = StructType.fromJson(json.loads(required))
        return (
            columns if columns.fields else StructType([spark_schema(self.schema.fields)[cheapest_column(self.schema)]])
        )

    def whole(self) -> StructType:
        """Return all columns that Spark sees."""
        return spark_schema(self.schema.fields)
