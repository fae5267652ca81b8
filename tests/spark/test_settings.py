"""The settings in spark-conf exist in this Spark."""

from pathlib import Path

import pytest

SETTINGS = Path(__file__).parent.parent.parent / "spark-conf" / "spark-defaults.conf"


@pytest.mark.spark
def test_every_setting_is_one_spark_knows(spark):
    lines = [line for line in SETTINGS.read_text().splitlines() if line and not line.startswith("#")]
    if not hasattr(spark, "_jvm"):
        pytest.skip("only a classic session can be asked")
    known = spark._jvm.org.apache.spark.internal.config.ConfigEntry
    assert not [line for line in lines if known.findEntry(line.split()[0]) is None]
