"""Copies of tables that streaming queries write."""

import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from paimon_core import Table
from paimon_core.snapshot.snapshot import CommitKind, Operation

SHARE = 0.15
"""The share of tables with copies."""

_UPDATES = (Operation.UPDATE, Operation.MERGE)


@dataclass
class Copy:
    """A copy of a table.

    Attributes:
        path: its directory.
        checkpoint: the checkpoint of its queries.
        columns: the columns that it has.
        producer: the changelog producer of the table.
        snapshot: the newest snapshot of the table when the last query ended.
        rows: how often the table had each row then, as text.
    """

    path: str
    checkpoint: str
    columns: list[tuple[str, str]]
    producer: str
    snapshot: int
    rows: Counter[str]


class Copies:
    """The copies of the tables of a program.

    Args:
        spark: the session.
        seed: draws which tables have copies.
    """

    def __init__(self, spark: SparkSession, seed: str) -> None:
        self._spark, self._seed = spark, seed
        self._copies: dict[str, Copy] = {}
        self._begun = 0
        self._checkpoints = tempfile.TemporaryDirectory(prefix="copies-")

    def close(self) -> None:
        """Delete the checkpoints."""
        self._checkpoints.cleanup()

    def follow(self, table: Table, columns: list[tuple[str, str]], rows: Counter[str]) -> Counter[str] | None:
        """Let a streaming query copy what has changed, and return the rows of the copy; `None`: there is no copy.

        Streams do not see statements that replace files. After them, another copy begins.

        Args:
            table: the table.
            columns: the names and types of its columns.
            rows: how often it has each row, as text.
        """
        snapshot = table.snapshot()
        copy = self._copies.pop(table.path, None)
        if copy is not None and not _sees_all(table, copy, columns, rows):
            copy = None
        drawn = random.Random(f"copies {self._seed} {Path(table.path).name}").random()
        if snapshot is None or drawn >= SHARE:
            return None
        if copy is None:
            self._begun += 1
            name = f"{Path(table.path).name}_copy{self._begun}"
            checkpoint = f"{self._checkpoints.name}/{name}"
            producer = table.store.traits.changelog_producer
            copy = Copy(f"{Path(table.path).parent}/{name}", checkpoint, columns, producer, snapshot.id, rows)
        self._run(table, copy)
        copy.snapshot, copy.rows = snapshot.id, rows
        self._copies[table.path] = copy
        listed = ", ".join(f"`{name}`" for name, _ in columns)
        frame = self._spark.read.format("paimon").load(copy.path).selectExpr(f"CAST(struct({listed}) AS STRING)")
        return Counter(row[0] for row in frame.collect())

    def _run(self, table: Table, copy: Copy) -> None:
        keys = table.schema.primary_keys
        reader = self._spark.readStream.format("paimon")
        options = {"checkpointLocation": copy.checkpoint, "partition": ",".join(table.schema.partition_keys)}
        if keys:
            reader = reader.option("read.changelog", "true")
            options |= {
                "primary-key": ",".join(keys),
                "bucket": "-1" if table.schema.is_cross_partition else "1",
                "row-kind-column": "rowkind",
            }
        writer = reader.load(table.path).writeStream.format("paimon").trigger(availableNow=True)
        query = writer.options(**{name: value for name, value in options.items() if value}).start(copy.path)
        query.awaitTermination()


def _sees_all(table: Table, copy: Copy, columns: list[tuple[str, str]], rows: Counter[str]) -> bool:
    """Return True if a stream sees all changes since the last query of a copy."""
    snapshots = table.snapshots()
    later = [one for one in snapshots if one.id > copy.snapshot]
    if (copy.columns, copy.producer) != (columns, table.store.traits.changelog_producer):
        return False
    if all(one.id != copy.snapshot for one in snapshots) or CommitKind.OVERWRITE in {one.commit_kind for one in later}:
        return False
    if table.store.traits.data_evolution and any(one.operation in _UPDATES for one in later):
        return False  # refused, also if no value changed
    return bool(table.schema.primary_keys) or copy.rows <= rows
