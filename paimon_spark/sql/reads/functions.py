"""The functions ``sys.max_pt`` and ``sys.bucket``, which become Spark expressions when Spark analyzes a query."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core import Catalog, Snapshot, Table, TableScan, col
from paimon_core.engine import (
    SYSTEM_DATABASE,
    branch_splits,
    live_entries,
    reads_branches,
    split_parts,
)
from paimon_core.errors import InvalidInputError
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import STRING
from paimon_spark.bucket_column import bucket_column
from paimon_spark.sql.bridge.catalogs import open_table
from paimon_spark.sql.bridge.conversions import java_array
from paimon_spark.sql.bridge.endpoints import FunctionEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.bridge.spark_errors import analysis_error

_DEFAULT_DATABASE = "default"
_IDENTIFIER = "org.apache.spark.sql.connector.catalog.Identifier"


def load_function(jvm: Jvm, catalog_name: str, identifier: Any) -> Any:
    """Return a function of the namespace ``sys`` as Spark's UnboundFunction.

    Spark looks for ``bucket`` without a namespace to compare the bucketing of two scans.

    Raises NoSuchFunctionException for an unknown function.
    """
    function = _FUNCTIONS.get(identifier.name().lower())
    namespaces = ([SYSTEM_DATABASE], [])[: 2 if function is _FUNCTIONS["bucket"] else 1]
    if list(identifier.namespace()) not in namespaces or function is None:
        raise analysis_error(jvm, "NoSuchFunctionException", identifier)
    make, result = function
    none = java_array(jvm, "org.apache.spark.sql.types.DataType", [])
    kind = jvm.type("org.apache.spark.sql.types.DataType").fromDDL(result)
    return jvm.bridge.PaimonFunction(identifier.name().lower(), none, kind, handler_of(jvm, make(jvm, catalog_name)))


def list_functions(jvm: Jvm, catalog: Catalog, namespace: Any) -> Any:
    """Return the identifiers of the functions of a namespace as a Java array."""
    parts = [str(part) for part in namespace]
    names = sorted(_FUNCTIONS) if parts == [SYSTEM_DATABASE] else []
    if catalog.has_functions and len(parts) == 1 and parts[0] != SYSTEM_DATABASE:
        names = catalog.list_functions(parts[0])
    return java_array(jvm, _IDENTIFIER, [jvm.type(_IDENTIFIER).of(namespace, name) for name in names])


@dataclass(frozen=True)
class MaxPartition(FunctionEndpoint):
    """``sys.max_pt('db.t')``: the greatest value of the first partition column among the rows, as text."""

    jvm: Jvm
    catalog_name: str

    def expression(self, first: Any, columns: Any, types: Any) -> Any:
        """Return the value as a Java Column; NULL if the table has no rows."""
        if len(columns) != 1 or not isinstance(first, str):
            raise InvalidInputError("max_pt takes one argument, the name of a table as text: sys.max_pt('db.t')")
        spark = self.jvm.active_session()
        parts = split_parts(first)
        if len(parts) < 3 and spark.catalog.currentCatalog() != self.catalog_name:
            parts = [self.catalog_name, *([_DEFAULT_DATABASE] if len(parts) == 1 else []), *parts]
        table = open_table(self.jvm, spark, parts, "max_pt")
        if not table.schema.partition_keys:
            raise InvalidInputError(f"max_pt: {first} has no partitions")
        return F.lit(greatest_partition(table)).cast("string")._jc


@dataclass(frozen=True)
class Bucket(FunctionEndpoint):
    """``sys.bucket(n, columns...)``: the bucket of each row."""

    jvm: Jvm
    catalog_name: str

    def expression(self, first: Any, columns: Any, types: Any) -> Any:
        """Return the expression as a Java Column."""
        if not isinstance(first, int) or isinstance(first, bool):
            raise InvalidInputError(f"bucket: the first argument is the number of buckets, not {first!r}")
        key = [Column(column) for column in list(columns)[1:]]
        return bucket_column(first, key, list(types)[1:])._jc


_FUNCTIONS: dict[str, tuple[Callable[[Jvm, str], FunctionEndpoint], str]] = {
    "bucket": (Bucket, "INT"),
    "max_pt": (MaxPartition, "STRING"),
}


def greatest_partition(table: Table) -> str | None:
    """Return the greatest value of the first partition column among the rows, as text; `None`: no row has a value.

    With a second branch (``scan.fallback-branch``), the rows of both branches count, as in batch reads.
    """
    snapshot, both = table.snapshot(), reads_branches(table.store)
    if snapshot is None and not both:
        return None
    key = table.schema.partition_fields[0]
    values = _first_values(table, snapshot) - {None}
    read_id = None if both or snapshot is None else snapshot.id
    for value in sorted(values, reverse=True):  # a partition whose rows are all deleted may still have files
        if table.to_arrow([key.name], col(key.name) == value, limit=1, snapshot_id=read_id).num_rows:
            stored = pa.array([value], table.schema.partition_arrow.field(0).type)
            return str(cast_array(stored, key.type, STRING)[0].as_py())
    return None


def _first_values(table: Table, snapshot: Snapshot | None) -> set[Any]:
    """Return the values of the first partition column in the partitions that have files."""
    if reads_branches(table.store):
        branches = branch_splits(TableScan(table.store, snapshot))
        return {store.partition_values(split.partition)[0] for store, splits in branches for split in splits}
    live = [] if snapshot is None else live_entries(table.store, snapshot, with_stats=False).live
    return {table.store.partition_values(partition)[0] for partition in {entry.partition for entry in live}}
