"""The chain of `chain.py` without a JVM: the same readers and writers, called as Spark calls them, in one process.

Every query is a thread with a checkpoint in Spark's form: `offsets/n` is there before batch n is run, `commits/n` when
it is through; a batch without the latter is run again with the same offsets. Starting takes a second, not twenty, so
that a process can be killed hundreds of times. It takes the arguments of `chain.py`.
"""

import json
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructType

from paimon_spark import PaimonDataSource
from tests.stream.chain import DELETED_OF, DRAINED, GROUPS, KEYS, UP, place

ROWS = 200  # numbers of a batch
SUMS = StructType().add("g", LongType()).add("n", LongType()).add("total", LongType()).add("rowkind", StringType())
Batches = list[pa.RecordBatch]


class Numbers:
    """0, 1, 2 ... with the change each stands for, in two tasks."""

    schema = StructType().add("v", LongType()).add("k", LongType()).add("kind", StringType())

    def initialOffset(self) -> dict:
        return {"offset": 0}

    def latestOffset(self, start: dict) -> dict:
        return {"offset": start["offset"] + ROWS}

    def tasks(self, start: dict, end: dict) -> Iterator[Batches]:
        for first in range(start["offset"], end["offset"], ROWS // 2):
            v = range(first, first + ROWS // 2)
            kinds = ["-D" if n % DELETED_OF == 5 else "+U" for n in v]
            yield [pa.record_batch({"v": v, "k": [n * 7919 % KEYS for n in v], "kind": kinds})]

    def commit(self, end: dict) -> None:
        """Do nothing: no process waits for this commit."""


class Changes:
    """The changes of a table, as a stream."""

    def __init__(self, warehouse: str, table: str, options: dict[str, str]) -> None:
        given = {"path": place(warehouse, table), "consumer-id": "next", "maxFilesPerTrigger": "6", **options}
        self.schema = PaimonDataSource(given).schema()
        self._reader = PaimonDataSource(given).streamReader(self.schema)
        self.initialOffset, self.latestOffset = self._reader.initialOffset, self._reader.latestOffset
        self.commit = self._reader.commit

    def tasks(self, start: dict, end: dict) -> Iterator[Batches]:
        for partition in self._reader.partitions(start, end):
            yield list(self._reader.read(partition))


class Query(threading.Thread):
    """One query, micro-batch by micro-batch."""

    def __init__(self, warehouse: str, feed: str | None, table: str) -> None:
        super().__init__(name=table, daemon=True)
        kind = {"log": None, "orders": "kind"}.get(table, "rowkind")
        changelog = {"read.changelog": "true"} if kind == "rowkind" else {}
        self._source = Numbers() if feed is None else Changes(warehouse, feed, changelog)
        self._checkpoint, self._adds_up = Path(warehouse, "checkpoints", table), table == "sums"
        self._schema = SUMS if self._adds_up else self._source.schema
        self._options = {"path": place(warehouse, table), "checkpointLocation": str(self._checkpoint)}
        self._options |= {} if kind is None else {"row-kind-column": kind}
        for log in ("offsets", "commits"):
            (self._checkpoint / log).mkdir(parents=True, exist_ok=True)
        if not (self._checkpoint / "metadata").exists():
            self._write("metadata", str(uuid.uuid4()))
        self._id = (self._checkpoint / "metadata").read_text()

    def run(self) -> None:
        """For ever; when it fails, the process does."""
        try:
            while True:
                if not self.step() or isinstance(self._source, Numbers):  # they shall not outrun those behind
                    time.sleep(0.1)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def step(self) -> bool:
        """Run the unfinished or next micro-batch; return False if there is no new data."""
        number = max((int(path.name) for path in (self._checkpoint / "offsets").glob("[0-9]*")), default=-1)
        if number < 0 or (self._checkpoint / "commits" / str(number)).exists():
            number += 1
            start = self._offset(number - 1)
            end = self._source.latestOffset(start)
            if end == start:
                return False
            self._write(f"offsets/{number}", json.dumps(end))
        start, end = self._offset(number - 1), self._offset(number)
        tasks = list(self._source.tasks(start, end)) or [[]]  # without tasks, Spark runs an empty one
        written = [self._writer().write(iter(self._fitted(rows))) for rows in tasks]
        self._writer().commit([replace(message, query=self._id) for message in written], number)
        self._write(f"commits/{number}", "{}")
        self._source.commit(end)
        return True

    def _offset(self, number: int) -> dict:
        if number < 0:
            return self._source.initialOffset()
        return json.loads((self._checkpoint / "offsets" / str(number)).read_text())

    def _fitted(self, rows: Batches) -> Batches:
        """The rows of one task as the table takes them."""
        if not self._adds_up:
            return rows
        groups = [[k % GROUPS for k in batch["k"].to_pylist()] for batch in rows]
        return [
            pa.record_batch({"g": g, "n": [1] * len(g), "total": batch["v"], "rowkind": batch["rowkind"]})
            for g, batch in zip(groups, rows, strict=True)
        ]

    def _writer(self):
        return PaimonDataSource(self._options).streamWriter(self._schema, overwrite=False)

    def _write(self, name: str, text: str) -> None:
        """A file of the checkpoint: there as a whole or not at all."""
        path = self._checkpoint / name
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(text)
        hidden.rename(path)


def main(warehouse: str, names: str, *what: str) -> None:
    """Run the chain, or drain it."""
    queries = [Query(warehouse, feed, table) for feed, table in pairwise([None, *names.split(",")])]
    if "drain" in what:
        queries[0].step()
        for query in queries[1:]:
            while query.step():
                pass
        print(DRAINED, flush=True)
        return
    for query in queries:
        query.start()
    print(UP, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
