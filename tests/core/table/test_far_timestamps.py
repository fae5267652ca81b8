"""TIMESTAMP(9) of years that nanoseconds cannot hold, read in microseconds: asked for, or after ALTER to six digits."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.predicate.expr import Leaf
from paimon_core.schema.change import UpdateType
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.parse import parse_type
from tests.support.far_timestamps import FAR, far_table


def shown(table):
    return [None if v is None else v.replace(tzinfo=None) for v in table["ts"].to_pylist()]


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_LTZ"])
@pytest.mark.parametrize("format_", ["parquet", "orc"])
@pytest.mark.parametrize("keys", ["", "n"])
def test_far_years_are_read_in_microseconds(tmp_path, format_, kind, keys):
    table = far_table(tmp_path / "t", kind, file_format=format_, keys=keys, **({"bucket": "1"} if keys else {}))
    with pytest.raises(UnsupportedError, match="1677"):
        table.to_arrow()
    coarse = Table(table.store.in_microseconds())
    assert shown(coarse.to_arrow().sort_by("n")) == FAR
    zone = dt.timezone.utc if kind == "TIMESTAMP_LTZ" else None
    late = coarse.to_arrow(filter=Leaf(">", "ts", (dt.datetime(1969, 12, 31, tzinfo=zone),))).sort_by("n")
    assert late["n"].to_pylist() == [1, 3]
    assert coarse.to_arrow(filter=Leaf("=", "ts", (FAR[0].replace(tzinfo=zone),)))["n"].to_pylist() == [0]


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_far_years_are_read_after_column_was_given_six_digits(tmp_path, format_):
    table = far_table(tmp_path / "t", file_format=format_)
    altered = table.alter([UpdateType("ts", parse_type("TIMESTAMP(6)"))])
    assert shown(altered.to_arrow().sort_by("n")) == FAR


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_finer_digits_are_rounded_down_as_cast_does(tmp_path, format_):
    early = [] if format_ == "orc" else [-1_001, -1_000, -999, -1]  # the encoder of ORC does not take them
    nanos = [*early, 0, 1, 999, 1_000, 1_001_999, None]
    table = Table.create(
        str(tmp_path / "t"), Schema(pa.schema([("ts", pa.timestamp("ns"))]), options={"file.format": format_})
    )
    table.write(pa.table({"ts": pa.array(nanos, pa.int64()).cast(pa.timestamp("ns"))}))
    expected = [None if n is None else n // 1_000 for n in nanos]
    coarse = Table(table.store.in_microseconds()).to_arrow()
    altered = table.alter([UpdateType("ts", parse_type("TIMESTAMP(3)"))]).to_arrow()
    assert coarse["ts"].cast(pa.int64()).to_pylist() == expected
    assert altered["ts"].cast(pa.int64()).to_pylist() == [None if n is None else n // 1_000_000 for n in nanos]


def test_int96_of_far_years_is_read_in_microseconds(tmp_path):
    table = far_table(tmp_path / "t")
    (file,) = Path(table.path).glob("bucket-0/*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    assert shown(Table(table.store.in_microseconds()).to_arrow()) == FAR


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ("n,ts", {"bucket": "1"}),
        ("n", {"bucket": "1", "sequence.field": "ts"}),
        ("n", {"bucket": "1", "merge-engine": "aggregation"}),
        ("n", {"bucket": "1", "merge-engine": "partial-update"}),
        ("", {"file-index.bloom-filter.columns": "ts"}),
    ],
)
def test_columns_whose_finer_digits_decide_something_keep_them(tmp_path, keys, options):
    schema = pa.schema(
        [pa.field("n", pa.int64(), nullable=False), pa.field("ts", pa.timestamp("ns"), nullable="ts" not in keys)]
    )
    table = Table.create(str(tmp_path / "t"), Schema(schema, [k for k in keys.split(",") if k], options=options))
    assert table.store.in_microseconds() is table.store
