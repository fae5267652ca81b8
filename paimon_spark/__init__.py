"""Apache Paimon tables in Spark: ``spark.read.format("paimon")`` and ``df.write.format("paimon")``.

Spark discovers the format itself; call `register` in a session without automatic discovery.

`clustered` shuffles rows to the task that owns their bucket, and `upsert_batch` writes from ``foreachBatch``. `catalog`
installs a catalog for SQL, `PaimonTable` opens a table by its path, and `import_table` copies a table of another
format.
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
    """Register ``format("paimon")`` in `spark`, a session that does not discover it."""
    spark.dataSource.register(PaimonDataSource)
