"""Writers that were opened before the schema changed: reads show their rows at once, and newer columns keep values."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core.errors import TableChangedError
from paimon_core.operations.compaction.compact_postponed import compact_postponed
from paimon_core.operations.compaction.rescale import rewritten
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, SetOption, UpdateType
from paimon_core.table import Table
from tests.support.edited_metadata import edit_json
from tests.support.tables import keyed_table, orders, rows_of

HIDING = {
    "vectors": {"deletion-vectors.enabled": "true"},
    "first-row": {"merge-engine": "first-row"},
}
LOOKUPS = {
    "lookup": {"changelog-producer": "lookup"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "forced": {"force-lookup": "true"},
}


def with_x(rows, *values):
    return rows.append_column("x", pa.array(values, pa.int32()))


def shown(table):
    return rows_of(Table.open(table.path).to_arrow())


@pytest.fixture
def make(tmp_path):
    """Returns a function that makes a table with a row in the highest level and returns it before and after changes."""

    def made(*changes, **options):
        table = keyed_table(tmp_path / "t", bucket="1", **options)
        table.write(orders((1, "a", 1)))
        table.compact(full=True)
        return Table.open(table.path), table.alter(changes)

    return made


@pytest.mark.parametrize("options", HIDING.values(), ids=HIDING)
def test_rows_of_older_schema_are_visible_at_once(make, options):
    old, new = make(AddColumn("x", "INT"), **options)
    new.write(with_x(orders((2, "b", 2)), 20))
    for key in (3, 4, 5):
        old.write(orders((key, "old", key)))
        assert [row["id"] for row in shown(old)] == list(range(1, key + 1))
    assert [row["x"] for row in shown(old)] == [None, 20, None, None, None]
    new.write(with_x(orders((6, "f", 6)), 60))
    assert {row["id"]: row["x"] for row in shown(old)} == {1: None, 2: 20, 3: None, 4: None, 5: None, 6: 60}


@pytest.mark.parametrize("options", HIDING.values(), ids=HIDING)
def test_writer_open_across_schema_change_keeps_newer_columns(make, options):
    old, new = make(AddColumn("x", "INT"), **options)
    with old.writer() as writer:
        for identifier, key in enumerate((3, 5, 7)):
            new.write(with_x(orders((key - 1, "new", 1)), key))
            writer.write(orders((key, "old", 1)))
            old.committer("stream").commit(writer.prepare_commit(identifier), identifier)
            assert [row["id"] for row in shown(old)] == list(range(1, key + 1))
    assert [row["x"] for row in shown(old)] == [None, 3, None, 5, None, 7, None]


def test_schema_may_change_while_job_writes_as_page_of_features_says(make):
    old, new = make(AddColumn("x", "INT"))
    with old.writer() as writer:
        writer.write(orders((2, "b", 2)))
        new.alter([AddColumn("y", "INT")])
        old.committer("job").commit(writer.prepare_commit(1), 1)
    assert [(row["id"], row["x"], row["y"]) for row in shown(old)] == [(1, None, None), (2, None, None)]
    page = Path(__file__).parents[3] / "docs" / "reference" / "features.md"
    assert "The schema may change while a job writes: the commit succeeds if the rows fit" in page.read_text()


@pytest.mark.parametrize("options", LOOKUPS.values(), ids=LOOKUPS)
@pytest.mark.parametrize(("engine", "expected"), [("partial-update", 20), ("aggregation", 20), ("deduplicate", None)])
def test_lookups_keep_values_of_newer_columns(make, engine, expected, options):
    """A merge with a row of a newer schema has all its columns: only an upsert of the whole row replaces them."""
    functions = {"fields.n.aggregate-function": "sum"} if engine == "aggregation" else {}
    old, new = make(AddColumn("x", "INT"), **{"merge-engine": engine}, **functions, **options)
    new.write(with_x(orders((1, "b", 2)), 20))
    new.compact(full=True)
    old.write(orders((1, "c", 3)))
    (row,) = shown(old)
    assert row == {"id": 1, "v": "c", "n": 6 if engine == "aggregation" else 3, "x": expected}
    new.compact(full=True)
    assert shown(old) == [row]


def test_options_of_new_column_apply(make):
    """The newest schema defines the aggregate function of a column that the writer does not know."""
    options = {"merge-engine": "aggregation", "deletion-vectors.enabled": "true", "fields.n.aggregate-function": "sum"}
    old, new = make(AddColumn("x", "INT"), SetOption("fields.x.aggregate-function", "sum"), **options)
    for _ in range(2):
        new.write(with_x(orders((1, "b", 1)), 20))
    old.with_options({"target-file-size": "64 mb"}).write(orders((1, "c", 1)))
    assert shown(old) == [{"id": 1, "v": "c", "n": 4, "x": 40}]


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        (RenameColumn("n", "m"), "m", 3),
        (DropColumn("n"), None, None),
        (UpdateType("n", "BIGINT"), "n", 3),
        (UpdateType("n", "STRING"), "n", "3"),
    ],
    ids=["rename", "drop", "widen", "text"],
)
def test_other_schema_changes_keep_rows_readable(make, change, name, value):
    old, new = make(change, **HIDING["vectors"])
    rows = pa.table(
        {
            "id": [2],
            "v": ["b"],
            **(
                {}
                if name is None
                else {name: pa.array([2], new.arrow_schema.field(name).type) if value == 3 else ["2"]}
            ),
        }
    )
    new.write(rows)
    old.write(orders((3, "c", 3)))
    assert [row["id"] for row in shown(old)] == [1, 2, 3]
    assert shown(old)[2] == {"id": 3, "v": "c", **({} if name is None else {name: value})}


def test_compaction_planned_before_change_loses_no_column(make):
    old, new = make(AddColumn("x", "INT"), **{"merge-engine": "partial-update", **LOOKUPS["vectors"]})
    new.write(with_x(orders((1, "b", 2)), 20))
    new.compact(full=True)
    old.with_options({"write-only": "true"}).write(orders((1, "c", 3)))
    with pytest.raises(TableChangedError, match="was written under schema 1: compacting it under schema 0 would lose"):
        old.compact()
    assert Table.open(old.path).compact() is not None
    assert shown(old) == [{"id": 1, "v": "c", "n": 3, "x": 20}]


def test_writer_does_not_compact_table_that_was_replaced(make):
    """A column that takes the place of another one: the files of both have nothing in common."""
    old, _ = make(AddColumn("x", "INT"), **HIDING["vectors"])
    path = old.store.schemas.path(1)
    fields = [{**field, "id": field["id"] + 10} for field in json.loads(Path(path).read_text())["fields"]]
    edit_json(path, fields=fields, highestFieldId=20)
    new = Table.open(old.path)
    new.overwrite(with_x(orders((2, "b", 2)), 20))
    with pytest.raises(TableChangedError):
        old.write(orders((3, "c", 3)))
    assert shown(new) == [{"id": 2, "v": "b", "n": 2, "x": 20}]


def test_rescale_does_not_lose_newer_columns(make):
    old, new = make(AddColumn("x", "INT"))
    new.write(with_x(orders((2, "b", 2)), 20))
    with pytest.raises(TableChangedError, match="open the table again"):
        rewritten(old.store, None, TableScan(old.store, old.store.snapshots.latest()).plan().splits)
    assert [row["x"] for row in shown(old)] == [None, 20]


def test_postponed_rows_keep_newer_columns(tmp_path):
    old = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    new = old.alter([AddColumn("x", "INT")])
    new.write(with_x(orders((2, "b", 2)), 20))
    with pytest.raises(TableChangedError, match="open the table again"):
        compact_postponed(old.store)
    new.compact()
    assert [row["x"] for row in shown(old)] == [20]
