"""The one module that starts Spark, for ``--spark``; nothing of Spark is imported before."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from paimon_core.errors import InvalidInputError, MissingDependencyError
from paimon_core.maintenance.execute import Runner


@contextmanager
def spark_runner(master: str, name: str) -> Iterator[Runner]:
    """Yield a runner on the executors of a new session, which ends with the block.

    Args:
        master: such as ``local[4]`` or ``spark://host:7077``.
        name: of the application, on Spark's pages.

    Raises MissingDependencyError without pyspark, InvalidInputError with the reason if the session does not start.
    """
    try:
        session = import_module("pyspark.sql").SparkSession
    except ImportError as error:
        raise MissingDependencyError(f"--spark needs pyspark: pip install pyspark ({error})") from error
    runner = import_module("paimon_spark.distribute").SparkRunner
    try:
        spark = session.builder.master(master).appName(f"paimon-spark {name}").getOrCreate()
    except Exception as error:  # of py4j, of Java and of Spark
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInputError(f"Spark does not start with master {master!r}: {reason}") from error
    try:
        yield runner(spark, name)
    finally:
        spark.stop()
