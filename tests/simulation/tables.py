"""The tables of a history, and what its operations share."""

from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.read.table_read import TableRead
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.table import Table
from tests.simulation.effects import Row, key_of, normal
from tests.simulation.oracle import SHOWS_ALL, Line, Oracle, Record
from tests.simulation.plan import Op
from tests.simulation.scheduler import Scheduler
from tests.simulation.store import File

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
_SMALL = {"snapshot.num-retained.min": "1", "manifest.merge-min-count": "3", "file.format": "avro"}
TABLES: Final[dict[str, tuple[list[str], list[str], dict[str, str]]]] = {
    "append": ([], [], {}),
    "vectors": ([], [], {"deletion-vectors.enabled": "true"}),
    "keys": ([], ["id"], {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}),
    "keys, vectors": ([], ["id"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "keys, lookup": ([], ["id"], {"bucket": "1", "changelog-producer": "lookup"}),
    "keys, dynamic": ([], ["id"], {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
    "partitions": (["p"], [], {}),
    "partitions, vectors": (["p"], [], {"deletion-vectors.enabled": "true"}),
    "partitions, keys": (["p"], ["id", "p"], {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}),
    "evolution": ([], [], {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    "evolution, vectors": (
        [],
        [],
        {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
    ),
}
"""Kinds of tables: partition columns, primary key and options. The partition of a row follows from its id."""
_KEYS = 6
_PARTITIONS = 2


@dataclass
class World:
    """The state that the operations of a history share."""

    scheduler: Scheduler
    oracle: Oracle
    catalog: FileSystemCatalog
    table: str
    seen_schemas: dict[str, File] = field(default_factory=dict)
    """By operation and root, the schema file that was read last."""
    sinks: dict[int, Record] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    positions: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The stored position of the stream of a client."""
    running: dict[int, Record] = field(default_factory=dict)
    """The operation that each client runs."""

    @property
    def keyed(self) -> bool:
        """True if the table has a primary key."""
        return bool(TABLES[self.table][1])

    def schema(self) -> Schema:
        """Return the schema of a new table."""
        partitions, keys, options = TABLES[self.table]
        columns = COLUMNS.append(pa.field("p", pa.int32(), nullable=not keys)) if partitions else COLUMNS
        return Schema(columns, keys, partitions, {**_SMALL, **options})

    def root(self, name: str) -> str:
        """Return the directory of a table."""
        return self.catalog.location(f"db.{name}")

    def line(self, name: str) -> Line:
        """Return the line of a table."""
        return self.oracle.line(self.root(name))

    def open(self, op: Op, record: Record, branch: str | None = None) -> Table:
        """Open the table of an operation, and note which table it was."""
        name = f"db.{op.table}" + (f"$branch_{branch}" if branch else "")
        table = self.catalog.table(name)
        self.note(table, record)
        return table

    def all_rows(self, table: Table) -> Table:
        """Return the table with the rows of level 0, as the oracle reads it."""
        return table.with_options(SHOWS_ALL) if self.keyed else table

    def rows_of(self, table: Table, snapshot: Snapshot | None) -> list[dict[str, Any]]:
        """Return the rows of a snapshot in the columns in which a table was opened."""
        if snapshot is None:
            return []
        store = self.all_rows(table).store
        reader = TableRead(store, table.schema.fields)
        splits = TableScan(store, snapshot).plan().splits
        return [row for split in splits for batch in reader.to_batches(split) for row in batch.to_pylist()]

    def note(self, table: Table, record: Record) -> None:
        """Note which of the tables that had this place an operation has opened."""
        root = table.path
        file = self.seen_schemas.get(f"{record.op.id} {table.store.branch_root}")
        if file is not None and table.store.branch == "main":
            record.tables[root] = self.oracle.tables_of_schemas.get(file.number, 0)
        elif root not in record.tables:
            record.tables[root] = self.oracle.line(root).table

    def rows(self, op: Op, schema: TableSchema, *, number: int | None = None) -> list[dict[str, Any]]:
        """Return new rows, whose values name the operation."""
        number = op.id if number is None else number
        rows = []
        for i in range(1 + round(op.pick * 2)):
            key = int(op.other * 97 + i) % _KEYS if self.keyed else number * 10 + i
            names = [f.name for f in schema.fields]
            row: dict[str, Any] = {name: number for name in names if name.startswith("x")}
            row |= {"p": key % _PARTITIONS} if "p" in names else {}
            rows.append({**row, "id": key, "v": f"{number}.{i}"})
        return rows

    def choose(self, line: Line, pick: float) -> int | None:
        """Return the id of a snapshot of a line; `None`: the line has no snapshot."""
        ids = sorted(line.snapshots)
        return ids[min(int(pick * len(ids)), len(ids) - 1)] if ids else None

    def ids(self, line: Line, op: Op) -> list[int]:
        """Return about half of the ids of the newest rows, at least one."""
        schema = self.oracle.newest_schema(line)
        if schema is None:
            return [0]
        key = key_of(schema)
        found = sorted({dict(row).get(key) for row in self.oracle.rows(line.sound, schema)} - {None})
        return [one for i, one in enumerate(found) if (i + int(op.pick * 2)) % 2 == 0] or found[:1] or [0]


def arrow(rows: list[dict[str, Any]], table: Table) -> pa.Table:
    """Return rows as a table of Arrow."""
    fields = [pa.field(f.name, t.type) for f, t in zip(table.schema.fields, table.arrow_schema, strict=True)]
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in fields]
    return pa.table(columns, names=[f.name for f in fields])


def by_id(rows: list[dict[str, Any]], schema: TableSchema) -> tuple[Row, ...]:
    """Return rows by the field ids of a schema."""
    ids = {f.name: f.id for f in schema.fields}
    return tuple(normal({ids[k]: v for k, v in row.items()} for row in rows))
