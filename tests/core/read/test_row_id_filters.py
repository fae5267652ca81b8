"""Filters on ``_ROW_ID`` and ``_SEQUENCE_NUMBER`` select the same rows as the filter on all rows and their ids."""

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError

TRACKED = {"row-tracking.enabled": "true"}
KINDS = {
    "rewritten": TRACKED,
    "with vectors": {**TRACKED, "deletion-vectors.enabled": "true"},
    "evolving": {**TRACKED, "data-evolution.enabled": "true"},
    "evolving with vectors": {**TRACKED, "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"},
}
COLUMNS = ["_ROW_ID", "_SEQUENCE_NUMBER", "v", "p", "text"]
FILTERS = (
    "_ROW_ID = 25",
    "_row_id IN (3, 25, 61, 1000)",
    "_ROW_ID >= 20 AND _ROW_ID < 44",
    "_ROW_ID < 20 AND v > 10",
    "_ROW_ID = 25 OR v = 7",
    "NOT (_ROW_ID > 5)",
    "_ROW_ID IS NULL",
    "_ROW_ID > 30 AND (v < 40 OR _ROW_ID = 61) AND p = 1",
    "_SEQUENCE_NUMBER = 2",
    "_SEQUENCE_NUMBER < 3 AND _ROW_ID > 10",
)


@pytest.fixture(params=KINDS, scope="module")
def table(request, tmp_path_factory):
    """A table of several commits, some of whose rows have changed and moved to other files."""
    columns = pa.schema([("v", pa.int32()), ("p", pa.int32()), ("text", pa.string())])
    table = Table.create(
        str(tmp_path_factory.mktemp("rows") / "t"), Schema(columns, partition_keys=["p"], options=KINDS[request.param])
    )
    for start in range(0, 80, 20):
        numbers = range(start, start + 20)
        rows = {"v": numbers, "p": [n % 2 for n in numbers], "text": [f"row {n}" for n in numbers]}
        table.write(pa.table({name: list(values) for name, values in rows.items()}, columns))
    if table.store.traits.data_evolution:
        table.update_columns(pa.table({"_ROW_ID": [3, 25, 61], "text": ["x", "y", "z"]}))
        if table.store.traits.deletion_vectors:
            table.delete("v IN (4, 26, 62)")
        return table
    table.delete("v IN (4, 26, 62)")
    table.compact(full=True)
    table.write(pa.table({"v": [7], "p": [1], "text": ["again"]}, columns))
    return table


def rows(table, columns, filter=None, limit=None):
    return table.to_arrow(columns, filter, limit=limit).to_pylist()


@pytest.fixture(scope="module")
def plain(table):
    """The rows of the table with their ids as ordinary columns."""
    with_ids = table.to_arrow(COLUMNS)
    names = [name.lstrip("_") for name in COLUMNS]
    plain = Table.create(f"{table.path}_plain", Schema(pa.schema(list(zip(names, with_ids.schema.types, strict=True)))))
    plain.write(with_ids.rename_columns(names))
    return plain


@pytest.mark.parametrize("text", FILTERS)
def test_rows_are_those_of_the_filter_on_all_rows(table, plain, text):
    ordinary = text.replace("_ROW_ID", "ROW_ID").replace("_row_id", "row_id").replace("_SEQUENCE", "SEQUENCE")
    expected = by_id(plain.to_arrow(filter=ordinary).rename_columns(COLUMNS).to_pylist())
    found = rows(table, COLUMNS, text)
    assert by_id(found) == expected
    assert [row["v"] for row in rows(table, ["v"], text)] == [row["v"] for row in found]
    limited = rows(table, COLUMNS, text, limit=2)
    assert len(limited) == min(2, len(found))
    assert all(row in found for row in limited)
    scan, reader = table.scan(["v"], text), table.reader(["v"], text)
    assert sum(batch.num_rows for split in scan.plan().splits for batch in reader.to_batches(split)) == len(found)


def by_id(found):
    return sorted(found, key=lambda row: row["_ROW_ID"])


def test_files_of_other_row_ids_are_not_read(table):
    plan = table.scan(filter="_ROW_ID = 25").plan()
    if table.store.traits.data_evolution:
        files = [file for split in plan.splits for file in split.files]
        assert files
        assert all(file.first_row_id <= 25 < file.first_row_id + file.row_count for file in files)
        assert "row ids" in str(table.explain(filter="_ROW_ID = 25"))
    else:  # a file may store the ids of rows that came from other files
        assert sum(len(split.files) for split in plan.splits) == plan.files_in_partitions


def test_table_without_row_ids_has_no_such_column(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("v", pa.int32())])))
    with pytest.raises(InvalidInputError, match="_ROW_ID"):
        table.to_arrow(filter="_ROW_ID = 1")
