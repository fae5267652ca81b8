"""Access to the rows of a target from the driver of a classic session."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core import Snapshot, Table
from paimon_spark.internals import is_classic
from paimon_spark.row_level.target import RowAccess
from paimon_spark.sql.reads.driver_rows import small_rows
from paimon_spark.sql.reads.native_rows import stored_rows
from paimon_spark.sql.session_options import NATIVE_READS, native_reads
from paimon_spark.sql.writes.few_rows import few_changes


class DriverAccess(RowAccess):
    """Access through Spark's own scan where it can read the rows; the driver handles small reads and writes."""

    def stored(
        self, spark: SparkSession, table: Table, snapshot: Snapshot, positions: Sequence[str]
    ) -> DataFrame | None:
        """See `stored_rows`."""
        return stored_rows(spark, table, snapshot, positions)

    def small(self, spark: SparkSession, options: Mapping[str, str], columns: StructType) -> DataFrame | None:
        """See `small_rows`."""
        if not is_classic(spark) or not native_reads(spark.conf.get(NATIVE_READS, None)):
            return None
        return small_rows(spark, options, columns)

    def few_changes(self, rows: DataFrame) -> pa.Table | None:
        """See `few_changes`."""
        return few_changes(rows)
