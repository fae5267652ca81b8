"""Overwrites of a table, or of some of its partitions, with the rows of a DataFrame."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from paimon_core import Snapshot, Table
from paimon_core.engine import DYNAMIC, partition_predicate
from paimon_core.errors import InvalidInputError
from paimon_core.options.snapshot import DYNAMIC_PARTITION_OVERWRITE
from paimon_spark.frame_write import NativeResults, write_table
from paimon_spark.options import write_request
from paimon_spark.types import spark_type
from paimon_spark.writer import prepared_table


def overwrite_frame(
    frame: DataFrame,
    table: Table,
    options: Mapping[str, str],
    partition: Mapping[str, object] | str | None,
    native: NativeResults,
) -> Snapshot | None:
    """Replace rows of a table with the rows of a DataFrame in one commit; result and errors as `PaimonTable.overwrite`.

    Args:
        frame: the new rows.
        table: the table to write, opened with its options.
        options: the write options, with the path of the table.
        partition: the rows to replace, as for `PaimonTable.overwrite`.
        native: writes the rows without Python workers, as for `write_table`.
    """
    option, stored = DYNAMIC_PARTITION_OVERWRITE, table.store.options
    if partition is None and stored.has(option) and stored.value(option):
        partition = DYNAMIC
    if isinstance(partition, Mapping) and partition:
        partition_predicate(table.store, [partition])  # refuse a wrong partition before Spark computes the rows
        frame = _with_partition(frame, table, partition)
    elif isinstance(partition, str) and partition != DYNAMIC:
        raise InvalidInputError(f"partition must be a mapping, None or {DYNAMIC!r}, not {partition!r}")
    request = write_request(options, table.schema.names)
    target = prepared_table(table, request, frame.schema)
    return write_table(frame, target, request, overwrite=True, replaced=partition, native=native)


def _with_partition(frame: DataFrame, table: Table, partition: Mapping[str, object]) -> DataFrame:
    """Return the rows with the partition columns that they lack, filled with the values of the partition."""
    columns = {name.lower() for name in frame.columns}
    missing = [name for name in partition if name.lower() not in columns]
    values = (F.lit(partition[name]).cast(spark_type(table.schema.field(name).type, name)) for name in missing)
    return frame.withColumns(dict(zip(missing, values, strict=True))) if missing else frame
