"""Run a program in a database of its own."""

import itertools

from pyspark.sql import SparkSession

from tests.random_sql.play import Counts, Failure, Player
from tests.random_sql.program import Program

_NUMBERS = itertools.count()


def run_program(spark: SparkSession, program: Program, counts: Counts, catalog: str = "pm") -> Failure | None:
    """Run a program on new tables, and return how they differ from their model; `None`: nowhere.

    Args:
        spark: a session with a catalog of Paimon tables.
        program: the program.
        counts: counts the work.
        catalog: the name of the catalog.
    """
    database = f"{catalog}.random{next(_NUMBERS)}"
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    try:
        return Player(spark, program, counts).run()
    finally:
        spark.sql(f"USE {catalog}.default")
        spark.sql(f"DROP DATABASE {database} CASCADE")
