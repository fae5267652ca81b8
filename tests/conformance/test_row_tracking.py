"""Rows with ids: both engines give the same, keep them when they compact, and count on from each other."""

import pyarrow as pa
import pytest

from paimon_core.operations.row_changes.remove_rows import RowPositions, remove_rows
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.write.table_write import TableWrite
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
POSITION = ["__paimon_file_path", "__paimon_row_index", "_ROW_ID"]
HIDDEN = ["_ROW_ID", "_SEQUENCE_NUMBER"]


def agree_on_ids(table):
    table.agree()
    theirs = table.judge.call("read", table=f"{table.name}$row_tracking")["rows"]
    ours = table.ours().to_arrow(["k", "p", "s", *HIDDEN]).to_pylist()
    same([list(row.values()) for row in ours], [row[1:] for row in theirs], f"{table.name}: row ids")
    return {row["k"]: tuple(row[name] for name in HIDDEN) for row in ours}


@pytest.mark.parametrize("file_format", ["parquet", "orc"])  # Java 1.4.2 fails on ids where a file is Avro
@pytest.mark.parametrize("partitioned", [False, True])
def test_ids_are_the_same(judge, name, file_format, partitioned):
    table = SharedTable(judge, name)
    table.java(
        "create_table",
        fields=[["k", "INT"], ["p", "STRING"], ["s", "STRING"]],
        partition_keys=["p"] if partitioned else [],
        options={"row-tracking.enabled": "true", "file.format": file_format},
    )
    rows = [["+I", {"k": i, "p": "ab"[i % 2], "s": f"s{i}" if i % 3 else None}] for i in range(40)]
    table.java("write", rows=rows[:5])
    table.we_write(rows[5:11])
    table.java("write", rows=rows[11:13])
    before = agree_on_ids(table)
    table.ours().compact(full=True)
    assert agree_on_ids(table) == before
    table.java("write", rows=rows[13:20])
    table.we_write(rows[20:25])
    before = agree_on_ids(table)
    table.java("compact", kind="full", options={"compaction.min.file-num": "2"})
    assert agree_on_ids(table) == before
    table.ours().compact(full=True)
    table.ours().compact(order_by=["s"])
    assert agree_on_ids(table) == before
    table.java("write", rows=rows[25:30], overwrite={"p": "a"} if partitioned else {})
    table.ours().overwrite(table.arrow([row for _, row in rows[30:33]]), "dynamic" if partitioned else None)
    table.java("write", rows=rows[33:])
    agree_on_ids(table)


@pytest.mark.parametrize("marked", [False, True])
def test_changed_rows_keep_their_ids(judge, name, marked):
    """Rows that are rewritten with their ids, together with new rows, are the same rows for Java."""
    options = {"row-tracking.enabled": "true", **({"deletion-vectors.enabled": "true"} if marked else {})}
    table = SharedTable(judge, name)
    fields = [["k", "INT"], ["p", "STRING"], ["s", "STRING"]]
    table.java("create_table", fields=fields, partition_keys=["p"], options=options)
    rows = [["+I", {"k": i, "p": "ab"[i % 2], "s": f"s{i}"}] for i in range(30)]
    table.java("write", rows=rows[:10])
    table.we_write(rows[10:20])
    before = agree_on_ids(table)
    ours = table.ours()
    old = ours.to_arrow(["k", "p", "s", *POSITION], filter="k > 3 and k < 15")
    positions = RowPositions()
    for batch in old.to_batches():
        positions.add(batch.column(POSITION[0]), batch.column(POSITION[1]))
    new = pa.Table.from_pylist(
        [{**row, POSITION[2]: None} for _, row in rows[20:]], old.drop_columns(POSITION[:2]).schema
    )
    changed = old.drop_columns(POSITION[:2]).set_column(2, "s", pa.array(["changed"] * old.num_rows))
    snapshot, committer = ours.snapshot(), ours.committer()
    with TableWrite(ours.store, keeps_row_ids=True) as writer:
        writer.write(pa.concat_tables([changed, new]))
        messages = [*writer.prepare_commit(), *remove_rows(ours.store, snapshot, positions)]
    result = committer.commit(messages, started_from=StartedFrom.of(snapshot, Guard.STATEMENT))
    after = agree_on_ids(table)
    for k in range(20):
        assert after[k] == ((before[k][0], result.id) if 3 < k < 15 else before[k])
    fresh = {after[k][0] for k in range(20, 30)}
    assert len(fresh) == 10
    assert min(fresh) > max(row[0] for row in before.values())
    ours.compact(full=True)
    assert agree_on_ids(table) == after
    table.java("compact", kind="full", options={"compaction.min.file-num": "2"})
    table.java("write", rows=[["+I", {"k": 99, "p": "a", "s": None}]])
    agree_on_ids(table)
