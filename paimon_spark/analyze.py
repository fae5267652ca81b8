"""ANALYZE: compute the statistics of a table on the cluster, and commit them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from paimon_core import Snapshot
from paimon_core.engine import ColumnStatistics, FileStore, TableStatistics, commit_statistics, live_entries, to_text
from paimon_core.errors import UnsupportedError
from paimon_core.types.columns import Columns
from paimon_core.types.datatype import AtomicType, DataField

ALL: Final = "*"
_SIZES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8, "DATE": 4}
_SIZES |= {"TIMESTAMP": 8, "TIMESTAMP_LTZ": 8}
"""Bytes that Spark uses for a value of each fixed-size type, by type root."""
_VARIABLE = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_EPOCH = datetime(1970, 1, 1)


def analyze(
    spark: SparkSession, store: FileStore, options: Mapping[str, str], columns: Sequence[str] | str | None = None
) -> Snapshot | None:
    """Compute statistics of the newest snapshot and commit them; return the new snapshot.

    Return `None` if the table has no snapshot.

    Args:
        spark: the session.
        store: the table to analyze.
        options: read options, including the path of the table.
        columns: names of the columns to analyze, in any case; `ALL`: every column whose type supports statistics;
            `None`: only the number of rows and their bytes. Distinct counts are estimates, within 5 %.

    Raises InvalidInputError for an unknown column, UnsupportedError for a column of a nested type.
    """
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return None
    at = {**options, "read.rows-of-snapshot": str(snapshot.id)}
    frame = spark.read.format("paimon").options(**at).load()
    fields = _chosen(store, columns)
    row = frame.agg(F.count(F.lit(1)).alias("rows"), *_aggregates(frame, fields)).collect()[0].asDict()
    files = live_entries(store, snapshot).live
    stored = sum(entry.file.row_count for entry in files)
    size = sum(entry.file.file_size for entry in files)
    statistics = TableStatistics(
        snapshot.id,
        store.schema.id,
        row["rows"],
        size * row["rows"] // stored if stored else 0,
        {field.name: _column(field, row, number) for number, field in enumerate(fields)},
    )
    return commit_statistics(store, statistics)


def _chosen(store: FileStore, columns: Sequence[str] | str | None) -> list[DataField]:
    fields = store.schema.fields
    if columns is None:
        return []
    if columns == ALL:
        return [field for field in fields if _has_statistics(field)]
    known = Columns(fields, store.root)
    chosen = [known.find(name) for name in columns]
    for field in chosen:
        if not _has_statistics(field):
            raise UnsupportedError(
                f"statistics for column {field.name!r} of type {field.type} are not supported: leave it out"
            )
    return chosen


def _has_statistics(field: DataField) -> bool:
    return _root(field) in {*_SIZES, *_VARIABLE, "DECIMAL"}


def _aggregates(frame: DataFrame, fields: Sequence[DataField]) -> Iterator[Column]:
    for number, field in enumerate(fields):
        column = frame[_quoted(field.name)]
        yield F.count(column).alias(f"count{number}")
        yield F.approx_count_distinct(column).alias(f"distinct{number}")
        if _is_variable(field):
            yield F.avg(F.octet_length(column)).alias(f"avg{number}")
            yield F.max(F.octet_length(column)).alias(f"max_len{number}")
        else:
            yield _collectable(F.min(column), field).alias(f"min{number}")
            yield _collectable(F.max(column), field).alias(f"max{number}")


def _collectable(bound: Column, field: DataField) -> Column:
    """Return a bound in a form that Python can collect for every year, in every time zone."""
    match _root(field):
        case "DATE":
            return F.unix_date(bound)
        case "TIMESTAMP_LTZ":
            return F.unix_micros(bound)
        case "TIMESTAMP":
            return bound.cast("string")
    return bound


def _column(field: DataField, row: Mapping[str, Any], number: int) -> ColumnStatistics:
    low, high = (_text(row.get(f"{end}{number}"), field) for end in ("min", "max"))
    fixed = _fixed_size(field)
    return ColumnStatistics(
        field.id,
        row[f"distinct{number}"],
        low,
        high,
        row["rows"] - row[f"count{number}"],
        fixed if fixed is not None else round(row[f"avg{number}"] or 0),
        fixed if fixed is not None else row[f"max_len{number}"] or 0,
    )


def _text(value: Any, field: DataField) -> str | None:
    """Return the text of a collected bound; `None`: it is NULL, or a time outside of the years 1 to 9999."""
    if value is None:
        return None
    try:
        match _root(field):
            case "TIMESTAMP_LTZ":
                value = _EPOCH + timedelta(microseconds=value)
            case "TIMESTAMP":
                seconds, _, fraction = value.partition(".")
                value = datetime.fromisoformat(f"{seconds}.{fraction:0<6}")
    except (OverflowError, ValueError):
        return None
    return to_text(value, field.type)


def _fixed_size(field: DataField) -> int | None:
    kind = field.type
    if _is_variable(field) or not isinstance(kind, AtomicType):
        return None
    return _SIZES.get(kind.root, 8 if kind.root != "DECIMAL" or (kind.precision or 0) <= 18 else 16)


def _is_variable(field: DataField) -> bool:
    return _root(field) in _VARIABLE


def _root(field: DataField) -> str:
    return field.type.root if isinstance(field.type, AtomicType) else ""


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
