"""Odd but right: nothing at all, very many columns, very long values, partition values that paths do not like."""

import pyarrow as pa
import pytest

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, append_table, files_below, keyed_table, orders, rows_of

ODD = ["a/b", "a=b", "100%", "two words", " ", "", None, "é", "漢字", "\U0001f600", 'a:b*?"<>|\\', "..", "%2F"]
ODD += ["a\nb\tc", "'"]


@pytest.mark.parametrize("make", [append_table, keyed_table])
def test_empty_table_and_empty_writes(tmp_path, make):
    table = make(tmp_path / "t")
    assert table.to_arrow().schema.names == ORDERS.names
    assert list(table.to_batches()) == []
    assert table.write(ORDERS.empty_table()) is None
    assert table.write(pa.table({"id": pa.array([], pa.int64())})) is None
    assert table.write(pa.RecordBatchReader.from_batches(ORDERS, [])) is None
    assert table.snapshot() is None
    assert str(table.explain()).endswith("nothing to read")
    assert table.overwrite(ORDERS.empty_table()).total_record_count == 0
    table.write(pa.concat_tables([ORDERS.empty_table(), orders((1, "a", 1)), ORDERS.empty_table()]))
    assert table.to_arrow(filter="id > 5").num_rows == 0
    assert table.to_arrow(limit=0).num_rows == 0
    assert table.to_arrow(columns=[], filter="id = 1").num_rows == 1


@pytest.mark.parametrize("format_", ["parquet", pytest.param("orc", marks=pytest.mark.more), "avro"])
def test_table_of_thousand_columns_is_written_and_read(tmp_path, format_):
    names = [f"column_{i}" for i in range(1000)]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *[(n, pa.string()) for n in names]])
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["id"], options={"bucket": "1", "file.format": format_}))
    for id_ in (1, 2):
        rows = pa.table([pa.array([id_, 3])] + [pa.array([f"{id_}-{n}", None]) for n in names], schema=schema)
        table.write(rows)
    assert table.to_arrow().num_rows == 3
    actual = table.to_arrow(columns=["column_999", "id"], filter="column_500 = '2-column_500'")
    assert actual.to_pylist() == [{"column_999": "2-column_999", "id": 2}]


@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_strings_of_megabyte(tmp_path, format_):
    table = keyed_table(tmp_path / "t", bucket="1", **{"file.format": format_, "write_buffer_size": "4 mb"})
    big = {i: chr(ord("a") + i) * (1 << 20) for i in range(12)}
    table.write(orders(*((i, value, i) for i, value in big.items())))
    table.write(orders((3, "small", 3)))
    actual = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert actual == {**big, 3: "small"}
    assert table.to_arrow(columns=["id"], filter=f"v = '{big[5]}'").to_pylist() == [{"id": 5}]
    for split in table.scan().plan().splits:
        assert all(f.file_size < 10 << 20 for f in split.files)


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_partition_values_with_characters_of_paths(tmp_path, keyed):
    values = [v for v in ODD if not keyed or v is not None]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=not keyed)])
    options = {"bucket": "1"} if keyed else {}
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["p", "id"] if keyed else [], ["p"], options))
    table.write(pa.table({"id": list(range(len(values))), "p": pa.array(values, pa.string())}, schema=schema))
    reopened = Table.open(table.path)
    assert [row["p"] for row in rows_of(reopened.to_arrow())] == values
    for i, value in enumerate(values):
        quoted = "p IS NULL" if value is None else "p = '{}'".format(value.replace("'", "''"))
        assert reopened.to_arrow(filter=quoted).column("id").to_pylist() == [i], quoted
    for value in values[:4]:
        reopened.overwrite(pa.table({"id": [99]}), {"p": value})
        assert reopened.to_arrow(filter=f"p = '{value}'").column("id").to_pylist() == [99]
    reopened.drop_partitions([{"p": value} for value in values])
    assert reopened.to_arrow().num_rows == 0
    root = str(tmp_path / "t")
    assert all(name.startswith(("p=", "snapshot/", "schema/", "manifest/")) for name in files_below(root))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [-1, 0, 2**31 - 1]),
        (pa.date32(), [-1, 0, 20000]),
        (pa.bool_(), [True, False]),
        (pa.decimal128(10, 2), ["-1.50", "0.00", "12345678.90"]),
        (pa.timestamp("us"), [-1, 0, 1_600_000_000_000_001]),
        (pa.float64(), [-0.5, 0.0, 1e300]),
    ],
)
def test_partitions_of_other_types(tmp_path, kind, values):
    column = pa.array(values, kind) if pa.types.is_temporal(kind) else pa.array(values).cast(kind)
    table = Table.create(str(tmp_path / "t"), Schema(pa.schema([("id", pa.int64()), ("p", kind)]), [], ["p"]))
    table.write(pa.table([pa.array(range(len(values))), column], names=["id", "p"]))
    table.write(pa.table([pa.array([99]), pa.nulls(1, kind)], names=["id", "p"]))
    actual = Table.open(table.path).to_arrow().sort_by("id")
    assert actual.column("p").combine_chunks().slice(0, len(values)).equals(column)
    assert actual.column("p").null_count == 1
    assert table.to_arrow(filter="p IS NULL").num_rows == 1
