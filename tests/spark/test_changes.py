"""A plain df.write to tables whose rows or changes appear only after compaction: the write compacts."""

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.compaction import levels_of
from tests.support.merge_model import ADDS

pytestmark = pytest.mark.spark
ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def lead_to(table: Table) -> list[dict]:
    """The rows that all changes lead to."""
    held: dict[int, dict] = {}
    for row in table.changes(0).to_pylist():
        if row.pop("rowkind") in ADDS:
            held[row["id"]] = row
        else:
            assert held.pop(row["id"]) == row
    return sorted(held.values(), key=lambda row: row["id"])


@pytest.mark.parametrize("marked", ["true", "false"])
@pytest.mark.more
def test_rows_and_their_changes_are_visible_after_write(spark, warehouse, marked):
    path = f"{warehouse}/db.db/changes_{marked}"
    options = {"bucket": "2", "changelog-producer": "lookup", "deletion-vectors.enabled": marked}
    table = Table.create(path, Schema(ROWS, primary_keys=["id"], options=options))
    for first, text in ((0, "old"), (300, "new")):
        frame = spark.range(first, first + 600, 1, 3).selectExpr("id", f"'{text}' as v")
        frame.write.format("paimon").mode("append").save(path)
    shown = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert shown == [{"id": k, "v": "new" if k >= 300 else "old"} for k in range(900)]
    assert lead_to(table) == shown
    assert {f.level for levels in levels_of(table).values() for f in levels.all_files}.isdisjoint({0})
    changed = table.changes(2)
    assert changed.num_rows == 900, "300 new rows, and 300 rows before and after their update"
    between = {"incremental-between": f"2,{table.snapshot().id}", "read.changelog": "true"}
    read = spark.read.format("paimon").options(**between).load(path)
    assert read.columns == ["rowkind", "id", "v"]
    assert sorted(map(tuple, read.collect())) == sorted(tuple(row.values()) for row in changed.to_pylist())

    spark.range(0, 50, 1, 3).selectExpr("id", "'only' as v").write.format("paimon").mode("overwrite").save(path)
    assert table.changes(0).num_rows == 600 + 900, "an overwrite has no changelog"
    assert table.to_arrow().num_rows == 50
