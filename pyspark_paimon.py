"""What Spark imports at the start of a session to find the format "paimon": modules named ``pyspark_*``."""

from paimon_spark.datasource import PaimonDataSource as DefaultSource

__all__ = ["DefaultSource"]
