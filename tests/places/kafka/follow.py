"""The queries of demo/kafka.py in a process of its own, which runs until it or a query of it is killed.

``python -m tests.places.kafka.follow SERVERS WAREHOUSE MASTER [note]``: with ``note``, orders have that column.
"""

import os
import sys

from pyspark.sql import SparkSession

from demo.kafka import ORDER, WITH_NOTE, add_note, follow, make_tables
from tests.support.markdown import ROOT
from tests.support.places.kafka import connector_jars

UP = "follow: up"


def main(servers: str, warehouse: str, master: str, *columns: str) -> None:
    """Follow the topics; end when a query fails."""
    os.environ["PYTHONPATH"] = str(ROOT)
    builder = SparkSession.builder.master(master).config("spark.jars", ",".join(map(str, connector_jars())))
    builder = builder.config("spark.executor.memory", "700m").config("spark.executorEnv.PYTHONPATH", str(ROOT))
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    builder = builder.config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    make_tables(spark, warehouse)
    if columns:
        add_note(spark)
    follow(spark, servers, warehouse, WITH_NOTE if columns else ORDER, processingTime="500 milliseconds")
    print(UP, flush=True)
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
