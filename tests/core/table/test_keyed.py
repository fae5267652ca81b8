"""A primary-key table through its public methods: upsert, delete, read, travel, overwrite."""

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, files_below, keyed_table, orders, rows_of


def test_upsert_keeps_last_row_of_every_key(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2), (1, "aa", 11)))
    table.write(orders((2, "bb", 22), (3, "c", 3)))
    assert [(r["id"], r["v"]) for r in rows_of(table.to_arrow())] == [(1, "aa"), (2, "bb"), (3, "c")]


def test_deleted_key_can_be_written_again(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((1, None, None)), row_kinds=["-D"])
    assert [r["id"] for r in rows_of(table.to_arrow())] == [2]
    table.write(orders((1, "again", 9)))
    assert [r["v"] for r in rows_of(table.to_arrow())] == ["again", "b"]


def test_every_snapshot_reads_as_it_did(tmp_path):
    table = keyed_table(tmp_path / "t")
    seen = []
    for i in range(5):
        snapshot = table.write(orders((i, "x", i), (0, f"v{i}", i)))
        seen.append((snapshot.id, rows_of(table.to_arrow())))
    for snapshot_id, rows in seen:
        assert rows_of(table.to_arrow(snapshot_id=snapshot_id)) == rows
        assert rows_of(table.to_arrow(version=str(snapshot_id))) == rows
    with pytest.raises(OutOfRangeError, match="99"):
        table.to_arrow(snapshot_id=99)
    with pytest.raises(NotFoundError, match="nosuch"):
        table.to_arrow(tag="nosuch")


def test_projection_filter_and_limit(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders(*((i, f"v{i}", i % 7) for i in range(100))))
    table.write(orders(*((i, f"w{i}", 100) for i in range(0, 100, 10))))
    assert table.to_arrow(columns=["n"]).schema.names == ["n"]
    assert table.to_arrow(columns=["v", "id"], filter="n = 100").sort_by("id").to_pydict()["v"] == [
        f"w{i}" for i in range(0, 100, 10)
    ]
    assert table.to_arrow(filter="id = 10").to_pylist() == [{"id": 10, "v": "w10", "n": 100}]
    assert table.to_arrow(filter="v = 'v10'").num_rows == 0  # the older version must not come back
    assert table.to_arrow(limit=7).num_rows == 7
    assert table.to_arrow(columns=[]).num_rows == 100


def test_key_predicate_reads_one_bucket(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="16")
    table.write(orders(*((i, "v", i) for i in range(1000))))
    assert len(table.scan(filter="id = 77").plan().splits) == 1
    assert len(table.scan(filter="id IN (77, 78)").plan().splits) <= 2


def test_overwrite_replaces_everything(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.overwrite(orders((3, "c", 3)))
    assert [r["id"] for r in rows_of(table.to_arrow())] == [3]
    assert table.truncate().commit_kind == "OVERWRITE"
    assert table.to_arrow().num_rows == 0


def test_overwrite_of_partitions(tmp_path):
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False), ("v", pa.string())]
    )
    table = Table.create(
        str(tmp_path / "t"), Schema(schema, primary_keys=["dt", "id"], partition_keys=["dt"], options={"bucket": "1"})
    )
    rows = lambda *r: pa.Table.from_pylist([dict(zip(("id", "dt", "v"), x, strict=True)) for x in r], schema)  # noqa: E731
    table.write(rows((1, "a", "1"), (2, "b", "2"), (3, "c/ =%é", "3")))
    table.overwrite(rows((9, "a", "9")), "dynamic")
    assert [(r["dt"], r["id"]) for r in rows_of(table.to_arrow(), ("dt",))] == [("a", 9), ("b", 2), ("c/ =%é", 3)]
    table.overwrite(rows((8, "b", "8")), {"dt": "b"})
    assert [r["id"] for r in rows_of(table.to_arrow(), ("dt",))] == [9, 8, 3]
    before = files_below(tmp_path)
    with pytest.raises(InvalidInputError, match="dt=a"):
        table.overwrite(rows((8, "a", "8")), {"dt": "b"})
    assert files_below(tmp_path) == before
    assert table.overwrite(rows(), "dynamic") is None
    table.drop_partitions([{"dt": "a"}, {"dt": "b"}])
    assert [r["id"] for r in rows_of(table.to_arrow(), ("dt",))] == [3]
    table.overwrite(rows())
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"id": [1, None], "v": ["a", "b"], "n": pa.array([1, 2], pa.int32())}), "'id'.*NOT NULL.*row 1"),
        (pa.table({"v": ["a"]}), "primary key columns"),
        (pa.table({"id": [1], "w": ["a"]}), "'w'"),
        (pa.table({"id": [1], "n": [2**40]}), "n.*1099511627776"),
        (pa.table({"id": ["x"]}), "id"),
        (pa.table({"id": [1], "V": ["a"], "v ": ["a"]}), "'v '"),
    ],
)
def test_bad_data_is_refused_by_name_and_leaves_nothing(tmp_path, data, message):
    table = keyed_table(tmp_path / "t")
    before = files_below(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        table.write(data)
    assert files_below(tmp_path) == before


def test_names_match_without_case_and_missing_columns_are_null(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(pa.table({"V": ["a"], "ID": [1]}))
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": "a", "n": None}]


def test_empty_write_commits_nothing(tmp_path):
    table = keyed_table(tmp_path / "t")
    assert table.write(ORDERS.empty_table()) is None
    assert table.snapshots() == []
    assert table.to_arrow().num_rows == 0


def test_small_write_buffer_flushes_often_and_loses_nothing(tmp_path):
    table = keyed_table(tmp_path / "t", write_buffer_size="64 kb", write_buffer_spillable="false", write_only="true")
    for start in (0, 500):
        table.write(orders(*((i % 5000, f"{start}-{i}", i) for i in range(start, start + 20_000))))
    rows = rows_of(table.to_arrow())
    assert len(rows) == 5000
    assert all(r["v"] == f"500-{r['n']}" and r["n"] % 5000 == r["id"] and r["n"] >= 15_500 for r in rows)
    assert max(len(s.files) for s in table.scan().plan().splits) > 4


def test_unknown_overwrite_mode_replaces_nothing(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    with pytest.raises(InvalidInputError, match="dynamc"):
        table.overwrite(orders((2, "b", 2)), "dynamc")
    with pytest.raises(InvalidInputError, match="dynamc"):
        table.committer().overwrite([], "dynamc")
    assert [r["id"] for r in rows_of(table.to_arrow())] == [1]
