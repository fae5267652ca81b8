"""Import of tables of other formats: Spark's reader of the format reads the rows, and one commit writes a new table."""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from paimon_core.errors import MissingDependencyError, UnsupportedError

_PACKAGES = {
    "delta": "io.delta:delta-spark (configure the session as its documentation says)",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime for this version of Spark",
    "hudi": "org.apache.hudi:hudi-spark-bundle for this version of Spark",
}
_NOT_FOUND = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException", "Failed to find data source")


def import_table(
    spark: SparkSession,
    format: str,
    path: str,
    target: str,
    *,
    partition_keys: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    read_options: Mapping[str, str] | None = None,
) -> None:
    """Copy the rows of a table of another format, such as Delta or Iceberg, into a new Paimon table.

    The cluster reads the rows with Spark's reader of the format and writes them in one commit. Only one version of the
    table is imported: the newest, or the version that `read_options` choose.

    Args:
        spark: a session that can read the format and has the catalog of the target.
        format: "delta", "iceberg", or any other format that ``spark.read.format`` accepts.
        path: the path of the source table, or for Iceberg also its name in a catalog of the session.
        target: the name of the new table, such as "paimon.db.t".
        partition_keys: the partition columns of the new table; `None`: the partition columns of the source if it is a
            Delta or Iceberg table.
        options: options of the new table, such as its primary key; `None`: no options.
        read_options: options of the reader, such as the version to read; `None`: no options.

    Raises MissingDependencyError if the session has no reader of the format, UnsupportedError if an Iceberg table is
    partitioned by a transform and ``partition_keys`` is not given.
    """
    name = format.lower()
    reader_options = dict(read_options or {})
    try:
        rows = spark.read.format(format).options(**reader_options).load(path)
        columns = rows.schema
    except Exception as error:  # an error of Spark, or of py4j
        if not _is_missing(error):
            raise
        package = _PACKAGES.get(name, f"the package of the format {format!r}")
        raise MissingDependencyError(f"this session cannot read {format!r}: it needs {package}") from error
    find = _PARTITIONS.get(name)
    keys = list(partition_keys) if partition_keys is not None else find(spark, path, columns) if find else []
    writer = rows.writeTo(target).using("paimon")
    for key, value in (options or {}).items():
        writer = writer.tableProperty(key, value)
    if keys:
        writer = writer.partitionedBy(*[F.col(_quoted(key)) for key in keys])
    writer.create()


def _is_missing(error: Exception) -> bool:
    """Return True if the error means that the session has no reader for the format."""
    text = str(error)
    return any(sign in text for sign in _NOT_FOUND)


def _delta_partitions(spark: SparkSession, path: str, columns: StructType) -> list[str]:
    """Return the partition columns of a Delta table."""
    detail = spark.sql(f"DESCRIBE DETAIL delta.{_quoted(path)}").select("partitionColumns").collect()
    return list(detail[0][0])


def iceberg_partitions(spark: SparkSession, path: str, columns: StructType) -> list[str]:
    """Return the partition columns of an Iceberg table. UnsupportedError for a transform of a column."""
    # Iceberg's own rule: a text with a slash is a path, any other text is a name in a catalog.
    metadata = f"{path}#partitions" if "/" in path else f"{path}.partitions"
    parts: DataFrame = spark.read.format("iceberg").load(metadata)
    if "partition" not in parts.columns:
        return []
    kind = parts.schema["partition"].dataType
    fields = kind.fields if isinstance(kind, StructType) else []
    names = set(columns.names)
    for field in fields:
        if field.name not in names or columns[field.name].dataType != field.dataType:
            raise UnsupportedError(
                f"the Iceberg table {path} is partitioned by {field.name!r}, a transform of a column, which Paimon "
                "does not have: pass partition_keys, or [] for a table without partitions"
            )
    return [field.name for field in fields]


_PARTITIONS: Mapping[str, Callable[[SparkSession, str, StructType], list[str]]] = {
    "delta": _delta_partitions,
    "iceberg": iceberg_partitions,
}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
