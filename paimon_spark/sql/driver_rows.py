"""Rows of small scans: the driver reads them, because a Python worker of Spark takes longer to begin than to read."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core.scan.split import DataSplit
from paimon_spark.options import read_request
from paimon_spark.reader import PaimonReader, open_table
from paimon_spark.types import expected_arrow_schema

MOST_ROWS = 10_000
_MOST_BYTES = 1 << 20
_MOST_FILES = 64
"""The driver reads no more than these rows, before they are merged, in so many bytes of so many files."""
_NOT_FROM_ARROW = ("variant", "time(")
"""Types of which Spark makes no DataFrame out of Arrow in each of its versions."""


def is_small(splits: Sequence[DataSplit], columns: StructType) -> bool:
    """Return True if the driver may read these columns of the splits of a plan."""
    types = columns.simpleString()
    return (
        not any(name in types for name in _NOT_FROM_ARROW)
        and sum(split.row_count for split in splits) <= MOST_ROWS
        and sum(split.size for split in splits) <= _MOST_BYTES
        and sum(len(split.files) for split in splits) <= _MOST_FILES
    )


def described(splits: Sequence[DataSplit], reason: str) -> str:
    """Return in words that the driver reads the rows of a plan; `reason`: why Spark's own scan does not."""
    rows, files = sum(split.row_count for split in splits), sum(len(split.files) for split in splits)
    return f"in the driver: {rows} rows of {files} files; {reason}"


def small_rows(spark: SparkSession, given: Mapping[str, str], columns: StructType) -> DataFrame | None:
    """Read rows as the Python data source does, in this process, and return them as a DataFrame; `None`: they are many.

    Args:
        spark: the session.
        given: the options of the data source.
        columns: of the query.

    Raises as the data source.
    """
    request = read_request(given)
    reader = PaimonReader(open_table(request), request, columns)
    splits = reader.splits()
    if not is_small(splits, columns):
        return None
    rows = pa.Table.from_batches(reader.batches(splits), expected_arrow_schema(columns))
    return spark.createDataFrame(rows, columns)
