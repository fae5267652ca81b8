"""Tables that a release of this engine wrote, kept so that later versions must read them.

``python -m tests.golden.ours`` writes the tables of the current version into ``ours/<version>/<case>``. Tables of an
earlier version are never written again. ``read.json`` has the rows of each snapshot and tag, and the changes.
"""

import datetime as dt
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_core import Schema, Table
from paimon_core.schema.change import AddColumn, RenameColumn, UpdateType

OURS = Path(__file__).parent / "ours"
VERSION = "0.1"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("p", pa.string()),
        ("n", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("instant", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("items", pa.list_(pa.struct([("k", pa.string()), ("v", pa.float64())]))),
    ]
)
KEYED = pa.schema([COLUMNS.field("id"), pa.field("p", pa.string(), nullable=False), COLUMNS.field("n")])
PLAIN = pa.schema([COLUMNS.field("id"), COLUMNS.field("p"), COLUMNS.field("n")])


def wide(*ids: int) -> pa.Table:
    """Return rows of every column; the row of id 3 is NULL."""
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 500000)
    rows = [
        {
            "id": k,
            "p": "äb"[: k % 3],
            "n": -k,
            "price": Decimal(k) / 4,
            "day": dt.date(1580 + k, 1, 1),
            "at": at,
            "instant": at.replace(tzinfo=dt.timezone.utc),
            "raw": bytes([k]),
            "items": [{"k": "x", "v": k / 3}],
        }
        if k != 3
        else {"id": k}
        for k in ids
    ]
    return pa.Table.from_pylist(rows, COLUMNS)


def narrow(*rows: tuple[int, str, int | None], schema: pa.Schema = PLAIN) -> pa.Table:
    """Return rows (id, p, n)."""
    return pa.Table.from_pylist([dict(zip(("id", "p", "n"), row, strict=True)) for row in rows], schema)


def append(path: str, file_format: str) -> None:
    """Two commits of every type, an index, a replaced partition."""
    options = {"file.format": file_format, "file-index.bitmap.columns": "n"}
    table = Table.create(path, Schema(COLUMNS, partition_keys=["p"], options=options))
    table.write(wide(1, 2, 3))
    table.write(wide(4, 5))
    table.overwrite(wide(7), {"p": "ä"})


def keyed(path: str, file_format: str, **options: str) -> None:
    """Upserts and deletes on several levels, with a changelog, a tag and an expired snapshot."""
    options = {"bucket": "2", "file.format": file_format, "changelog-producer": "lookup", **options}
    table = Table.create(path, Schema(KEYED, ["id", "p"], ["p"], options))
    table.write(narrow((1, "a", 1), (2, "a", 2), (3, "b", 3), schema=KEYED))
    table.write(narrow((1, "a", 10), (4, "b", 4), schema=KEYED))
    table.compact(full=True)
    table.tags.create("compacted")
    table.delete("id = 3")
    table.write(narrow((2, "a", None), schema=KEYED))


def dynamic(path: str) -> None:
    """Dynamic buckets with a hash index, merged by partial-update."""
    options = {"merge-engine": "partial-update", "dynamic-bucket.target-row-num": "2", "write-only": "true"}
    table = Table.create(path, Schema(PLAIN, ["id"], options=options))
    table.write(narrow((1, "a", None), (2, "b", 2), (3, "c", 3)))
    table.write(pa.table({"id": [1, 4], "n": pa.array([10, 40], pa.int32())}))


def vectors(path: str) -> None:
    """Deletion vectors of an append table."""
    table = Table.create(path, Schema(PLAIN, options={"deletion-vectors.enabled": "true"}))
    table.write(narrow(*((k, "a", k) for k in range(9))))
    table.delete("id = 4")
    table.delete("n > 6")


def evolved(path: str) -> None:
    """Row ids, columns in several files, blobs, and files of several schemas."""
    columns = PLAIN.append(pa.field("b", pa.binary()))
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "blob-field": "b"}
    table = Table.create(path, Schema(columns, options=options))
    table.write(pa.Table.from_pylist([{"id": 1, "p": "a", "n": 1, "b": b"x"}, {"id": 2, "p": "b"}], columns))
    table.update_columns(pa.table({"_ROW_ID": pa.array([1], pa.int64()), "n": pa.array([22], pa.int32())}))
    table = table.alter([RenameColumn("p", "q"), UpdateType("n", "BIGINT"), AddColumn("later", "DATE")])
    table.write(pa.table({"id": [3], "q": ["c"], "n": [2**40], "later": [dt.date(2026, 1, 1)], "b": [b"y"]}))


CASES: dict[str, Callable[[str], None]] = {
    **{f"append_{kind}": lambda path, kind=kind: append(path, kind) for kind in ("parquet", "orc", "avro")},
    "keyed_orc": lambda path: keyed(path, "orc"),
    "keyed_vectors": lambda path: keyed(path, "parquet", **{"deletion-vectors.enabled": "true"}),
    "dynamic": dynamic,
    "vectors": vectors,
    "evolved": evolved,
}


def everything(path: str) -> dict[str, Any]:
    """Return the rows of each snapshot and tag of a table, and its changes, as values of JSON."""
    table = Table.open(path)
    found = {f"snapshot {one.id}": _lines(table.to_arrow(snapshot_id=one.id)) for one in table.snapshots()}
    found |= {f"tag {tag.name}": _lines(table.to_arrow(tag=tag.name)) for tag in table.tags.list()}
    if table.schema.primary_keys:
        found["changes"] = _lines(table.changes(0))
    return found


def _lines(rows: pa.Table) -> list[str]:
    return sorted(json.dumps(row, default=str, ensure_ascii=False) for row in rows.to_pylist())


def main() -> None:
    """Write the tables of this version."""
    shutil.rmtree(OURS / VERSION, ignore_errors=True)
    for name, write in CASES.items():
        home = OURS / VERSION / name
        write(str(home / "table"))
        read = everything(str(home / "table"))
        text = json.dumps(read, ensure_ascii=False, indent=1)
        (home / "read.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
