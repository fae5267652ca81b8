"""Small scans that the driver reads, because starting a Python worker would take longer than the read itself."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core import DataSplit, Plan, TableSchema
from paimon_core.engine import MatchLimits, Predicate, most_keys, read_by_reference
from paimon_core.errors import PaimonError, hide_secrets
from paimon_spark.options import read_request
from paimon_spark.reader import PaimonReader, batch_reader
from paimon_spark.types import expected_arrow_schema

_log = logging.getLogger(__name__)
MOST_ROWS = 20_000
_MOST_BYTES = 1 << 20
MOST_FILES = 64
"""The most rows (counted before a merge), bytes and files that the driver reads."""
_MOST_SMALL_FILES = 256
"""The most files of _MOST_BYTES and MOST_ROWS that the driver reads although Spark's own scan could: it opens more than
MOST_FILES local files twice as slowly, and needs a job."""
_MOST_KEYS = 100
_MOST_BYTES_WITH_KEYS = 256 << 20
"""For lookups, the most keys and the most bytes of files, of which only a few row groups are decoded. Alternatively,
MOST_ROWS keys in _MOST_BYTES."""
LEAST_MATCH_BYTES = 4 << 20
"""The least bytes of files from which the driver looks for matching rows; Spark's own scan reads fewer as fast."""
_MATCHES = MatchLimits(rows=1_000, files=16, file_bytes=_MOST_BYTES_WITH_KEYS, filter_bytes=32 << 20)
_NOT_FROM_ARROW = ("variant", "time(")
"""Types from which some versions of Spark cannot create a DataFrame of Arrow data."""


def small_read(
    schema: TableSchema, splits: Sequence[DataSplit], columns: StructType, predicate: Predicate | None
) -> str | None:
    """Describe the rows that the driver would read in a few words; `None`: they are too many.

    Args:
        schema: the schema of the table.
        splits: the splits of the plan.
        columns: the columns of the query.
        predicate: a predicate that is true for every needed row; `None`: all rows are needed.
    """
    types = columns.simpleString()
    files = sum(len(split.files) for split in splits)
    if files > MOST_FILES or any(name in types for name in _NOT_FROM_ARROW):
        return None
    if not read_by_reference(schema).isdisjoint(columns.names):  # the sizes of these blobs are unknown
        return None
    rows, size = sum(split.row_count for split in splits), sum(split.size for split in splits)
    if rows <= MOST_ROWS and size <= _MOST_BYTES:
        return f"{rows} rows of {files} files"
    keys = map(schema.field, schema.primary_keys)
    number = most_keys(predicate, keys) if predicate is not None and schema.primary_keys else None
    if not number or size > _MOST_BYTES_WITH_KEYS:
        return None
    few = number <= _MOST_KEYS or (number <= MOST_ROWS and number * size <= _MOST_BYTES * rows)
    return f"the rows of {number} keys in {files} files" if few else None


def rows_of_small_files(reader: PaimonReader, plan: Plan, columns: StructType) -> Sequence[pa.RecordBatch] | None:
    """Return the rows of many small local files; `None`: Spark's own scan reads them as fast, or reports an error.

    Args:
        reader: the reader of the plan.
        plan: a plan without files that need a merge.
        columns: the columns of the query.
    """
    types, files = columns.simpleString(), sum(len(split.files) for split in plan.splits)
    if not MOST_FILES < files <= _MOST_SMALL_FILES or any(name in types for name in _NOT_FROM_ARROW):
        return None
    rows, size = sum(split.row_count for split in plan.splits), sum(split.size for split in plan.splits)
    if rows > MOST_ROWS or size > _MOST_BYTES:
        return None
    try:
        return list(reader.batches(reader.splits()))
    except (PaimonError, OSError) as error:
        _log.info("Spark's own scan reads: %s", hide_secrets(str(error)))
        return None


def matching_rows(reader: PaimonReader, plan: Plan) -> Sequence[pa.RecordBatch] | None:
    """Return the rows that match a filter for a few values, if the driver reads them faster than Spark's own scan.

    `None`: they are too many, or a file is missing or damaged, which Spark's own scan reports.

    Args:
        reader: the reader of the plan.
        plan: a plan without files that need a merge.
    """
    if sum(split.size for split in plan.splits) < LEAST_MATCH_BYTES:
        return None
    try:
        return reader.few_matches(_MATCHES)
    except (PaimonError, OSError) as error:
        _log.info("Spark's own scan reads: %s", hide_secrets(str(error)))
        return None


def small_rows(spark: SparkSession, options: Mapping[str, str], columns: StructType) -> DataFrame | None:
    """Read a small table in this process and return its rows as a DataFrame; `None`: there are too many rows.

    Args:
        spark: the session.
        options: the options of the data source.
        columns: the columns of the query.

    Raises the errors of the data source.
    """
    reader = batch_reader(read_request(options), columns)
    splits = reader.splits()
    if small_read(reader.schema, splits, columns, reader.predicate) is None:
        return None
    return frame_of_batches(spark, reader.batches(splits), columns)


def frame_of_batches(spark: SparkSession, batches: Iterable[pa.RecordBatch], columns: StructType) -> DataFrame:
    """Return batches as a DataFrame.

    Args:
        spark: the session.
        batches: the rows, as `PaimonReader.batches` yields them.
        columns: the columns of the rows.
    """
    schema = expected_arrow_schema(columns)
    rows = pa.Table.from_batches(batches, schema)
    return spark.createDataFrame(
        rows if rows.num_rows else schema.empty_table(), columns
    )  # Spark needs at least one chunk


def stream_of_batches(batches: Iterable[pa.RecordBatch], columns: StructType) -> bytes:
    """Return batches as a stream in Arrow's IPC format, for ``RowsScan``.

    Args:
        batches: the rows, as `PaimonReader.batches` yields them.
        columns: the columns of the rows.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, expected_arrow_schema(columns)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())
