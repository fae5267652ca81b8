"""Data a table cannot hold: refused by column, row and value, and nothing is left behind."""

from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import files_below

WIDE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("must", pa.string(), nullable=False),
        ("tiny", pa.int8()),
        ("dec", pa.decimal128(5, 2)),
        ("at", pa.timestamp("ms")),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("row", pa.struct([("a", pa.int32()), pa.field("b", pa.string(), nullable=False)])),
        ("list", pa.list_(pa.int32())),
        ("f", pa.float32()),
    ]
)


def one(column: str, value, kind: pa.DataType | None = None) -> pa.Table:
    """A good row, and a second one with ``value`` in ``column``."""
    good = {"id": pa.array([1, 2], pa.int64()), "must": pa.array(["a", "b"])}
    good[column] = pa.array([None if column not in good else good[column][0].as_py(), value], kind)
    return pa.table(good)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"must": ["a"]}), "primary key columns.*id"),
        (one("id", None, pa.int64()), "'id'.*NOT NULL.*row 1"),
        (pa.table({"id": [1]}), "'must'.*NOT NULL"),
        (one("must", None, pa.string()), "'must'.*NOT NULL.*row 1"),
        (one("tiny", 300), "tiny.*300"),
        (one("tiny", 1.5), "tiny.*1.5"),
        (one("tiny", "7"), "tiny"),
        (one("dec", Decimal("1000.00")), "dec.*1000"),
        (one("dec", Decimal("1.005")), "dec.*1.005"),
        (one("dec", 12345), "dec.*12345"),
        (one("at", datetime(2020, 1, 1, 0, 0, 0, 1), pa.timestamp("us")), "at.*000001"),
        (one("at", datetime(2020, 1, 1, tzinfo=timezone.utc), pa.timestamp("ms", "UTC")), "at"),
        (one("at", "2020-01-01"), "at"),
        (one("day", datetime(2020, 1, 1, 12), pa.timestamp("ms")), "day"),
        (one("flag", 1), "flag"),
        (one("row", {"a": 1}), "row"),
        (one("row", {"a": 2**40, "b": "x"}), "row.*1099511627776|1099511627776"),
        (one("row", {"a": 1, "b": None}, pa.struct([("a", pa.int32()), ("b", pa.string())])), "row.*b|b.*NOT NULL"),
        (one("list", [1, 2**40]), "list.*1099511627776|1099511627776"),
        (one("list", 1), "list"),
        (one("f", 0.1, pa.float64()), "f.*0.1"),
        (one("extra", 1), "'extra'"),
        (pa.table({"id": [1], "ID": [2], "must": ["a"]}), "ID"),
        (pa.table({"Id": [1], "ID": [2], "must": ["a"]}), "differ only in case"),
        (pa.table([pa.array([1]), pa.array([2]), pa.array(["a"])], names=["id", "id", "must"]), "'id'.*more than once"),
    ],
)
def test_data_of_other_types_is_refused(tmp_path, data, message):
    table = Table.create(str(tmp_path / "t"), Schema(WIDE, ["id"], options={"bucket": "1"}))
    before = files_below(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        table.write(data)
    with pytest.raises(InvalidInputError, match=message):
        table.overwrite(data)
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("at", [0, 999, 1000, 123_456])
def test_row_named_is_row_of_input(tmp_path, at):
    """However the data are cut and buffered on the way."""
    table = Table.create(
        str(tmp_path / "t"), Schema(WIDE, ["id"], options={"bucket": "1", "write-buffer-size": "64 kb"})
    )
    count = at + 10
    must = pa.array(["x"] * at + [None] + ["x"] * 9)
    data = pa.table({"id": pa.array(range(count)), "must": must})
    with pytest.raises(InvalidInputError, match=rf"'must'.*row {at} "):
        table.write(data)
    batches = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=777))
    with pytest.raises(InvalidInputError, match=rf"'must'.*row {at} "):
        table.write(batches)
    assert not any(name.endswith(".parquet") for name in files_below(tmp_path))


@pytest.mark.parametrize(("kinds", "message"), [(["+I"], "1 row kinds"), (["+I", "?"], r"\?"), (["+I", None], "kind")])
def test_unknown_row_kinds_are_refused(tmp_path, kinds, message):
    table = Table.create(str(tmp_path / "t"), Schema(WIDE, ["id"], options={"bucket": "1"}))
    with pytest.raises(InvalidInputError, match=message):
        table.write(one("tiny", 1, pa.int8()), kinds)


def test_deletes_in_table_without_key(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("a", pa.int32())])))
    with pytest.raises(InvalidInputError, match=r"row 1 has kind -D.*primary key"):
        table.write(pa.table({"a": pa.array([1, 2], pa.int32())}), ["+I", "-D"])
