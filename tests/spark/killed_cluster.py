"""Statements on a cluster whose workers are killed: ``python -m tests.spark.killed_cluster URL WAREHOUSE SECONDS``.

The driver lives. A statement that returns has changed the table, and one that fails has changed it as a whole or not at
all. After each statement, the tables must have the rows of these statements. The last line of the output is JSON.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field

from pyspark.sql import SparkSession

import paimon_spark
from paimon_spark.sql.session_options import NATIVE_WRITES
from tests.spark.conftest import SETTINGS

ROWS = 40_000
_PATIENT = {"spark.task.maxFailures": "40", "spark.stage.maxConsecutiveAttempts": "40"}
"""Spark gives up a query after four lost executors: here, as many are lost in a minute."""
CREATE = (
    "CREATE DATABASE d",
    "CREATE TABLE d.log (id BIGINT, batch INT) TBLPROPERTIES ('bucket' = '-1')",
    "CREATE TABLE d.counts (id BIGINT NOT NULL, n BIGINT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '4')",
)
INSERT = "INSERT INTO d.log SELECT id, {0} FROM range({0} * {1}, ({0} + 1) * {1}, 1, 8)"
MERGE = """MERGE INTO d.counts t USING (SELECT id FROM range(0, {1}, 1, 8)) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 1)"""
COMPACT = "CALL sys.compact(table => 'd.{2}')"


@dataclass
class Tables:
    """The rows that the tables must have, and what happened so far.

    Args:
        batches: the batches of `log`.
        merges: the number that each row of `counts` has.
        acknowledged: the number of statements that returned.
        failed: the number of statements that failed, and changed nothing.
        unknown: the number of statements that failed, and changed the table.
        reads: the number of comparisons.
    """

    batches: set[int] = field(default_factory=set)
    merges: int = 0
    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    reads: int = 0

    def run(self, spark: SparkSession, number: int) -> None:
        """Run the statement of a number, and compare the rows of the tables."""
        text = (INSERT, INSERT, MERGE, COMPACT)[number % 4].format(number, ROWS, ("log", "counts")[number // 4 % 2])
        spark.conf.set(NATIVE_WRITES, "false" if number % 4 == 1 else "true")
        try:
            spark.sql(text).collect()
        except Exception as error:
            print(f"{number}: {str(error)[:300]}", flush=True)
            before = set(self.batches), self.merges
            self.batches, self.merges = read(spark)
            self.unknown += (self.batches, self.merges) != before
            self.failed += (self.batches, self.merges) == before
            assert self.batches - before[0] <= {number}
            assert self.merges - before[1] in ({0, 1} if text.startswith("MERGE") else {0})
        else:
            self.acknowledged += 1
            self.batches |= {number} if text.startswith("INSERT") else set()
            self.merges += text.startswith("MERGE")
        assert read(spark) == (self.batches, self.merges), (number, text)
        self.reads += 1


def read(spark: SparkSession) -> tuple[set[int], int]:
    """Return the batches and the number of merges. Raises AssertionError for a part of a batch or of a merge."""
    batches = spark.sql("SELECT batch, count(*), count(DISTINCT id), sum(id) FROM d.log GROUP BY batch").collect()
    for batch, count, distinct, total in batches:
        first = batch * ROWS
        assert (count, distinct, total) == (ROWS, ROWS, ROWS * first + ROWS * (ROWS - 1) // 2), batch
    least, most, count = spark.sql("SELECT min(n), max(n), count(*) FROM d.counts").collect()[0]
    assert least == most, (least, most)
    assert count in (0, ROWS), count
    return {row[0] for row in batches}, most or 0


def main(url: str, warehouse: str, seconds: float) -> None:
    """Run statements for some seconds, and print what happened."""
    builder = SparkSession.builder.master(url)
    for key, value in (SETTINGS | _PATIENT).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    paimon_spark.catalog(spark, "pm", warehouse=warehouse, default=True)
    for text in CREATE:
        spark.sql(text)
    tables, end, number = Tables(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        tables.run(spark, number)
        number += 1
    print(json.dumps(asdict(tables) | {"batches": len(tables.batches)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
