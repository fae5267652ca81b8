"""The SQL corpus on the Java connector 0.9 and Spark 3.5: `python sql_on_java.py JAR WAREHOUSES FILE...`.

It runs with the Python of that Spark, without this project's packages. What is marked `--: not java` is left out; a
statement marked `--: java <reason>` must answer something else there. Of errors, it only counts that there is one. The
differences without a mark are printed, and the process ends with 1.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.sql import SparkSession

CASES = Path(__file__).parents[1] / "support" / "sql_cases.py"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",  # as Spark 4 has it
    "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
}


def sql_cases() -> ModuleType:
    """Return the module that reads the corpus, without the package around it."""
    spec = importlib.util.spec_from_file_location("sql_cases", CASES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sql_cases"] = module
    spec.loader.exec_module(module)
    return module


def run(spark: SparkSession, cases: Any, corpus: Any, warehouse: str) -> list[str]:
    """Run a file of the corpus from an empty warehouse and return the differences."""
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.paimon.warehouse", warehouse)
    session.sql("CREATE DATABASE paimon.c")
    session.sql("USE paimon.c")
    found = []
    for statement in corpus.statements:
        if "not java" in statement.marks:
            continue
        result = cases.answer(session, statement.text, warehouse)
        expected = "ok" if statement.expected.startswith("num_affected_rows") else statement.expected  # 0.9 counts none
        failed = expected.startswith("error") and result.startswith("error")
        agrees = failed or cases.matches(result, expected)
        if agrees and "java" in statement.marks:
            found.append(f"{corpus.name}:{statement.line}: agrees, though it is marked\n{statement.text}")
        elif not agrees and "java" not in statement.marks:
            found.append(f"{corpus.name}:{statement.line}: {statement.text}\n  expected:\n{statement.expected}")
            found[-1] += f"\n  Java:\n{result}"
    return found


def main(jar: str, warehouses: str, *files: str) -> int:
    """Run all files and print their differences; return 1 if there are any."""
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jar)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    cases = sql_cases()
    differences, statements = [], 0
    for file in files:
        corpus = cases.read_corpus(Path(file))
        if "not java" not in corpus.marks:
            statements += sum("not java" not in statement.marks for statement in corpus.statements)
            differences += run(spark, cases, corpus, f"{warehouses}/{corpus.name}")
    spark.stop()
    print("\n\n".join(differences))
    print(f"{statements} statements, {len(differences)} differences that are not marked")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
