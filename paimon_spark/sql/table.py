"""The scans and writes of one table of a catalog."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import StructType

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import UnsupportedError, hide_secrets
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table, with_store
from paimon_spark.internals import analyzed
from paimon_spark.row_level.statements import describe as describe_changes
from paimon_spark.sql.aggregate import local_rows
from paimon_spark.sql.incremental import BETWEEN
from paimon_spark.sql.jvm import Jvm
from paimon_spark.sql.native import NativeChoice, choose
from paimon_spark.sql.partitions import list_partitions, partition_spec
from paimon_spark.sql.pushdown import decided_by_partitions, predicate_of
from paimon_spark.sql.scan import ScanFunction, describe
from paimon_spark.sql.scan_request import ScanRequest
from paimon_spark.sql.session_options import NATIVE_READS, native_reads, read_options, session_options
from paimon_spark.sql.statements.row_level import Counts, RowLevelStatement, delete_rows, merge_rows, update_rows
from paimon_spark.sql.write import TableWrites
from paimon_spark.types import spark_schema

_log = logging.getLogger(__name__)
_WIDTHS = ("TINYINT", "BOOLEAN", "SMALLINT", "INT", "DATE", "FLOAT", "BIGINT", "DOUBLE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types of columns that are cheap to decode, the cheapest first."""


def cheapest_column(schema: TableSchema) -> str:
    """Return the name of the column that costs least to read: of a partition, of a key, or the narrowest."""
    known = [*schema.partition_keys, *schema.primary_keys]
    if known:
        return known[0]
    roots = {field.name: getattr(field.type, "root", "") for field in schema.fields}
    return min(roots, key=lambda name: _WIDTHS.index(roots[name]) if roots[name] in _WIDTHS else len(_WIDTHS))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass
class TableFunction:
    """The answers to what Spark asks a table: a method for each question of ``Bridge.java``."""

    jvm: Jvm
    table: Table
    schema: TableSchema
    when: Mapping[str, Any]
    catalog: FileSystemCatalog
    name: str = ""

    def decided_filters(self, trees: str) -> str:
        """Return a text with '1' for each filter that partitions alone decide, and '0' for others."""
        schema = self._read_schema()
        return "".join("01"[decided_by_partitions(tree, schema)] for tree in json.loads(trees))

    def scan(self, columns: Any, filters: Any, trees: str, limit: int, options: Any) -> Any:
        """Return a scan narrowed to the columns and filters of the query."""
        given = self._read_options(options)
        request = ScanRequest(
            self._columns(columns),
            predicate_of(json.loads(trees), self._read_schema()),
            tuple(filters),
            limit if limit >= 0 and BETWEEN not in given else None,  # changes are read whole
            given,
            self.when,
        )
        function = ScanFunction(self.table, request, self._general_scan, self._native_scan)
        return self.jvm.bridge.PaimonScan(
            self.jvm.function(function),
            self.jvm.struct(request.columns),
            self.jvm.struct(spark_schema(self.schema.fields)),
            self.jvm.array(
                "java.lang.String", [key for key in self.schema.partition_keys if key in request.columns.names]
            ),
            describe(self.table, request, function.choice),
        )

    def _native_scan(self, request: ScanRequest) -> NativeChoice:
        """Return the scan of the native path, or why there is none."""
        spark = self.jvm.active_session()
        if not native_reads(spark):
            return NativeChoice.refused(f"{NATIVE_READS} is off")
        if request.options:
            return NativeChoice.refused(f"with the options {', '.join(sorted(request.options))}")
        table = with_store(self.table, self.table.store.in_microseconds())
        scan = table.scan(filter=request.predicate, limit=request.limit, **self.when)
        return choose(self.jvm, spark, scan, request)

    def aggregate(self, trees: str, aggregation: str, options: Any) -> str | None:
        """Return the rows of an aggregation that metadata answer, as ``PaimonLocalScan.java`` reads them."""
        filters = json.loads(trees)
        if self._read_options(options):  # an option of the read may choose other rows
            return None
        schema = self._read_schema()
        if not all(decided_by_partitions(tree, schema) for tree in filters):
            return None
        scan = self.table.scan(filter=predicate_of(filters, schema), **self.when)
        scan = replace(scan, store=scan.store.in_microseconds())
        return local_rows(
            scan, json.loads(aggregation), f"paimon {hide_secrets(str(self.table.location))}: rows from metadata"
        )

    def _read_options(self, options: Any) -> dict[str, str]:
        """Return the options of a read: of the session, under those of the statement."""
        catalog, database, table = self.name.split(".", 2)
        session = session_options(self.jvm.active_session(), catalog, database, table)
        if not session:
            return dict(options.asCaseSensitiveMap())
        return read_options(session, dict(options.asCaseSensitiveMap()), moment=bool(self.when))

    def _general_scan(self, request: ScanRequest) -> Any:
        """Return the scan of the Python data source."""
        spark = self.jvm.active_session()
        given = {**self._options(), **request.reader_options()}
        frame = spark.read.format("paimon").options(**given).schema(request.columns).load()
        relation = analyzed(frame)
        return relation.table().newScanBuilder(relation.options()).build()

    def _read_schema(self) -> TableSchema:
        """Return the schema that reads use: Spark's timestamps have microseconds."""
        return self.table.store.with_schema(self.schema).in_microseconds().schema

    def _columns(self, required: Any) -> StructType:
        """Return the columns of a query, or the cheapest column of the table if it needs none: a count.

        Spark's Python source cannot read rows without columns.
        """
        if required is not None and required.length():
            return StructType.fromJson(json.loads(required.json()))
        whole = spark_schema(self.schema.fields)
        if required is None:
            return whole
        return StructType([whole[cheapest_column(self.schema)]])

    def truncate(self) -> bool:
        """Remove every row."""
        self.table.truncate()
        return True

    def list_partitions(self, names: Any, values: Any) -> Any:
        """Return the partitions that have these values in these columns, as arrays of texts."""
        found = list_partitions(self.table, list(names), list(values))
        return self.jvm.array("java.lang.Object", [self.jvm.array("java.lang.Object", texts) for texts in found])

    def create_partition(self, values: Any) -> None:
        """Log that there is nothing to do: a partition exists from its first row on."""
        _log.warning("ADD PARTITION has no effect on %s: a partition exists from its first row on", self.table.path)

    def drop_partition(self, values: Any) -> bool:
        """Remove the rows of a partition; return False if there are none."""
        texts = list(values)
        if not list_partitions(self.table, self.schema.partition_keys, texts):
            return False
        self.table.drop_partitions([partition_spec(self.table, texts)])
        return True

    def load_partition(self, values: Any) -> Any:
        """Return the properties of a partition: none."""
        return self.jvm.map({})

    def set_partition_properties(self, values: Any) -> None:
        """Raise UnsupportedError."""
        raise UnsupportedError("a partition has no properties and no location of its own: set those of the table")

    def source_write(self, mode: str, info: Any) -> Any:
        """Return a write of the Python data source, for a dynamic overwrite or a stream."""
        return self._writes().source_write(mode, info)

    def check_write(self, mode: str, trees: str, options: Any) -> None:
        """Raise an error for options, and for rows to replace, that `insert` will refuse."""
        self._writes().check(mode, trees, options)

    def insert(self, rows: Any, mode: str, trees: str, options: Any) -> None:
        """Write the rows of a DataFrame in one commit."""
        self._writes().insert(rows, mode, trees, options)

    def _writes(self) -> TableWrites:
        catalog, database, table = [*self.name.split(".", 2), "", ""][:3]  # a table by its path has no database
        return TableWrites(self.jvm, (catalog, database, table), self.table, self._options())

    def _options(self) -> dict[str, str]:
        storage = {str(key): str(value) for key, value in self.catalog.storage_options.items()}
        view = replace(self.table.location, branch=None)
        return {**storage, "path": str(view), "branch": self.table.store.branch}

    def change_way(self) -> str:
        """Return how DELETE, UPDATE and MERGE change the rows of the table, for EXPLAIN."""
        return describe_changes(self.table)

    def delete_rows(self, session: Any, plan: Any) -> Any:
        """Run DELETE and return its row of counts."""
        return self._change(delete_rows, session, plan)

    def update_rows(self, session: Any, plan: Any) -> Any:
        """Run UPDATE and return its row of counts."""
        return self._change(update_rows, session, plan)

    def merge_rows(self, session: Any, plan: Any) -> Any:
        """Run MERGE INTO and return its row of counts."""
        return self._change(merge_rows, session, plan)

    def _change(self, run: Callable[[RowLevelStatement], Counts], session: Any, plan: Any) -> Any:
        """Run a statement on rows; Spark forgets what it has cached of the table, and reads it again."""
        spark = self.jvm.session(session)
        counts = run(RowLevelStatement(self.jvm, spark, self.table, self._options(), session, plan))
        catalog, _, own = self.name.partition(".")
        parts = [own] if own.startswith("`") else [_quoted(part) for part in own.split(".", 1)]  # a path is quoted
        spark.catalog.refreshTable(".".join([_quoted(catalog), *parts]))
        return self.jvm.rows(counts)
