"""The rows of a primary key table, merged from the base run, which Spark reads, and a few newer rows."""

import json
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_core import TableSchema
from paimon_core.types.row_kind import is_retract
from paimon_spark.internals import java_rows
from paimon_spark.sql.bridge.conversions import frame_of, java_struct
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.driver_rows import stream_of_batches
from paimon_spark.types import expected_arrow_schema, for_spark, spark_schema


def with_newer_rows(jvm: Jvm, base: DataFrame, newer: pa.Table, schema: TableSchema) -> DataFrame:
    """Return the base rows without a newer row of the same key, and the newer rows that are not deletes.

    Args:
        jvm: the JVM of the session.
        base: rows of the base run, of a classic session.
        newer: the newest row of each key, with its kind, as `newer_rows` returns them.
        schema: the schema of the table.
    """
    if not newer.num_rows:
        return base
    kinds = newer.column(0).combine_chunks().to_numpy(zero_copy_only=False)
    rows = newer.drop_columns(newer.column_names[0])
    keys = schema.primary_keys
    replaced = _stream(rows.select(list(keys)), schema, keys)
    added = _stream(rows.filter(pa.array(~is_retract(kinds))), schema, schema.names)
    columns = java_struct(jvm, spark_schema(schema.fields))
    merged = jvm.connector_class("NativeRows").withNewer(java_rows(base), json.dumps(keys), replaced, added, columns)
    return frame_of(jvm, merged)


def _stream(rows: pa.Table, schema: TableSchema, names: Sequence[str]) -> bytes:
    columns = spark_schema([schema.field(name) for name in names])
    expected = expected_arrow_schema(columns)
    return stream_of_batches((for_spark(batch, expected) for batch in rows.to_batches()), columns)
