"""Apache Paimon tables in Spark: ``spark.read.format("paimon")`` and ``df.write.format("paimon")``.

Nothing needs to be called first: Spark finds the source by itself. `register` is for sessions where that is switched
off, `clustered` shuffles rows to the task that owns their bucket, `upsert_batch` is for ``foreachBatch``, and
`PaimonTable` is a table by its place.
"""

from pyspark.sql import SparkSession

from paimon_spark.clustered import clustered
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.table import PaimonTable
from paimon_spark.upsert import upsert_batch

__all__ = ["PaimonDataSource", "PaimonTable", "clustered", "register", "upsert_batch"]


def register(spark: SparkSession) -> None:
    """Make ``format("paimon")`` known to this session, where automatic discovery is not wanted or not possible."""
    spark.dataSource.register(PaimonDataSource)
