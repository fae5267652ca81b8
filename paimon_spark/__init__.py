"""Apache Paimon tables in Spark: ``spark.read.format("paimon")`` and ``df.write.format("paimon")``.

Spark finds the format by itself; `register` is for sessions without automatic discovery. `clustered` shuffles rows to
the task that owns their bucket, `upsert_batch` writes from ``foreachBatch``, `catalog` installs a catalog for SQL,
`PaimonTable` is a table by its path, and `import_table` makes a table of one of another format.
"""

from pyspark.sql import SparkSession

from paimon_spark.clustered import clustered
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.import_table import import_table
from paimon_spark.sql.catalog import catalog
from paimon_spark.table import PaimonTable
from paimon_spark.upsert import upsert_batch

__all__ = ["PaimonDataSource", "PaimonTable", "catalog", "clustered", "import_table", "register", "upsert_batch"]


def register(spark: SparkSession) -> None:
    """Make ``format("paimon")`` known to a session, `spark`, that does not discover it."""
    spark.dataSource.register(PaimonDataSource)
