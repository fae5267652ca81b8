"""The scans, writes and partitions of a format table of a catalog."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from pyspark.sql.types import StructType

from paimon_core import Catalog, FormatTable
from paimon_core.engine import TRUE, FormatFile, Operation, Predicate, conjunction, predicate_columns
from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_spark.format_table import FormatTableReader, write_format_table
from paimon_spark.sql.bridge.conversions import frame_of, java_map, row_arrays
from paimon_spark.sql.bridge.endpoints import ScanEndpoint, StagedEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.partitions import partition_texts, value_of_internal
from paimon_spark.sql.ddl.schema import description
from paimon_spark.sql.reads.native import (
    NativeFiles,
    has_ambiguous_paths,
    is_reachable,
    scan_text,
    unsuitable_columns,
    uri_of,
)
from paimon_spark.sql.reads.pushdown import decided_by_partitions, exact_predicate, predicate_of
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.source import Source, planned_source, tagged_scan
from paimon_spark.sql.session_options import NATIVE_READS, native_reads
from paimon_spark.sql.table import TableHandler
from paimon_spark.types import spark_schema

FORMAT_TABLE_CAPABILITIES = (
    "BATCH_READ",
    "BATCH_WRITE",
    "V1_BATCH_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
)
_DIFFERENCES = {
    "csv": "Spark reads other NULLs, quotes and times in CSV",
    "json": "Spark reads other values and times in JSON",
    "orc": "Spark makes NULL of ORC values of another type, and finds columns without names by position",
    "text": "Spark reads other line ends in text files",
}
"""The reason why Spark's own scan could return other rows than the engine and Java, by format."""


@dataclass
class FormatTableHandler(TableHandler):
    """The handler of a format table, whose rows can be inserted and overwritten, but not changed."""

    table: FormatTable  # type: ignore[assignment]  # every method that uses another kind of table is overridden

    # ---- reads

    def decided_filters(self, trees: str) -> str:
        """Return a text with one digit per filter: '1' if partition values decide the filter, else '0'."""
        return "".join("01"[decided_by_partitions(tree, self.schema)] for tree in json.loads(trees))

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return `None`: Spark computes every aggregation."""
        return None

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the handler of a scan, as ``Tagged.java``."""
        self._check_options(options)
        predicate = predicate_of(json.loads(trees), self.schema)
        request = ScanRequest(self._columns(required), predicate, limit if limit >= 0 else None)
        reads = native_reads(json.loads(settings).get(NATIVE_READS))
        handler = FormatTableScanHandler(self.jvm, self.table, request, reads)
        return tagged_scan(self.jvm, handler, handler.description())

    # ---- writes

    def truncate(self) -> bool:
        """Delete all files."""
        self.table.truncate()
        return True

    def with_merged_columns(self, columns: str, options: str, demanded: bool, by_name: bool) -> Any:
        """Return `None`: a write does not change the columns. Raises UnsupportedError for WITH SCHEMA EVOLUTION."""
        if demanded:
            self._refuse("WITH SCHEMA EVOLUTION")

    def check_missing_columns(self, columns: str, options: str) -> None:
        """Accept rows without some of the columns, which become NULL."""

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise an error for options, and for rows to replace, that `insert` will refuse."""
        self._check_options(options)
        self._replaced(mode, trees)

    def explain_write(self, columns: str, options: str) -> str:
        """Return the writer of the rows, for EXPLAIN."""
        return f"{self.name}: Python workers write {self.table.format} files"

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a DataFrame, and delete the files that they replace."""
        self._check_options(options)
        write_format_table(frame_of(self.jvm, rows), self.table, self._replaced(mode, trees))

    def overwrite_partitions(self, session: Any, write: Any) -> Any:
        """Replace the partitions of the rows of a statement (``OverwritePlan.java``); return no row."""
        self.insert(write.rows(session), "dynamic", "[]", write.options())
        self._refresh(self.jvm.session(session))
        return row_arrays(self.jvm, [])

    def source_write(self, mode: str, info: Any, options: str) -> Any:
        """Raise UnsupportedError: streams are not written."""
        self._refuse("writeStream")

    def explain_row_changes(self, trees: str | None) -> str:
        """Raise UnsupportedError."""
        self._refuse("DELETE, UPDATE and MERGE")

    def _change(self, run: Callable[..., Any], session: Any, plan: Any) -> Any:
        self._refuse("DELETE, UPDATE and MERGE")

    # ---- partitions

    def list_partitions(self, names: Any, values: Any) -> Any:
        """Return the partitions with these values in these columns, as arrays of texts."""
        return row_arrays(self.jvm, [texts for _, texts in self._matching(list(names), list(values))])

    def create_partitions(self, partitions: Any) -> None:
        """Add partitions without rows."""
        for partition in [self._partition(list(values)) for values in partitions]:
            self.table.add_partition(partition)

    def drop_partitions(self, partitions: Any) -> bool:
        """Delete partitions with their files; return False if none of them exists."""
        found = self._existing(partitions)
        for partition in found:
            self.table.drop_partitions(partition)
        return bool(found)

    def truncate_partitions(self, partitions: Any) -> bool:
        """Delete the files of partitions, which stay; return False if none of them exists."""
        found = self._existing(partitions)
        for partition in found:
            self.table.truncate_partitions(partition)
        return bool(found)

    def load_partition(self, values: Any) -> Any:
        """Return an empty Java map: the number of the rows is not known."""
        return java_map(self.jvm, {})

    def set_partition_properties(self, values: Any) -> None:
        """Raise UnsupportedError."""
        self._refuse("properties and locations of partitions")

    # ---- inside

    def _replaced(self, mode: str, trees: str) -> Predicate | str | None:
        """Return the rows that a write replaces, as for `FormatTable.publish`.

        Raises UnsupportedError for a condition on other columns than the partition columns.
        """
        if mode != "overwrite":
            return "dynamic" if mode == "dynamic" else None
        filters = json.loads(trees)
        predicate = exact_predicate(filters, self.schema) if filters else TRUE
        if predicate is None or not predicate_columns(predicate) <= set(self.schema.partition_keys):
            raise UnsupportedError(
                f"{self.name} is a format table: an overwrite replaces whole partitions, so its condition must compare "
                "partition columns with literals"
            )
        return predicate

    def _check_options(self, options: str) -> None:
        """Raise InvalidInputError for an option of a read or a write, which format tables do not have."""
        for key in json.loads(options):
            raise InvalidInputError(f"option {key!r} has no effect on the format table {self.name}: leave it out")

    def _matching(self, names: list[str], values: list[str | None]) -> list[tuple[Mapping[str, Any], list[str | None]]]:
        asked = dict(zip(names, values, strict=True))
        keys = self.schema.partition_fields
        found = [(partition, partition_texts(partition, keys)) for partition in self.table.partitions()]
        places = {field.name: i for i, field in enumerate(keys)}
        return [
            (partition, texts)
            for partition, texts in found
            if all(texts[places[name]] == text for name, text in asked.items())
        ]

    def _existing(self, partitions: Any) -> list[Mapping[str, Any]]:
        """Return the existing partitions among these arrays of texts."""
        asked = {tuple(values) for values in partitions}
        return [partition for partition, texts in self._matching([], []) if tuple(texts) in asked]

    def _partition(self, values: list[str | None]) -> dict[str, Any]:
        fields = self.schema.partition_fields
        return {f.name: value_of_internal(text, f) for f, text in zip(fields, values, strict=True)}

    def _columns(self, required: str | None) -> StructType:
        """Return the columns of a query; for a query without columns, such as a count, the first column."""
        whole = self.whole()
        columns = whole if required is None else StructType.fromJson(json.loads(required))
        return columns if columns.fields else StructType(whole.fields[:1])

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"{self.name} is a format table, whose {self.table.format} files can only be added and replaced: it has no "
            f"{what}"
        )


@dataclass
class StagedFormatTableHandler(FormatTableHandler, StagedEndpoint):
    """The handler of a new format table and its first rows. The table is visible without them, as in Java."""

    drop: Callable[[], bool] = field(kw_only=True)
    """A function that drops the table."""

    def publish(self) -> None:
        """Keep the table, whose rows are there already."""

    def discard(self) -> None:
        """Drop the table with its files."""
        self.drop()


def staged_format_table(
    jvm: Jvm, catalog: Catalog, name: str, create: Callable[[], FormatTable], drop: Callable[[], bool], operation: str
) -> Any:
    """Create a format table for the rows of a query, and return its ``Staged.java``.

    Args:
        jvm: the JVM of the session.
        catalog: the catalog of the table.
        name: the full name of the table.
        create: a function that creates the table.
        drop: a function that drops the table, for rows that cannot be written.
        operation: the statement; only CREATE is possible.

    Raises UnsupportedError for a statement that replaces a table, and the errors of ``create``.
    """
    if operation != Operation.CREATE:
        raise UnsupportedError(
            f"{operation} is not possible for the format table {name}, which cannot be replaced: run DROP TABLE, then "
            "CREATE TABLE ... AS SELECT"
        )
    table = create()
    handler = StagedFormatTableHandler(jvm, table, table.schema, {}, catalog, name, drop=drop)
    text = description(name, table.schema, table.path, FORMAT_TABLE_CAPABILITIES, computed=False)
    return jvm.connector_class("Staged")(text, handler_of(jvm, handler))


@dataclass
class FormatTableScanHandler(ScanEndpoint):
    """The handler of a scan of a format table, for ``PaimonScan.java``."""

    jvm: Jvm
    table: FormatTable
    request: ScanRequest
    may_be_native: bool

    @cached_property
    def _files(self) -> Sequence[FormatFile]:
        """The files of the query, which are listed once."""
        return self.table.read(filter=self.request.predicate).plan()

    def description(self) -> str:
        """Return the properties of the scan that Spark needs for planning, as JSON."""
        columns = self.request.columns
        parts: Mapping[str, Any] = {
            "columns": ", ".join(columns.names),
            "filter": self.request.predicate,
            "limit": self.request.limit,
        }
        said = "".join(f", {name}: {value}" for name, value in parts.items() if value is not None)
        shown = hide_secrets(self.table.path)
        names = set(columns.names)
        reader = "Spark" if self._unsuitable is None else f"Python: {self._unsuitable}"
        return json.dumps(
            {
                "columns": columns.json(),
                "whole": spark_schema(self.table.schema.fields).json(),
                "partitions": [key for key in self.table.schema.partition_keys if key in names],
                "text": f"paimon {shown}{said}, {self.table.format} files read by {reader}",
            }
        )

    def parts(self) -> None:
        """Return `None`: the scan is not divided."""

    def explain(self) -> None:
        """Return `None`: there are no metadata to explain."""

    def source(self, trees: str) -> Any:
        """Return the tasks that read the rows, as ``Tagged.java``; runtime filters of a join leave out partitions."""
        request, filters = self.request, json.loads(trees)
        runtime = predicate_of(filters, self.table.schema) if filters else None
        predicate = conjunction([part for part in (request.predicate, runtime) if part is not None])
        files = self._files if runtime is None else self.table.read(filter=predicate).plan()
        if self._is_native(files):
            return Source("native", self._native_text(files)).to_java(self.jvm)
        reader = FormatTableReader(self.table, request.columns, predicate, request.limit, files)
        return self._planned(reader).to_java(self.jvm)

    @cached_property
    def _unsuitable(self) -> str | None:
        """The reason why Spark's own scan would read the columns otherwise than the engine; `None`: it reads the same.

        Other tools may have written the files.
        """
        schema, columns = self.table.schema, self.request.columns
        names = set(columns.names)
        fields = [field for field in schema.fields if field.name in names]
        if not self.may_be_native:
            return f"{NATIVE_READS} is false"
        if self.table.format != "parquet":
            return _DIFFERENCES[self.table.format]
        if names & set(schema.partition_keys):
            return "files have no partition columns"
        if any("TIMESTAMP" in str(field.type) for field in fields):
            return "Spark reads a time as a time with a zone, and vice versa"
        if any("NOT NULL" in str(field.type) for field in fields):
            return "Spark does not check NOT NULL"
        return unsuitable_columns(schema, columns, "parquet")

    def _is_native(self, files: Sequence[FormatFile]) -> bool:
        directory = None if not files else uri_of(files[0].path).rpartition("/")[0]
        return directory is not None and self._unsuitable is None and is_reachable(self.jvm, directory)

    def _native_text(self, files: Sequence[FormatFile]) -> str:
        """Return the JSON from which ``NativeFiles.java`` creates Spark's own scan.

        Filters leave out no row groups of a partitioned table: its files lack the partition columns, which Spark would
        take for NULL.
        """
        sizes, schema = {uri_of(file.path): file.size for file in files}, self.table.schema
        ambiguous = bool(schema.partition_keys) or has_ambiguous_paths(schema.fields)
        return scan_text(schema, NativeFiles("parquet", sizes, len(files), ambiguous), self.request.columns)

    def _planned(self, reader: FormatTableReader) -> Source:
        planned = planned_source(self.request.columns, reader)
        if planned is None:
            raise UnsupportedError(
                f"this version of Spark cannot read the format table {self.table.name}: use Spark 4.1 to 4.3"
            )
        return planned

    def stream_source(self) -> Any:
        """Raise UnsupportedError."""
        raise UnsupportedError(f"readStream is not possible: {self.table.name} is a format table, without snapshots")

    def statistics(self) -> str:
        """Return the size of the scan as JSON."""
        size = sum(file.size for file in self._files)
        return json.dumps({"rows": None, "bytes": max(1, size), "columns": {}})
