"""Checks of a session before it uses Paimon tables: the Python of its workers, and settings of the Java connector."""

from collections.abc import Collection

from pyspark.sql import SparkSession

from paimon_core.errors import InvalidInputError
from paimon_spark.error_advice import advise_on_errors
from paimon_spark.internals import is_classic, java_connector_catalogs
from paimon_spark.worker_python import check_worker_python


def check_session(spark: SparkSession, replaced: Collection[str] = ()) -> None:
    """Raise the first error of a session that cannot use Paimon tables, and install the advice on Spark's errors.

    Args:
        spark: the session; Connect sessions pass.
        replaced: names of catalogs that are about to be installed.

    Raises MissingDependencyError if workers lack this package, InvalidInputError if a setting names the catalog of the
    Java connector, and its jar is not there.
    """
    if not is_classic(spark):
        return
    check_worker_python(spark)
    advise_on_errors()
    for name, warehouse in java_connector_catalogs(spark).items():
        if name not in replaced:
            directory = warehouse or "/warehouse"
            raise InvalidInputError(
                f"spark.sql.catalog.{name} is the catalog of the Java connector, whose jar is not in this session: "
                f"remove the setting, and call paimon_spark.catalog(spark, {name!r}, warehouse={directory!r})"
            )
