"""Tables of Spark's own catalog, as the sources of a migration: columns, partitions, and the files that Spark reads."""

from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from paimon_core.engine import DESCRIBED_FORMATS, SourceFile, SourceTable, split_parts
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_spark.types import paimon_fields

_CATALOG = "spark_catalog"
_DETAILS = "# Detailed Table Information"
_PROVIDERS = (*DESCRIBED_FORMATS, "hive")


def source_tables(spark: SparkSession, database: str) -> list[str]:
    """Return the sorted names of the tables, without views, in a database of Spark's own catalog.

    Raises NotFoundError if the database does not exist.
    """
    try:
        tables = spark.catalog.listTables(f"{_CATALOG}.{_quoted(database)}")
    except AnalysisException as error:
        raise NotFoundError(f"there is no database {database!r} in Spark's own catalog") from error
    return sorted(table.name for table in tables if not table.isTemporary and table.tableType != "VIEW")


def source_table(spark: SparkSession, name: str, database: str) -> SourceTable:
    """Return a table of Spark's own catalog with its files. One Spark job lists the files; it reads no columns.

    Args:
        spark: the session.
        name: ``table``, ``database.table`` or ``spark_catalog.database.table``.
        database: the database of a name without one.

    Raises NotFoundError if the table does not exist, UnsupportedError for a view and for a table whose files are not
    Parquet, ORC or Avro.
    """
    full = _full_name(name, database)
    try:
        rows = [(row["col_name"], row["data_type"]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {full}").collect()]
        frame = spark.table(full)
    except AnalysisException as error:
        raise NotFoundError(f"there is no table {full} in Spark's own catalog") from error
    start = next((i for i, (name, _) in enumerate(rows) if name == _DETAILS), 0)
    described = dict(rows[start:])
    provider = str(described.get("Provider", "")).lower()
    if described.get("Type") == "VIEW" or provider not in _PROVIDERS:
        kind = "a view" if described.get("Type") == "VIEW" else f"a table of format {provider or 'unknown'}"
        *titles, last = (format.title for format in DESCRIBED_FORMATS.values())
        raise UnsupportedError(
            f"{full} is {kind}: only tables of {', '.join(titles)} or {last} files are migrated; insert its rows into "
            "a new table, or use paimon_spark.import_table"
        )
    keys = tuple(column.name for column in spark.catalog.listColumns(full) if column.isPartition)
    files = tuple(_files(frame, keys, full))
    return SourceTable(full, paimon_fields(frame.schema), keys, files, described.get("Comment") or None)


def _files(frame: Any, keys: tuple[str, ...], name: str) -> list[SourceFile]:
    """Return the files of a table that contain rows, with their partition values as texts."""
    values = [F.col(_quoted(key)).cast("string").alias(f"p{i}") for i, key in enumerate(keys)]
    about = frame.metadataColumn("_metadata")  # also if the table has a column of that name
    of_file = [
        about["file_path"].alias("path"),
        about["file_size"].alias("size"),
        F.unix_millis(about["file_modification_time"]).alias("modified"),
    ]
    try:
        rows = frame.select(*of_file, *values).distinct().collect()
    except AnalysisException as error:
        raise UnsupportedError(f"Spark cannot list the files of {name}: {error}") from error
    files = [
        SourceFile(_path(row["path"]), row["size"], row["modified"], {key: row[f"p{i}"] for i, key in enumerate(keys)})
        for row in rows
    ]
    return sorted(files, key=lambda file: file.path)


def _path(uri: str) -> str:
    """Return the path of a URI, without the escapes that Spark adds."""
    path = unquote(uri)
    return path[len("file:") :] if path.startswith("file:/") and not path.startswith("file://") else path


def _full_name(name: str, database: str) -> str:
    parts = split_parts(name)
    if len(parts) == 3 and parts[0] == _CATALOG:
        parts = parts[1:]
    if len(parts) == 1:
        parts = [database, *parts]
    if len(parts) != 2 or not all(parts):
        raise InvalidInputError(
            f"{name!r} is not a table name of Spark's own catalog: write 'table' or 'database.table'"
        )
    return ".".join(map(_quoted, (_CATALOG, *parts)))


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
