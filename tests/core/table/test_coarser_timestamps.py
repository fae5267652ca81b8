"""Columns of timestamps changed to coarser types: rows before 1970 are rounded down, and filters find them."""

import datetime as dt

import pyarrow as pa
import pytest

from paimon_core.schema.change import UpdateType
from tests.support.tables import append_table

MOMENT = dt.datetime(1969, 12, 31, 23, 59, 58, 500_000)
SECOND = dt.datetime(1969, 12, 31, 23, 59, 58)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("target", "expected", "text"),
    [
        ("DATE", dt.date(1969, 12, 31), "'1969-12-31'"),
        ("TIMESTAMP(0)", SECOND, "'1969-12-31 23:59:58'"),
        ("BIGINT", -2, "-2"),
        ("INT", -2, "-2"),
    ],
)
def test_rows_and_filters(tmp_path, target, expected, text, file_format):
    schema = pa.schema([("c", pa.timestamp("us")), ("s", pa.struct([("c", pa.timestamp("us"))]))])
    table = append_table(tmp_path / "t", schema, **{"file.format": file_format, "metadata.stats-mode": "full"})
    table.write(pa.table([[MOMENT], [{"c": MOMENT}]], schema=schema))
    table = table.alter([UpdateType("c", target), UpdateType(("s", "c"), target)])
    assert table.to_arrow().to_pylist() == [{"c": expected, "s": {"c": expected}}]
    for test, actual in (("=", 1), ("<=", 1), (">", 0), ("<", 0)):
        assert table.to_arrow(filter=f"c {test} {text}").num_rows == actual, test
