"""The functions of ``sys``, such as ``sys.max_pt``, which become Spark expressions when Spark analyzes a query."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from paimon_core import Catalog, Snapshot, Table, TableScan, col
from paimon_core.engine import (
    SYSTEM_DATABASE,
    branch_splits,
    live_entries,
    reads_branches,
    split_parts,
)
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import STRING
from paimon_spark.blob_functions import blob_view, descriptor_text, whole_file_descriptor
from paimon_spark.bucket_column import bucket_column
from paimon_spark.sql.bridge.catalogs import open_named, open_table
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
    none = java_array(jvm, "org.apache.spark.sql.types.DataType", [])
    kind = jvm.type("org.apache.spark.sql.types.DataType").fromDDL(function.result)
    handler = handler_of(jvm, function.make(jvm, catalog_name))
    return jvm.bridge.PaimonFunction(identifier.name().lower(), none, kind, function.constants, handler)


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

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Return the value as a Java Column; NULL if the table has no rows."""
        if len(columns) != 1 or not isinstance(constants[0], str):
            raise InvalidInputError("max_pt takes one argument, the name of a table as text: sys.max_pt('db.t')")
        spark = self.jvm.active_session()
        table = open_table(self.jvm, spark, _parts(spark, self.catalog_name, constants[0]), "max_pt")
        if not table.schema.partition_keys:
            raise InvalidInputError(f"max_pt: {constants[0]} has no partitions")
        return F.lit(greatest_partition(table)).cast("string")._jc


@dataclass(frozen=True)
class Bucket(FunctionEndpoint):
    """``sys.bucket(n, columns...)``: the bucket of each row."""

    jvm: Jvm
    catalog_name: str

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Return the expression as a Java Column."""
        first = constants[0] if len(constants) else None
        if not isinstance(first, int) or isinstance(first, bool):
            raise InvalidInputError(f"bucket: the first argument is the number of buckets, not {first!r}")
        key = [Column(column) for column in list(columns)[1:]]
        return bucket_column(first, key, list(types)[1:])._jc


@dataclass(frozen=True)
class BlobView(FunctionEndpoint):
    """``sys.blob_view('db.t', 'column', row_id)``: views of the blobs of a column of a table of the same catalog."""

    jvm: Jvm
    catalog_name: str

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Return the expression as a Java Column; NULL for a name that is NULL."""
        table_name, column = constants if len(constants) == 2 else (0, 0)
        given = (str, type(None))
        if len(columns) != 3 or not isinstance(table_name, given) or not isinstance(column, given):
            raise InvalidInputError(
                "blob_view takes three arguments, the names of a table and of its column as texts, and the id of a "
                "row: sys.blob_view('db.t', 'image', _ROW_ID)"
            )
        if types[2] not in _ROW_IDS:
            raise InvalidInputError(f"blob_view: the id of a row is a BIGINT, as in _ROW_ID, not {types[2]}")
        if table_name is None or column is None:
            return F.lit(None).cast("binary")._jc
        spark = self.jvm.active_session()
        name, table = open_named(self.jvm, spark, _parts(spark, self.catalog_name, table_name), "blob_view")
        if name[0] != self.catalog_name:
            raise InvalidInputError(
                f"blob_view: {table_name} is a table of catalog {name[0]!r}, but this is the function of catalog "
                f"{self.catalog_name!r}, and a view names a table of its own catalog: call {name[0]}.sys.blob_view, "
                "and insert into a table of that catalog"
            )
        if len(name) != 3 or "." in name[1]:
            raise InvalidInputError(f"blob_view: a view cannot name {table_name}: its database has a dot in its name")
        return blob_view(table, ".".join(name[1:]), column, Column(columns[2]))._jc


@dataclass(frozen=True)
class OneArgument(FunctionEndpoint):
    """A function of one column. ``kinds``: the types that it takes, as in DDL; ``result``: its result."""

    name: str
    kinds: tuple[str, ...]
    result: Callable[[Column], Column]

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Return the expression as a Java Column."""
        if len(columns) != 1 or not str(types[0]).startswith(self.kinds):
            raise InvalidInputError(
                f"{self.name} takes one argument of type {self.kinds[0]}, not ({', '.join(map(str, types))})"
            )
        return self.result(Column(columns[0]).cast(self.kinds[0]))._jc


@dataclass(frozen=True)
class Refused(FunctionEndpoint):
    """A function of the Java connector that this engine does not have. ``instead``: advice."""

    name: str
    instead: str

    def expression(self, constants: Any, columns: Any, types: Any) -> Any:
        """Raise UnsupportedError."""
        raise UnsupportedError(f"{self.name} is not supported: {self.instead}")


@dataclass(frozen=True)
class _Function:
    """A function of ``sys``: its handler for a catalog, the type of its result, and the number of its constants."""

    make: Callable[[Jvm, str], FunctionEndpoint]
    result: str
    constants: int


def _one(name: str, kinds: tuple[str, ...], result: Callable[[Column], Column]) -> Callable[[Jvm, str], OneArgument]:
    return lambda jvm, catalog_name: OneArgument(name, kinds, result)


def _refused(name: str, instead: str) -> Callable[[Jvm, str], Refused]:
    return lambda jvm, catalog_name: Refused(name, instead)


_ROW_IDS = ("BIGINT", "INT", "VOID")
_TEXTS = ("STRING", "VARCHAR", "CHAR", "VOID")
_PRESIGNED = "read the blob, or let the tools of the store sign its file, which descriptor_to_string shows"

_FUNCTIONS = {
    "blob_view": _Function(BlobView, "BINARY", 2),
    "bucket": _Function(Bucket, "INT", 1),
    "descriptor_to_string": _Function(_one("descriptor_to_string", ("BINARY", "VOID"), descriptor_text), "STRING", 0),
    "max_pt": _Function(MaxPartition, "STRING", 1),
    "path_to_descriptor": _Function(_one("path_to_descriptor", _TEXTS, whole_file_descriptor), "BINARY", 0),
    **{
        name: _Function(_refused(name, _PRESIGNED), "STRING", 0)
        for name in ("descriptor_to_presigned_url", "try_descriptor_to_presigned_url")
    },
}


def _parts(spark: SparkSession, catalog_name: str, name: str) -> list[str]:
    """Return the parts of the name of a table that a function of a catalog gets, with the catalog if it is another."""
    parts = split_parts(name)
    if len(parts) < 3 and spark.catalog.currentCatalog() != catalog_name:
        parts = [catalog_name, *([_DEFAULT_DATABASE] if len(parts) == 1 else []), *parts]
    return parts


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
