"""Files of other tools that we add, and tables that we clone: Java reads them, writes on and compacts them."""

from datetime import date, datetime, timezone
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java

FLAT = {
    "i8": (pa.int8(), [1, None, -3]),
    "i64": (pa.int64(), [2**62, None, -1]),
    "u8": (pa.uint8(), [0, None, 255]),
    "u16": (pa.uint16(), [0, None, 65535]),
    "t": (pa.string(), ["a", None, "ü"]),
    "large": (pa.large_string(), ["x", None, ""]),
    "dict": (pa.dictionary(pa.int32(), pa.string()), ["p", None, "p"]),
    "b": (pa.binary(), [b"\x00\xff", None, b""]),
    "fixed": (pa.binary(3), [b"abc", None, b"xyz"]),
    "d": (pa.date32(), [date(2026, 1, 1), None, date(1969, 12, 31)]),
    "ms": (pa.timestamp("ms"), [datetime(2026, 1, 1, 2, 3, 4, 5000), None, datetime(1969, 1, 1)]),
    "us": (pa.timestamp("us"), [datetime(2026, 1, 1, 2, 3, 4, 5), None, datetime(9999, 12, 31)]),
    "z": (pa.timestamp("us", "Asia/Tokyo"), [datetime(2026, 1, 1, tzinfo=timezone.utc), None, None]),
    "m9": (pa.decimal128(9, 2), [Decimal("1.50"), None, Decimal("-2.25")]),
    "m18": (pa.decimal128(18, 2), [Decimal("1.50"), None, Decimal("-2.25")]),
    "m38": (pa.decimal128(38, 10), [Decimal("1.5"), None, Decimal("-12345678901234567890.25")]),
    "f": (pa.float32(), [1.5, None, float("nan")]),
    "g": (pa.float64(), [1.5, None, -0.0]),
    "time": (pa.time32("ms"), [1000, None, 0]),
}
NESTED = {
    "l": (pa.list_(pa.string()), [["a", None], None, []]),
    "m": (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None, []]),
    "s": (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float64()))]), [{"x": 1, "y": [1.0]}, None, {"x": None}]),
}


def rows(*leave_out):
    columns = {name: pa.array(values, kind) for name, (kind, values) in {**FLAT, **NESTED}.items()}
    return pa.table({name: column for name, column in columns.items() if name not in leave_out})


def avro_file(path):
    fields = [
        ("a", ["null", "int"], [1, None]),
        ("t", "string", ["x", "y"]),
        ("d", ["null", {"type": "int", "logicalType": "date"}], [date(2026, 1, 1), None]),
        ("z", {"type": "long", "logicalType": "timestamp-micros"}, [datetime(2026, 1, 1, tzinfo=timezone.utc)] * 2),
        ("w", {"type": "long", "logicalType": "local-timestamp-millis"}, [datetime(2026, 1, 1, 5)] * 2),
        (
            "m",
            ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}],
            [Decimal("1.5"), None],
        ),
        ("l", {"type": "array", "items": ["null", "long"]}, [[1, None], []]),
        ("k", {"type": "map", "values": "double"}, [{"a": 1.5}, {}]),
        ("s", {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}, [{"x": 1}, {"x": 2}]),
    ]
    schema = {"type": "record", "name": "other.Row", "fields": [{"name": n, "type": kind} for n, kind, _ in fields]}
    records = [{name: values[i] for name, _, values in fields} for i in range(2)]
    with path.open("wb") as sink:
        fastavro.writer(sink, schema, records, codec="deflate")


HOW = {
    "plain": {"use_dictionary": False, "data_page_version": "2.0", "compression": "gzip"},
    "items": {"use_compliant_nested_type": False, "store_decimal_as_integer": True, "compression": "lz4"},
    "delta": {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY", "i64": "DELTA_BINARY_PACKED"}},
}


def write(kind, path):
    if kind == "avro":
        avro_file(path)
    elif kind == "orc":
        orc.write_table(rows("u8", "u16", "z", "time", "fixed", "dict", "us"), path, compression="snappy")
    elif kind == "spark":
        data = rows("ms").replace_schema_metadata({"org.apache.spark.version": "4.1.0"})
        pq.write_table(data, path, use_deprecated_int96_timestamps=True)
    else:
        pq.write_table(rows(), path, **HOW.get(kind, {}))


FORMS = ("plain", "items", "delta", "spark")


def catalog_of(judge):
    catalog = FileSystemCatalog(str(judge.warehouse))
    catalog.create_database("db", ignore_if_exists=True)
    return catalog


@pytest.mark.parametrize(
    "kind", ["parquet", "orc", "avro", *(pytest.param(form, marks=pytest.mark.more) for form in FORMS)]
)
def test_java_reads_migrated_files(judge, name, tmp_path, kind):
    source = tmp_path / "in" / "day=2026-01-01" / "shop=a%20b"
    source.mkdir(parents=True)
    write(kind, source / "x")
    table = SharedTable(judge, name)
    catalog_of(judge).migrate(str(tmp_path / "in"), name)
    before = table.agree()
    column = table.ours().schema.names[0]
    value = table.ours().to_arrow().column(column).drop_null()[0].as_py()
    assert len(table.java("read", equals={column: value})["rows"]) == 1
    write(kind, tmp_path / "more")
    table.ours().add_files(str(tmp_path / "more"), {"day": date(2026, 1, 2), "shop": None})
    assert len(table.agree()) == 2 * len(before)
    table.java("compact", kind="full")
    table.agree()
    table.ours().compact(full=True)
    table.agree()


@pytest.mark.parametrize("kind", ["parquet", *(pytest.param(form, marks=pytest.mark.more) for form in ("orc", "avro"))])
def test_java_reads_null_for_a_column_that_a_file_lacks(judge, name, tmp_path, kind):
    table = SharedTable(judge, name)
    columns = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.int32()))])
    catalog_of(judge).create_table(name, Schema(columns))
    some = Table.create(str(tmp_path / "t"), Schema(pa.schema([("b", pa.string())]), options={"file.format": kind}))
    some.write(pa.table({"b": ["x", None]}))
    table.ours().add_files(str(tmp_path / "t" / "bucket-0"))
    same(table.agree(), [[None, "x", None], [None, None, None]], name)


TABLES = {
    "append": ([], {}),
    "keys": (["k"], {"bucket": "2"}),
    "vectors": (["k"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic": (["k"], {"bucket": "-1"}),
    "row ids": ([], {"row-tracking.enabled": "true"}),
    "changelog": (["k"], {"bucket": "1", "changelog-producer": "lookup"}),
}


@pytest.mark.parametrize(
    "kind", [k if k in ("keys", "vectors") else pytest.param(k, marks=pytest.mark.more) for k in TABLES]
)
def test_java_writes_to_clone(judge, name, rng, kind):
    keys, options = TABLES[kind]
    source, copy = SharedTable(judge, f"{name}_source"), SharedTable(judge, name)
    fields = [["k", "INT NOT NULL"], ["v", "STRING"]]
    source.java("create_table", fields=fields, primary_keys=keys, options=options)
    catalog = catalog_of(judge)
    for turn in range(2):
        for _ in range(2):
            some = [["+I", {"k": rng.randrange(30), "v": rng.choice("abc")}] for _ in range(20)]
            source.java("write", rows=some, compact="full" if turn and keys else "none")
            source.we_write(some[:5])
        catalog.clone(source.name, catalog, copy.name)
        same(copy.agree(), source.agree(), f"{name}: rows of the clone")
        assert copy.ours().verify(deep=True).sound
    copy.java("write", rows=[["+I", {"k": 77, "v": "java"}]])
    copy.we_write([["+I", {"k": 78, "v": "ours"}]])
    if keys:
        copy.java("compact", kind="full")
    copy.agree()
