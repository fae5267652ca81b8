"""Rows that callers write: Arrow's own forms, and frames."""

import datetime as dt

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string()), ("amount", pa.float64()), ("at", pa.timestamp("us"))])


@pytest.fixture
def table(tmp_path):
    return Table.create(str(tmp_path / "t"), Schema(SCHEMA))


def test_pandas_frame_is_written_as_its_rows(table):
    pd = pytest.importorskip("pandas")
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678)
    frame = pd.DataFrame({"note": ["a", None], "id": [1, 2], "amount": [1.5, float("nan")], "at": [at, pd.NaT]})
    table.write(frame)
    rows = [
        {"id": 1, "note": "a", "amount": 1.5, "at": at},
        {"id": 2, "note": None, "amount": None, "at": None},
    ]
    assert table.to_arrow().to_pylist() == rows
    table.overwrite(frame[frame["id"] == 2])
    assert table.to_arrow().to_pylist() == rows[1:]
    with table.writer() as writer:
        writer.write(frame[frame["id"] == 1], ["+I"])
        table.committer().commit(writer.prepare_commit())
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2]


def test_index_of_pandas_comes_along_where_it_has_name(table):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"note": ["a", "b", "c"]}, index=[7, 8, 9])
    table.write(frame[frame["note"] != "b"])
    assert table.to_arrow().select(["id", "note"]).to_pylist() == [{"id": None, "note": "a"}, {"id": None, "note": "c"}]
    frame.index.name = "id"
    table.overwrite(frame)
    assert table.to_arrow()["id"].to_pylist() == [7, 8, 9]


def test_keys_of_dynamic_buckets_are_routed_from_frame(tmp_path):
    pd = pytest.importorskip("pandas")
    schema = Schema(pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())]), ["id"])
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(pd.DataFrame({"id": [1, 2], "v": [1, 1]}))
    table.write(pd.DataFrame({"id": [2], "v": [2]}))
    assert sorted(table.to_arrow().to_pylist(), key=str) == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]


def test_other_frames_come_through_arrows_stream(table):
    class Frame:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"id": [1, 2], "note": ["a", None]}).__arrow_c_stream__(requested_schema)

    table.write(Frame())
    assert table.to_arrow().select(["id", "note"]).to_pylist() == [{"id": 1, "note": "a"}, {"id": 2, "note": None}]


@pytest.mark.parametrize("rows", [[{"id": 1}], {"id": [1]}, None, "id"], ids=type)
def test_other_data_is_refused_by_name(table, rows):
    for write in (table.write, table.overwrite, table.writer().write):
        with pytest.raises(InvalidInputError, match=rf"not {type(rows).__name__}; pa.Table.from_pylist"):
            write(rows)
    assert table.snapshot() is None


def test_frame_that_arrow_cannot_hold_is_refused(table):
    pd = pytest.importorskip("pandas")
    with pytest.raises(InvalidInputError, match="cannot convert the DataFrame to an Arrow table"):
        table.write(pd.DataFrame({"id": [1, "one"]}))
    with pytest.raises(InvalidInputError, match="column 'id'"):
        table.write(pd.DataFrame({"id": [1.5]}))
