"""The rows of a primary key table, merged from the base run, which Spark reads, and a few newer rows."""

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from paimon_core import TableSchema
from paimon_core.types.columns import free_prefix
from paimon_core.types.row_kind import is_retract
from paimon_spark.internals import quoted
from paimon_spark.types import spark_schema


def with_newer_rows(base: DataFrame, newer: pa.Table, schema: TableSchema) -> DataFrame:
    """Return the base rows without a newer row of the same key, and the newer rows that are not deletes.

    Args:
        base: rows of the base run, of a classic session.
        newer: the newest row of each key, with its kind, as `newer_rows` returns them.
        schema: the schema of the table.
    """
    if not newer.num_rows:
        return base
    kinds = newer.column(0).combine_chunks().to_numpy(zero_copy_only=False)
    prefix = free_prefix("__paimon_", schema.names)
    adds = f"{prefix}adds"
    rows = newer.drop_columns(newer.column_names[0]).append_column(adds, pa.array(~is_retract(kinds)))
    fields = StructType([*spark_schema(schema.fields).fields, StructField(adds, BooleanType(), False)])
    frame = base.sparkSession.createDataFrame(rows, fields)
    key = schema.primary_keys
    keys = frame.select(*(F.col(quoted(name)).alias(f"{prefix}key{n}") for n, name in enumerate(key)))
    same: Column = F.lit(True)
    for n, name in enumerate(key):
        same = same & (base[quoted(name)] == keys[f"{prefix}key{n}"])
    remaining = base.join(F.broadcast(keys), same, "left_anti")
    return remaining.union(frame.where(adds).drop(adds))
