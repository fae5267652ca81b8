"""The Spark session of the other Spark tests."""

from tests.spark.conftest import spark, standalone  # noqa: F401
