"""A process with Java, or a client of the server: ``python -m tests.processes.clients ROLE NAME CONFIG``."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.conformance.judge import Judge, JudgeError
from tests.processes.actors import Run
from tests.processes.tables import SCHEMAS, WRITTEN, rows_of
from tests.support.places.jdbc_judge import drivers, s3_jar
from tests.support.places.turns import LOST
from tests.support.servers import listens

_SERVER_SECONDS = 600


class Client(Run):
    """The same with the errors of Java and of Spark."""

    def refused(self, error: Exception) -> bool:
        """Return True if an error says that nothing was changed, because another commit was first."""
        if isinstance(error, JudgeError):
            return any(LOST in text for text in (error.error, *error.causes))
        return isinstance(error, PySparkException) and any(
            name in str(error) for name in ("CommitConflictError", "TableChangedError")
        )

    def expired(self, error: Exception) -> bool:
        """Return True if an error says that the snapshot of a read has expired."""
        if isinstance(error, JudgeError):
            return any("FileNotFound" in text or "does not exist" in text for text in (error.error, *error.causes))
        return isinstance(error, PySparkException) and "expired" in str(error)


def java(run: Client) -> None:
    """Write with Java, and read each table after some writes."""
    warehouse = run.options["warehouse"]
    jars = [*drivers(), s3_jar()] if run.java else []
    given: dict[str, Any] = {"jvm": ("-XX:TieredStopAtLevel=1",), "options": run.java, "jars": jars}
    numbers: Counter[str] = Counter()
    with Judge(warehouse, heap="500m", disk="" if "://" in warehouse else "link", **given) as judge:
        for name in cycle(WRITTEN):
            number = numbers[name]
            rows = [["+I", row] for row in rows_of(name, run.name, number)]
            run.write(name, run.name, number, lambda n=name, r=rows: judge.call("write", table=f"db.{n}", rows=r))
            numbers[name] += 1
            if run.dice.random() < 0.2:
                run.read(name, lambda name=name: java_rows(judge, name))


def java_rows(judge: Judge, name: str) -> pa.Table:
    """Return the rows of a table as Java reads them."""
    answer = judge.call("read", table=f"db.{name}")
    columns = list(zip(*(row[1:] for row in answer["rows"]), strict=True)) or [[] for _ in answer["columns"]]
    return pa.table(dict(zip(answer["columns"], columns, strict=True))).cast(SCHEMAS[name].fields)


def sql(run: Client) -> None:
    """Write, merge, update and read with SQL, as a client of the server."""
    spark = client(run)
    numbers: Counter[str] = Counter()
    for name in cycle(WRITTEN):
        number = numbers[name]
        statement = _statement(name, run.name, number)
        run.write(name, run.name, number, lambda statement=statement: spark.sql(statement).collect())
        numbers[name] += 1
        if name == "log" and run.dice.random() < 0.3:
            run.note("update", writer=run.name, before=numbers[name])
            update = f"UPDATE log SET touched = touched + 1 WHERE writer = '{run.name}'"
            sure = run.tried("update of log", lambda update=update: spark.sql(update).collect())
            run.note("updated", writer=run.name, before=numbers[name], sure=sure)
        if run.dice.random() < 0.5:
            run.read(name, lambda name=name: spark.sql(f"SELECT * FROM {name}").toArrow())


def _statement(name: str, writer: str, number: int) -> str:
    rows = [tuple(row.values()) for row in rows_of(name, writer, number)]
    values = ", ".join(f"('{one}', {', '.join(map(str, others))})" for one, *others in rows)
    if name != "keyed":
        return f"INSERT INTO {name} VALUES {values}"
    return (
        f"MERGE INTO keyed t USING (SELECT * FROM VALUES {values} AS s(writer, number, part, touched)) s "
        "ON t.writer = s.writer AND t.number = s.number AND t.part = s.part "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def stream(run: Client) -> None:
    """Copy `log` by a streaming query, which runs in the server."""
    spark = client(run)
    rows = spark.readStream.option("consumer-id", "copy").table("log").select("writer", "number", "part", "touched")
    writing = rows.writeStream.option("checkpointLocation", str(run.home / "checkpoint"))
    query = writing.trigger(processingTime="1 second").toTable("copy")
    query.awaitTermination()


def client(run: Client) -> SparkSession:
    """Connect to the server, which may be starting, without retries: for a lost answer the client would call again."""
    end = time.monotonic() + _SERVER_SECONDS
    while not listens(run.port)():
        assert time.monotonic() < end, "the server does not listen"
        time.sleep(0.2)
    spark = SparkSession.builder.remote(f"sc://localhost:{run.port}").getOrCreate()
    spark.client.set_retry_policies([])
    spark.sql("USE paimon.db")
    return spark


ROLES: dict[str, Callable[[Client], None]] = {role.__name__: role for role in (java, sql, stream)}

if __name__ == "__main__":
    os.environ.pop("SPARK_REMOTE", None)
    ROLES[sys.argv[1]](Client(sys.argv[2], Path(sys.argv[3])))
