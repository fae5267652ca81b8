"""Deletes, updates and merges whose conditions name row ids change the rows that a read with the filter returns."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, UnsupportedError
from tests.core.read.test_row_id_filters import FILTERS, KINDS

COLUMNS = pa.schema([("v", pa.int32()), ("p", pa.int32()), ("text", pa.string())])


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    """A table whose rows are in files of several kinds: written, rewritten, with several files for a row."""
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, partition_keys=["p"], options=KINDS[request.param]))
    for start in (0, 40):
        numbers = list(range(start, start + 40))
        table.write(pa.table([numbers, [n % 2 for n in numbers], [f"row {n}" for n in numbers]], schema=COLUMNS))
    if table.store.traits.data_evolution:
        table.update_columns(pa.table({"_ROW_ID": [3, 25, 61], "text": ["x", "y", "z"]}))
    else:
        table.delete("v = 8 OR v = 33")
        table.compact(full=True)
    table.write(pa.table([[7], [1], ["again"]], schema=COLUMNS))
    return table


def by_id(table, filter=None):
    rows = table.to_arrow(["_ROW_ID", *COLUMNS.names], filter).to_pylist()
    found = {row.pop("_ROW_ID"): row for row in rows}
    assert len(found) == len(rows)
    return found


def deletes(table):
    traits = table.store.traits
    return traits.deletion_vectors or not traits.data_evolution


def test_rows_are_deleted_and_others_keep_their_ids(table):
    if not deletes(table):
        with pytest.raises(UnsupportedError, match=r"'deletion-vectors\.enabled' = 'true'"):
            table.delete("_ROW_ID = 25")
        return
    every = by_id(table)
    for text in FILTERS:
        base, found = table.snapshot().id, by_id(table, text)
        assert table.delete_counted(text).rows == len(found)
        assert by_id(table) == {i: row for i, row in every.items() if i not in found}
        table.rollback_to(base)
        table = Table.open(table.path)


def test_rows_are_updated_and_keep_their_ids(table):
    every, found = by_id(table), by_id(table, "_ROW_ID > 20 AND (v < 44 OR _row_id IN (61, 62)) AND p = 1")
    done = table.update({"text": "new"}, where="_ROW_ID > 20 AND (v < 44 OR _row_id IN (61, 62)) AND p = 1")
    assert done.num_updated_rows == len(found) > 10
    assert by_id(table) == every | {i: {**row, "text": "new"} for i, row in found.items()}
    assert table.update({"text": "none"}, where="_ROW_ID = 1000000").snapshot is None


def test_rows_are_merged_by_their_ids(table):
    every = by_id(table)
    first, second, third = sorted(every)[20], sorted(every)[50], sorted(every)[60]
    source = pa.table({"row": [first, None, 1 << 40, second, third], "text": ["one", "null", "new", "two", "three"]})
    merge = table.merge(source, on={"_row_id": "row"})
    merge = merge.when_matched_update(f"target._ROW_ID <> {third}", {"text": pc.field("source", "text")})
    merge = merge.when_not_matched_insert(
        "source.row IS NOT NULL", {"v": 100, "p": 0, "text": pc.field("source", "text")}
    )
    done = merge.execute()
    assert (done.num_updated_rows, done.num_inserted_rows) == (2, 1)
    changed = by_id(table)
    assert changed.pop(max(changed)) == {"v": 100, "p": 0, "text": "new"}
    assert changed == every | {first: {**every[first], "text": "one"}, second: {**every[second], "text": "two"}}
    known = pa.table({"_ROW_ID": [first, 1 << 41], "v": [1, 2], "p": [0, 1], "text": ["a", "b"]})
    assert table.merge(known, on="_ROW_ID").when_not_matched_insert_all().execute().num_inserted_rows == 1
    if deletes(table):
        last = by_id(table)
        merge = table.merge(known, on="_ROW_ID").when_matched_delete()
        done = merge.when_not_matched_by_source_delete("target._ROW_ID >= 60 AND target.p = 1").execute()
        gone = {i for i, row in last.items() if i == first or (i >= 60 and row["p"] == 1)}
        assert done.num_deleted_rows == len(gone) > 5
        assert by_id(table) == {i: row for i, row in last.items() if i not in gone}


def test_upsert_by_row_id_is_refused(table):
    with pytest.raises(UnsupportedError, match=r"upsert.*_ROW_ID.*merge"):
        table.upsert(pa.table({"_ROW_ID": [1], "text": ["a"]}), on="_ROW_ID")
    with pytest.raises(InvalidInputError, match="_ROW_ID"):
        table.update({"_ROW_ID": 5})


def test_table_without_row_ids_has_no_such_conditions(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS))
    for change in (
        lambda: table.delete("_ROW_ID = 1"),
        lambda: table.update({"v": 1}, "_ROW_ID = 1"),
        lambda: table.merge(pa.table({"_ROW_ID": [1]}), on="_ROW_ID"),
    ):
        with pytest.raises(InvalidInputError, match="_ROW_ID"):
            change()
