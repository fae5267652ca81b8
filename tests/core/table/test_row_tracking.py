import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.tables import append_table, keyed_table, orders

TRACKED = {"row-tracking.enabled": "true"}
COLUMNS = ["id", "_ROW_ID", "_SEQUENCE_NUMBER"]


def tracked(table, **when):
    return {row["id"]: (row["_ROW_ID"], row["_SEQUENCE_NUMBER"]) for row in table.to_arrow(COLUMNS, **when).to_pylist()}


@pytest.fixture
def table(tmp_path):
    made = append_table(tmp_path / "t", **TRACKED)
    made.write(orders((1, "a", 1), (2, "b", 2)))
    made.write(orders((3, "c", 3)))
    return made


def test_ids_count_on_from_snapshot_to_snapshot(table):
    assert tracked(table) == {1: (0, 1), 2: (1, 1), 3: (2, 2)}
    assert [s.next_row_id for s in table.snapshots()] == [2, 3]
    assert tracked(table, snapshot_id=1) == {1: (0, 1), 2: (1, 1)}


@pytest.mark.parametrize("how", [{"full": True}, {"order_by": ["v"]}])
def test_ids_stay_when_files_are_rewritten(table, how):
    before = tracked(table)
    result = table.compact(**how)
    assert result.next_row_id == 3
    assert tracked(table) == before
    table.write(orders((4, "d", 4)))
    table.compact(**how)
    assert tracked(table) == before | {4: (3, 4)}


def test_id_comes_with_any_columns_and_any_filter(table):
    table.compact(full=True)
    table.write(orders((4, "d", 4), (5, "e", 5)))
    for i in range(1, 6):
        actual = table.to_arrow(["v", "_row_id"], filter=f"id = {i}").to_pylist()
        assert actual == [{"v": " abcde"[i], "_ROW_ID": i - 1}]
    assert table.to_arrow().schema.names == ["id", "v", "n"]


def test_replaced_rows_leave_their_ids_behind(table):
    table.overwrite(orders((1, "z", 1)))
    assert tracked(table) == {1: (3, 3)}
    table.truncate()
    table.write(orders((1, "z", 1)))
    assert tracked(table) == {1: (4, 5)}


def test_ids_outlive_change_of_schema(table):
    before = tracked(table)
    table = table.alter([AddColumn("w", parse_type("INT"))])
    table.compact(full=True)
    assert tracked(table) == before


def test_ids_of_partition_are_neighbours(tmp_path):
    schema = pa.schema([("p", pa.int32()), ("id", pa.int64())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=TRACKED))
    writers = [table.writer() for _ in range(2)]
    messages = []
    for i, writer in enumerate(writers):
        writer.write(pa.table({"p": [0, 1, 0], "id": [10 * i, 10 * i + 1, 10 * i + 2]}, schema=schema))
        messages += writer.prepare_commit()
    table.committer().commit(messages)
    rows = table.to_arrow(["p", "_ROW_ID"]).to_pylist()
    assert sorted(r["_ROW_ID"] for r in rows if r["p"] == 0) in ([0, 1, 2, 3], [2, 3, 4, 5])


def test_lost_race_gives_other_ids(table):
    mine, theirs = table.writer(), table.writer()
    mine.write(orders((7, "x", 7)))
    theirs.write(orders((8, "y", 8)))
    table.committer().commit(theirs.prepare_commit())
    table.committer().commit(mine.prepare_commit())
    assert tracked(table)[8] == (3, 3)
    assert tracked(table)[7] == (4, 4)


def test_other_tables_have_no_ids(tmp_path):
    for made in (append_table(tmp_path / "a"), keyed_table(tmp_path / "k")):
        with pytest.raises(InvalidInputError, match="_ROW_ID"):
            made.to_arrow(["_ROW_ID"])


@draws(15)
@given(st.lists(st.sampled_from(["write", "compact", "sort", "overwrite"]), min_size=1, max_size=8))
def test_row_keeps_its_id(tmp_path_factory, steps):
    table = append_table(tmp_path_factory.mktemp("w") / "t", **TRACKED)
    known, fresh = {}, 0
    for number, step in enumerate(steps):
        if step == "compact":
            table.compact(full=True)
        elif step == "sort":
            table.compact(order_by=["n"])
        else:
            rows = orders(*((number * 10 + i, "v", -i) for i in range(3)))
            made = table.write(rows) if step == "write" else table.overwrite(rows)
            added = {number * 10 + i: (fresh + i, made.id) for i in range(3)}
            known, fresh = (known if step == "write" else {}) | added, fresh + 3
        assert tracked(table) == known
