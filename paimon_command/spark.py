"""Start Spark for ``--spark``; no other module of the command imports Spark."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from paimon_core import Explanation
from paimon_core.engine import Runner
from paimon_core.errors import InvalidInputError, MissingDependencyError


@contextmanager
def spark_session(master: str, name: str) -> Iterator[Any]:
    """Yield a new session, which ends with the block.

    Args:
        master: the Spark master, such as ``local[4]`` or ``spark://host:7077``.
        name: the application name in Spark's UI.

    Raises MissingDependencyError without pyspark, InvalidInputError with the reason if the session does not start.
    """
    try:
        session = import_module("pyspark.sql").SparkSession
    except ImportError as error:
        raise MissingDependencyError(f"--spark needs pyspark: pip install pyspark ({error})") from error
    try:
        spark = session.builder.master(master).appName(f"paimon-spark {name}").getOrCreate()
    except Exception as error:  # of py4j, of Java and of Spark
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInputError(f"Spark does not start with master {master!r}: {reason}") from error
    try:
        yield spark
    finally:
        spark.stop()


def connector(module: str) -> Any:
    """Import and return a module of `paimon_spark`. Raises MissingDependencyError without pyspark."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(f"this needs pyspark: pip install pyspark ({error})") from error


@contextmanager
def spark_runner(master: str, name: str) -> Iterator[Runner]:
    """Yield a runner on the executors of a new session: see `spark_session`."""
    with spark_session(master, name) as spark:
        yield import_module("paimon_spark.distribute").SparkRunner(spark, name)


def spark_explanation(spark: Any, path: str, options: Mapping[str, str], **how: Any) -> Explanation:
    """Return the explanation of a read by Spark.

    Args:
        spark: the Spark session.
        path: the path of the table, with its branch or view.
        options: the options of the read.
        how: further arguments of ``PaimonTable.explain``.
    """
    table = import_module("paimon_spark.table").PaimonTable.forPath(spark, path, **options)
    explanation: Explanation = table.explain(**how)
    return explanation
