"""The scans of system tables of a catalog. Small results become part of the plan; tasks read larger results."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from paimon_core import DataSplit, SystemTable
from paimon_core.engine import MAIN_BRANCH, SystemRead, conjunction, read_only
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_spark.datasource import reader_of_options
from paimon_spark.option_names import ENDS
from paimon_spark.options import catalog_option
from paimon_spark.sql.bridge.endpoints import ScanEndpoint
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.pushdown import predicate_of
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.source import data_source_scan, source_of_reader, tagged, tagged_scan
from paimon_spark.sql.table import TableHandler
from paimon_spark.times import in_session_zone
from paimon_spark.types import spark_schema

MAX_LOCAL_ROWS = 5_000
"""The most rows in a plan; they are sent to the JVM as text."""
_MILLIS = pa.timestamp("ms")


@dataclass
class SystemTableHandler(TableHandler):
    """The handler of a system table, which is read-only: a write raises UnsupportedError with the table's name."""

    table: SystemTable  # type: ignore[assignment]  # every method that uses another kind of table is overridden

    def decided_filters(self, trees: str) -> str:
        """Return '0' for each filter, so that Spark evaluates all filters again."""
        return "0" * len(json.loads(trees))

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return `None`: Spark computes every aggregation."""
        return None

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the rows for ``PaimonLocalScan.java`` or the handler of a scan, as ``Tagged.java``."""
        read_options = self._options_of_read(options, json.loads(settings))
        predicate = predicate_of(json.loads(trees), self.schema)
        least = limit if limit >= 0 else None
        request = ScanRequest(self._columns(required), predicate, least, read_options, self.when)
        kind = self.table.kind
        rows = self._local(request) if kind.of_catalog or not (kind.of_rows or request.other_options) else None
        if rows is not None:
            return tagged(self.jvm, "local", rows)
        if self.table.kind.of_rows and limit >= 0:  # each task would read up to the limit
            request = replace(request, limit=None)
        handler = SystemScanHandler(self.jvm, self.table, request, self._options())
        return tagged_scan(self.jvm, handler, handler.description())

    def _options_of_read(self, options: str, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the read options; tables without history ignore time travel options of the session."""
        if self.table.kind.travels:
            return self._read_options(options, settings)
        return in_session_zone(json.loads(options), self.jvm.active_session)

    def _local(self, request: ScanRequest) -> str | None:
        """Return the rows as JSON; `None`: there are too many, or some values have no text form."""
        read = self.table.read(request.columns.names, request.predicate, **request.time_travel)
        if any(pa.types.is_nested(kind) for kind in read.schema.types):
            return None
        batches, rows = [], 0
        for batch in chain.from_iterable(read.to_batches(part) for part in read.plan()):
            batches.append(batch)
            rows += batch.num_rows
            if rows > MAX_LOCAL_ROWS and not self.table.kind.of_catalog:
                return None
        table = pa.Table.from_batches(batches, read.schema)
        columns = [_texts(column).to_pylist() for column in table.columns]
        shown = hide_secrets(str(self.table.location))
        return json.dumps(
            {
                "schema": request.columns.json(),
                "rows": list(zip(*columns, strict=True)),
                "description": f"paimon {shown}: {rows} rows from metadata",
            }
        )

    def _columns(self, required: str | None) -> StructType:
        """Return the columns of a query; for a query without columns, such as a count, the first column."""
        whole = self.whole()
        columns = whole if required is None else StructType.fromJson(json.loads(required))
        return columns if columns.fields else StructType(whole.fields[:1])

    def _options(self) -> dict[str, str]:
        storage = {str(key): str(value) for key, value in self.catalog.storage_options.items()}
        location = self.table.location
        named = {**storage, **catalog_option(self.table), "path": str(replace(location, branch=None))}
        return {**named, "branch": location.branch or MAIN_BRANCH}

    # ---- writes

    def truncate(self) -> bool:
        """Raise UnsupportedError."""
        self._refuse()
        return False

    def with_merged_columns(self, columns: str, options: str, demanded: bool, by_name: bool) -> Any:
        """Raise UnsupportedError."""
        self._refuse()

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise UnsupportedError."""
        self._refuse()

    def explain_row_changes(self, trees: str | None) -> str:
        """Raise UnsupportedError."""
        self._refuse()
        return ""

    def _writes(self) -> Any:
        self._refuse()

    def _change(self, run: Callable[..., Any], session: Any, plan: Any) -> Any:
        self._refuse()

    def _refuse(self) -> None:
        raise read_only(hide_secrets(str(self.table.location)))


@dataclass
class SystemScanHandler(ScanEndpoint):
    """The handler of a scan of a system table, for ``PaimonScan.java``."""

    jvm: Jvm
    table: SystemTable
    request: ScanRequest
    address: Mapping[str, str]
    """The options with which the Python data source opens the table."""

    def description(self) -> str:
        """Return the properties of the scan that Spark needs for planning, as JSON."""
        columns = self.request.columns
        options = ", ".join(sorted(self.request.options))
        parts: Mapping[str, Any] = {
            "columns": ", ".join(columns.names),
            "filter": self.request.predicate,
            "limit": self.request.limit,
            "options": options or None,
            "time travel": self.request.when or None,
        }
        said = "".join(f", {name}: {value}" for name, value in parts.items() if value is not None)
        return json.dumps(
            {
                "columns": columns.json(),
                "whole": spark_schema(self.table.schema.fields).json(),
                "partitions": [],
                "text": f"paimon {hide_secrets(str(self.table.location))}{said}, read by Python",
            }
        )

    def parts(self) -> None:
        """Return `None`: the scan is not divided."""

    def explain(self) -> None:
        """Return `None`: a system table has no data files to explain."""

    def source(self, trees: str) -> Any:
        """Return the tasks that read the rows, as ``Tagged.java``; runtime filters of a join narrow the read."""
        filters = json.loads(trees)
        parts = [self.request.predicate, predicate_of(filters, self.table.schema) if filters else None]
        request = replace(self.request, predicate=conjunction([part for part in parts if part is not None]))
        reader = reader_of_options(self._source_options(), request.columns, request.predicate, request.limit)
        return source_of_reader(self.jvm, reader, request, self._source_options()).to_java(self.jvm)

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which supports streams."""
        return data_source_scan(self.jvm, self.request, self._source_options())

    def _source_options(self) -> dict[str, str]:
        return {**self.address, **self.request.source_options()}

    def statistics(self) -> str:
        """Return the size of the scan as JSON."""
        if not self.table.kind.of_rows or not self.request.other_options.keys().isdisjoint(ENDS):
            return json.dumps({"rows": None, "bytes": MAX_LOCAL_ROWS * 100, "columns": {}})
        splits = _splits(self.table.read(filter=self.request.predicate, **self.request.time_travel))
        rows, size = sum(split.row_count for split in splits), sum(split.size for split in splits)
        return json.dumps({"rows": rows, "bytes": size, "columns": {}})


def _splits(read: SystemRead) -> Sequence[DataSplit]:
    return [part for part in read.plan() if isinstance(part, DataSplit)]


def check_time_travel(table: SystemTable, when: Mapping[str, Any]) -> None:
    """Raise InvalidInputError for time travel in a system table without history."""
    if when and not table.kind.travels:
        raise InvalidInputError(f"{table.location} has no history: leave out VERSION AS OF and TIMESTAMP AS OF")


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as the texts of Spark's internal values."""
    if column.type == _MILLIS:
        column = pc.multiply(column.cast(pa.int64()), 1000)
    return column.cast(pa.string())
