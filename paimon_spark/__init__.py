"""Apache Paimon tables in Spark: ``spark.read.format("paimon")`` and ``df.write.format("paimon")``.

`session` starts a session that can use tables, and installs a catalog. In any other session Spark discovers the format
itself; call `register` in a session without automatic discovery.

`clustered` shuffles rows to the task that owns their bucket, and `upsert_batch` writes from ``foreachBatch``. `catalog`
installs a catalog for SQL, `PaimonTable` opens a table by its path, and `import_table` copies a table of another
format.
"""

from paimon_spark.clustered import clustered
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.import_table import import_table
from paimon_spark.session_start import register, session
from paimon_spark.sql.catalog import catalog
from paimon_spark.table import PaimonTable
from paimon_spark.upsert import upsert_batch

__all__ = [
    "PaimonDataSource",
    "PaimonTable",
    "catalog",
    "clustered",
    "import_table",
    "register",
    "session",
    "upsert_batch",
]
