"""``python -m tests.random_sql --programs 100 --seed 7``: run random programs in one session, and shrink what fails."""

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import paimon_spark
from tests.random_sql.draw import draw
from tests.random_sql.play import Counts
from tests.random_sql.session import run_program
from tests.random_sql.shrink import script, shrink
from tests.spark.conftest import ROOT, SEARCHED, SETTINGS

_LONG = {"spark.ui.retainedJobs": "20", "spark.ui.retainedStages": "20", "spark.sql.ui.retainedExecutions": "20"}
"""Settings of a session with thousands of programs: Spark sorts what it remembers at each query."""


def main() -> int:
    """Run programs and print what differs. Return 1 if a program failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_sql", description=__doc__)
    parser.add_argument("--programs", type=int, default=100, help="the number of programs")
    parser.add_argument("--seed", default="0", help="the programs of one seed are the same in every run")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--statements", type=int, default=8, help="statements of each program")
    parser.add_argument("--queries", type=int, default=1, help="queries after each statement")
    parser.add_argument("--maintenance", action="store_true", help="more procedures and schema changes")
    parser.add_argument("--failures", type=int, default=5, help="stop after so many programs that fail")
    parser.add_argument("--scripts", type=Path, help="a directory for the scripts of programs that fail")
    parser.add_argument("--runs", type=int, default=120, help="the most runs to make a program smaller")
    arguments = parser.parse_args()
    logging.disable()  # PySpark and the connector log the errors that programs expect
    spark = _session()
    counts, failed, begin = Counts(), 0, time.monotonic()
    for number in range(arguments.first, arguments.first + arguments.programs):
        seed, maintenance = f"{arguments.seed} {number}", arguments.maintenance
        program = draw(seed, arguments.statements, arguments.queries, maintenance=maintenance)
        failure = run_program(spark, program, counts)
        if number % 10 == 9:
            print(f"{counts} in {time.monotonic() - begin:.0f} s", flush=True)
        if failure is None:
            continue
        failed += 1
        print(
            f"program {program.seed}: {failure.kind}, statement {failure.at}\n{failure.statement}\n{failure.detail}",
            flush=True,
        )
        program, failure = shrink(program, failure, lambda one: run_program(spark, one, Counts()), arguments.runs)
        text = script(program, failure)
        print(f"program {program.seed}: {failure.kind}\n{text}", flush=True)
        if arguments.scripts:
            arguments.scripts.mkdir(parents=True, exist_ok=True)
            (arguments.scripts / f"{program.seed.replace(' ', '-')}.py").write_text(text)
        if failed == arguments.failures:
            break
    print(f"{counts} in {time.monotonic() - begin:.0f} s, {failed} failed")
    return 1 if failed else 0


def _session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    builder = SparkSession.builder.master("local[2,3]")
    for key, value in (SETTINGS | _LONG).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for name in SEARCHED:
        setattr(spark.sparkContext._jvm, name, getattr(spark.sparkContext._jvm, name))
    paimon_spark.catalog(spark, "pm", warehouse=tempfile.mkdtemp(prefix="random-sql-"), default=True)
    return spark


if __name__ == "__main__":
    sys.exit(main())
