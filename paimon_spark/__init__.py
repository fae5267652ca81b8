"""Apache Paimon tables in Spark: ``spark.read.format("paimon")`` and ``df.write.format("paimon")``.

`session` starts a session that can use tables, and installs a catalog. In any other session Spark discovers the format
itself; call `register` in a session without automatic discovery.

`clustered` shuffles rows to the task that owns their bucket, and `upsert_batch` writes from ``foreachBatch``. `catalog`
installs a catalog for SQL, and `serve` lets clients without this package use it. `PaimonTable` opens a table by its
path, and `import_table` copies a table of another format.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from paimon_core.lazy import lazy_names

if TYPE_CHECKING:
    from paimon_spark.bucket_shuffle import clustered
    from paimon_spark.datasource import PaimonDataSource
    from paimon_spark.server import serve
    from paimon_spark.session_start import register, session
    from paimon_spark.sql.catalog import catalog
    from paimon_spark.table import PaimonTable
    from paimon_spark.table_import import import_table
    from paimon_spark.upsert import upsert_batch

__all__ = [
    "PaimonDataSource",
    "PaimonTable",
    "catalog",
    "clustered",
    "import_table",
    "register",
    "serve",
    "session",
    "upsert_batch",
]

_NAMES = {
    "paimon_spark.bucket_shuffle": "clustered",
    "paimon_spark.datasource": "PaimonDataSource",
    "paimon_spark.table_import": "import_table",
    "paimon_spark.server": "serve",
    "paimon_spark.session_start": "register session",
    "paimon_spark.sql.catalog": "catalog",
    "paimon_spark.table": "PaimonTable",
    "paimon_spark.upsert": "upsert_batch",
}
"""The modules of the names, which are imported when a name is first used."""

if find_spec("py4j") is None:
    from paimon_core.errors import MissingDependencyError  # otherwise, this import would import more

    raise MissingDependencyError(
        "paimon_spark needs all of PySpark, also in a client of Spark Connect: pip install pyspark (pyspark-client is "
        "only a part of it)"
    )

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES, __all__)
