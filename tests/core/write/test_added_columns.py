"""Columns that a merge adds to its rows have names that no column of the table has."""

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

ROWS = [(1, "a"), (2, "b"), (3, "c")]
NEWER = [(2, "B"), (4, "d")]


@pytest.mark.parametrize("name", ["_GROUP", "_group", "_LOCATION", "_WHERE", "_SIDE", "_ROW_POSITION"])
@pytest.mark.parametrize("options", [{}, {"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"}])
def test_column_of_table_may_have_any_name(tmp_path, name, options):
    fields = tuple(DataField(i, n, parse_type(t)) for i, (n, t) in enumerate((("id", "INT"), (name, "STRING"))))
    table = Table.create(str(tmp_path), Schema(fields, ("id",), (), {"bucket": "1", **options}))
    for rows in (ROWS, NEWER):
        table.write(pa.table({"id": [k for k, _ in rows], name: [v for _, v in rows]}))
    table.compact(full=True)
    table.write(pa.table({"id": [3], name: ["C"]}))
    assert {row["id"]: row[name] for row in table.to_arrow().to_pylist()} == {1: "a", 2: "B", 3: "C", 4: "d"}
    actual = table.changes(1, table.snapshot().id, mode="diff").to_pylist()
    assert sorted((row[name], row["rowkind"]) for row in actual) == [
        *(("B", "+U"), ("C", "+U"), ("b", "-U"), ("c", "-U"), ("d", "+I"))
    ]
