"""One role of a run, in a process: ``python -m tests.processes.actors ROLE NAME CONFIG``; it works until it is killed.

It notes in a file what it begins and what is acknowledged. An error whose outcome is known, such as a conflict, is
noted, and the work goes on; any other error ends the process.
"""

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_core import Table, open_catalog
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import CommitConflictError, CommitUnknownError, NotFoundError, OutOfRangeError
from tests.conformance.judge import Judge, JudgeError
from tests.processes.tables import SCHEMAS, WRITTEN, arrow_rows, counts_of, rows_of
from tests.support.places.jdbc_judge import drivers, s3_jar
from tests.support.places.turns import LOST
from tests.support.servers import listens

ORPHAN_SECONDS = 120
"""The age of the files that the orphan remover may delete: more than any write takes."""
_SERVER_SECONDS = 240


class Run:
    """The configuration of a run, and the notes of this process."""

    def __init__(self, name: str, config: Path) -> None:
        given = json.loads(config.read_text())
        self.name, self.home = name, config.parent
        self.options: dict[str, str] = given["catalog"]
        self.java: dict[str, Any] = given["java"]
        self.port: int = given["port"]
        self.dice = random.Random(f"{given['seed']} {name}")
        self._notes = (self.home / "notes" / f"{name}.jsonl").open("a", buffering=1)
        self._catalog = open_catalog(options=self.options)

    def table(self, name: str) -> Table:
        """Return a table of the run, newly opened."""
        table = self._catalog.table(f"db.{name}")
        assert isinstance(table, Table)
        return table

    def note(self, do: str, **what: Any) -> None:
        """Write a line of notes with the moment; the operating system keeps it if this process is killed."""
        self._notes.write(json.dumps({"do": do, "at": time.monotonic(), **what}) + "\n")

    def write(self, table: str, writer: str, number: int, action: Callable[[], object]) -> None:
        """Note a write and carry it out, again and again while it is refused."""
        self.note("begin", table=table, writer=writer, number=number)
        self.tried(f"write to {table}", action, again=True)
        self.note("end", table=table, writer=writer, number=number)

    def tried(self, what: str, action: Callable[[], object], *, again: bool = False) -> bool:
        """Carry out an action; return False if it was refused. ``again``: repeat it until it is not refused."""
        while True:
            try:
                action()
            except Exception as error:
                if not _refused(error):
                    raise
                self.note("refused", what=what, error=type(error).__name__)
                if again:
                    continue
                return False
            return True

    def read(self, table: str, rows: Callable[[], pa.Table]) -> None:
        """Note a read and what it saw. A read whose snapshot expired saw nothing, and says so."""
        begin = time.monotonic()
        try:
            found = rows()
        except (NotFoundError, OutOfRangeError, PySparkException, JudgeError) as error:
            if not _expired(error):
                raise
            self.note("missed", what=f"read of {table}", error=type(error).__name__)
            return
        end = time.monotonic()
        self.note("read", table=table, reader=self.name, begin=begin, at=end, counts=counts_of(table, found))


def _refused(error: Exception) -> bool:
    """Return True if an error says that nothing was changed, because another commit was first."""
    if isinstance(error, JudgeError):
        return any(LOST in text for text in (error.error, *error.causes))
    if isinstance(error, PySparkException):
        return "CommitConflictError" in str(error) or "TableChangedError" in str(error)
    return isinstance(error, CommitConflictError)


def _expired(error: Exception) -> bool:
    if isinstance(error, JudgeError):
        return any("FileNotFound" in text or "does not exist" in text for text in (error.error, *error.causes))
    return "expired" in str(error)


def python(run: Run) -> None:
    """Write with `Table.write`."""
    numbers: Counter[str] = Counter()
    for name in cycle(WRITTEN):
        number = numbers[name]
        rows = arrow_rows(name, run.name, number)
        run.write(name, run.name, number, lambda name=name, rows=rows: run.table(name).write(rows))
        numbers[name] += 1


def numbered(run: Run) -> None:
    """Write numbered commits, whose position is in a file: what a killed process had begun is committed once more."""
    position = run.home / "numbered.json"
    life, step = json.loads(position.read_text()) if position.exists() else (0, 0)
    while True:
        hidden = position.with_suffix(".new")
        hidden.write_text(json.dumps([life, step]))
        hidden.rename(position)
        name, number, writer = WRITTEN[step % len(WRITTEN)], step // len(WRITTEN), f"numbered-{life}"
        rows = arrow_rows(name, writer, number)
        commit = partial(_committed, run, name, rows, writer, number)
        try:
            run.write(name, writer, number, commit)
        except CommitUnknownError as error:  # the history since the first attempt has expired
            run.note("unknown", what=f"write to {name}", error=str(error))
            life, step = life + 1, 0
            continue
        step += 1


def _committed(run: Run, name: str, rows: pa.Table, user: str, number: int) -> None:
    table = run.table(name)
    with table.writer() as writer:
        writer.write(rows)
        messages = writer.prepare_commit()
    IdempotentCommits(table.store, user).commit(messages, number, started_from=writer.started_from)


def java(run: Run) -> None:
    """Write with Java, and read each table after some writes."""
    jars = [*drivers(), s3_jar()] if "://" in run.options["warehouse"] else []
    jvm = ("-XX:TieredStopAtLevel=1",)
    numbers: Counter[str] = Counter()
    with Judge(run.options["warehouse"], heap="500m", jvm=jvm, options=run.java, jars=jars) as judge:
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


def sql(run: Run) -> None:
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


def stream(run: Run) -> None:
    """Copy `log` by a streaming query, which runs in the server."""
    spark = client(run)
    rows = spark.readStream.option("consumer-id", "copy").table("log").select("writer", "number", "part", "touched")
    writing = rows.writeStream.option("checkpointLocation", str(run.home / "checkpoint"))
    query = writing.trigger(processingTime="1 second").toTable("copy")
    query.awaitTermination()


def client(run: Run) -> SparkSession:
    """Connect to the server, which may be starting, without retries: for a lost answer the client would call again."""
    end = time.monotonic() + _SERVER_SECONDS
    while not listens(run.port)():
        assert time.monotonic() < end, "the server does not listen"
        time.sleep(0.2)
    spark = SparkSession.builder.remote(f"sc://localhost:{run.port}").getOrCreate()
    spark.client.set_retry_policies([])
    spark.sql("USE paimon.db")
    return spark


def reader(run: Run) -> None:
    """Read all tables, whole."""
    for name in cycle([*WRITTEN, "copy"]):
        run.read(name, lambda name=name: run.table(name).to_arrow())
        time.sleep(run.dice.uniform(0, 0.2))


def compactor(run: Run) -> None:
    """Compact the tables."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        full = run.dice.random() < 0.3
        if run.tried(f"compaction of {name}", lambda name=name, full=full: run.table(name).compact(full=full)):
            run.note("compacted")
        time.sleep(run.dice.uniform(0, 1))


def expirer(run: Run) -> None:
    """Expire snapshots; of `log` when the stream has registered as its consumer, and so holds what it needs."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        table, kept = run.table(name), run.dice.randint(60, 90)
        if name != "log" or table.consumers.list():
            expired = table.maintenance.expire_snapshots(retain_max=kept, retain_min=60, older_than=_ago(0))
            run.note("expired", count=len(expired.snapshots))
        time.sleep(run.dice.uniform(0.5, 3))


def orphans(run: Run) -> None:
    """Remove orphan files that are older than any running write."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        removed = run.table(name).maintenance.remove_orphan_files(older_than=_ago(ORPHAN_SECONDS))
        run.note("removed", count=removed.count)
        time.sleep(run.dice.uniform(1, 4))


def _ago(seconds: float) -> int:
    return int((time.time() - seconds) * 1000)


def _shuffled(run: Run, names: list[str]) -> Iterator[str]:
    while True:
        yield from run.dice.sample(names, len(names))


ROLES: dict[str, Callable[[Run], None]] = {
    role.__name__: role for role in (python, numbered, java, sql, stream, reader, compactor, expirer, orphans)
}

if __name__ == "__main__":
    os.environ.pop("SPARK_REMOTE", None)
    ROLES[sys.argv[1]](Run(sys.argv[2], Path(sys.argv[3])))
