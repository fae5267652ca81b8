"""A table object that was opened before an ALTER reads the rows written after it only if its columns can hold them."""

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import (
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateNullability,
    UpdateType,
)
from paimon_core.schema.schema import Schema
from paimon_core.table import Table

HUGE = 2**40
STRICTER = "alter-column-null-to-not-null.disabled"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("must", pa.int32(), nullable=False),
        pa.field("s", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32(), nullable=False)])),
        pa.field("list", pa.list_(pa.int32())),
    ]
)
FIRST = {"id": 1, "n": 10, "must": 100, "s": {"x": 1, "y": 2}, "list": [1]}
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "keyed": {"primary_keys": ["id"], "options": {"bucket": "1"}},
    "keyed with vectors": {"primary_keys": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
}

REFUSED: dict[str, tuple[list[SchemaChange], dict[str, Any], str]] = {
    "wider type": ([UpdateType("n", "BIGINT")], {"n": HUGE}, "column 'n', INT in schema 0, became BIGINT"),
    "text": ([UpdateType("n", "STRING")], {"n": "ten"}, "column 'n'"),
    "nullable": ([UpdateNullability("must", True)], {"must": None}, "column 'must', or a field in it, is NOT NULL"),
    "dropped": ([DropColumn("must")], {}, "column 'must' is NOT NULL .*dropped"),
    "field of another type": ([UpdateType(("s", "x"), "BIGINT")], {"s": {"x": HUGE, "y": 2}}, "column 's'"),
    "nullable field": ([UpdateNullability(("s", "y"), True)], {"s": {"x": 1, "y": None}}, "column 's'"),
    "dropped field": ([DropColumn(("s", "y"))], {"s": {"x": 1}}, "column 's'"),
    "elements": ([UpdateType(("list", "element"), "BIGINT")], {"list": [HUGE]}, "column 'list'"),
    "renamed, and of another type": ([RenameColumn("n", "m"), UpdateType("m", "BIGINT")], {"m": HUGE}, "column 'n'"),
}
READ: dict[str, tuple[list[SchemaChange], dict[str, Any], dict[str, Any]]] = {
    "added": ([AddColumn("extra", "INT")], {"extra": 5}, {}),
    "added field": ([AddColumn(("s", "z"), "INT")], {"s": {"x": 1, "y": 2, "z": 3}}, {"s": {"x": 1, "y": 2}}),
    "renamed": ([RenameColumn("n", "m")], {"m": 20}, {"n": 20}),
    "name of another column": ([RenameColumn("n", "m"), AddColumn("n", "STRING")], {"m": 20, "n": "x"}, {"n": 20}),
    "moved": ([MoveColumn("n", Position("first"))], {"n": 20}, {"n": 20}),
    "dropped": ([DropColumn("n")], {}, {"n": None}),
    "NOT NULL": ([SetOption(STRICTER, "false"), UpdateNullability("n", False)], {"n": 20}, {"n": 20}),
}
READS: dict[str, Callable[[Table], list[dict[str, Any]]]] = {
    "to_arrow": lambda table: table.to_arrow().to_pylist(),
    "batches": lambda table: [row for batch in table.to_batches() for row in batch.to_pylist()],
    "pickled": lambda table: pickle.loads(pickle.dumps(table)).to_arrow().to_pylist(),
    "scan": lambda table: [
        row
        for split in table.scan().plan().splits
        for batch in table.reader().to_batches(split)
        for row in batch.to_pylist()
    ],
}


def altered(path: Any, kind: str, changes: list[SchemaChange], values: dict[str, Any]) -> Table:
    """A table that was opened before another process altered it and wrote row 2 with the given values."""
    opened = Table.create(str(path / "t"), Schema(COLUMNS, **KINDS[kind]))
    opened.write(pa.Table.from_pylist([FIRST], schema=COLUMNS))
    opened.tags.create("first")
    other = Table.open(str(path / "t"))
    for change in changes:
        other = other.alter([change])
    columns = other.arrow_schema
    row = {name: value for name, value in ({**FIRST, "id": 2} | values).items() if name in columns.names}
    other.write(pa.Table.from_pylist([row], schema=columns))
    return opened


@pytest.mark.cases(9)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", REFUSED)
def test_rows_that_opened_columns_cannot_hold_are_refused(tmp_path, kind, change, read):
    changes, values, message = REFUSED[change]
    opened = altered(tmp_path, kind, changes, values)
    with pytest.raises(InvalidInputError, match=f"{message}(.|\n)*open it again"):
        READS[read](opened)
    assert len(READS[read](Table.open(opened.path))) == 2
    assert opened.snapshot().schema_id > opened.schema.id
    assert READS[read](opened.with_options({"scan.tag-name": "first"})) == [FIRST]


@pytest.mark.cases(7)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", READ)
def test_other_rows_are_read_under_opened_columns(tmp_path, kind, change, read):
    changes, values, shown = READ[change]
    opened = altered(tmp_path, kind, changes, values)
    rows = sorted(READS[read](opened), key=lambda row: row["id"])
    assert rows == [FIRST, {**FIRST, "id": 2} | shown]


@pytest.mark.cases(1)
def test_get_and_views_refuse_them_as_well(tmp_path):
    opened = altered(tmp_path, "keyed", [UpdateType("n", "BIGINT")], {"n": HUGE})
    for read in (
        lambda: opened.get({"id": 2}),
        lambda: opened.read_optimized().to_arrow(),
        lambda: opened.system_table("audit_log").to_arrow(),
        lambda: opened.changes(1),
        lambda: opened.changes(1, mode="diff"),
        lambda: opened.explain(filter="n > 5"),
    ):
        with pytest.raises(InvalidInputError, match="column 'n'"):
            read()


@pytest.mark.cases(1)
def test_alteration_without_commit_changes_no_read(tmp_path):
    opened = Table.create(str(tmp_path / "t"), Schema(COLUMNS))
    opened.write(pa.Table.from_pylist([FIRST], schema=COLUMNS))
    Table.open(opened.path).alter([UpdateType("n", "BIGINT")])
    assert opened.to_arrow().to_pylist() == [FIRST]
