"""The columns of files of other tools: right types, or a refusal that names file and column."""

import io
from datetime import date, datetime, timedelta
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyorc
import pytest

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.migration.describe_file import describe

IO = FileIO.of("/")


def described(path, format=None):
    return describe(IO, str(path), path.stat().st_size, format)


def types_of(path):
    return {field.name: str(field.type) for field in described(path).fields}


def parquet(path, data, types=None, **how):
    table = data if isinstance(data, pa.Table) else pa.table(data, schema=types)
    pq.write_table(table, path, **how)
    return path


ARROW = {
    "bool": (pa.bool_(), "BOOLEAN"),
    "int8": (pa.int8(), "TINYINT"),
    "int16": (pa.int16(), "SMALLINT"),
    "int32": (pa.int32(), "INT"),
    "int64": (pa.int64(), "BIGINT"),
    "uint8": (pa.uint8(), "SMALLINT"),
    "uint16": (pa.uint16(), "INT"),
    "float": (pa.float32(), "FLOAT"),
    "double": (pa.float64(), "DOUBLE"),
    "text": (pa.string(), "STRING"),
    "large text": (pa.large_string(), "STRING"),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), "STRING"),
    "bytes": (pa.binary(), "BYTES"),
    "large bytes": (pa.large_binary(), "BYTES"),
    "fixed": (pa.binary(5), "BINARY(5)"),
    "date": (pa.date32(), "DATE"),
    "time": (pa.time32("ms"), "TIME(3)"),
    "millis": (pa.timestamp("ms"), "TIMESTAMP(3)"),
    "seconds": (pa.timestamp("s"), "TIMESTAMP(3)"),
    "micros": (pa.timestamp("us"), "TIMESTAMP(6)"),
    "zoned": (pa.timestamp("us", "Asia/Tokyo"), "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    "decimal": (pa.decimal128(10, 2), "DECIMAL(10, 2)"),
    "wide decimal": (pa.decimal128(38, 10), "DECIMAL(38, 10)"),
    "list": (pa.list_(pa.list_(pa.int32())), "ARRAY<ARRAY<INT>>"),
    "large list": (pa.large_list(pa.string()), "ARRAY<STRING>"),
    "fixed list": (pa.list_(pa.float32(), 3), "ARRAY<FLOAT>"),
    "map": (pa.map_(pa.string(), pa.list_(pa.int64())), "MAP<STRING NOT NULL, ARRAY<BIGINT>>"),
    "struct": (pa.struct([("a.b", pa.int32()), ("c", pa.struct([("d", pa.string())]))]),
               "ROW<`a.b` INT, `c` ROW<`d` STRING>>"),
    "a.b": (pa.list_(pa.struct([("x", pa.date32())])), "ARRAY<ROW<`x` DATE>>"),
}  # fmt: skip


@pytest.mark.parametrize("integers", [False, True])
def test_every_parquet_type(tmp_path, integers):
    schema = pa.schema([(name, kind) for name, (kind, _) in ARROW.items()])
    empty = schema.empty_table()
    path = parquet(tmp_path / "a.parquet", empty, store_decimal_as_integer=integers)
    assert types_of(path) == {name: expected for name, (_, expected) in ARROW.items()}
    plain = parquet(tmp_path / "b.parquet", empty, store_schema=False, use_compliant_nested_type=False)
    assert types_of(plain) == types_of(path)


REFUSED = {
    "uint32": (pa.uint32(), "unsigned"),
    "uint64": (pa.uint64(), "unsigned"),
    "nanos": (pa.timestamp("ns"), "nanoseconds"),
    "zoned nanos": (pa.timestamp("ns", "UTC"), "nanoseconds"),
    "time64": (pa.time64("us"), "finer than milliseconds"),
    "half": (pa.float16(), "no type"),
    "null": (pa.null(), "no type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parquet_type_that_engines_misread_is_refused_at_any_depth(tmp_path, name):
    kind, why = REFUSED[name]
    for i, (schema, column) in enumerate(
        [(pa.schema([("c", kind)]), "'c'"), (pa.schema([("s", pa.struct([("l", pa.list_(kind))]))]), "'s.l.element'")]
    ):
        path = parquet(tmp_path / f"{i}.parquet", schema.empty_table())
        with pytest.raises(UnsupportedError, match=rf"column {column} of .*{i}\.parquet is stored as .*{why}"):
            described(path)


def test_encodings_and_codecs_that_java_lacks_are_refused(tmp_path):
    data = {"n": pa.array([1.5] * 100)}
    with pytest.raises(UnsupportedError, match=r"'n' .* BYTE_STREAM_SPLIT"):
        described(parquet(tmp_path / "a", data, use_dictionary=False, use_byte_stream_split=True))
    text = parquet(tmp_path / "c", {"t": ["a"]}, use_dictionary=False, column_encoding={"t": "DELTA_LENGTH_BYTE_ARRAY"})
    with pytest.raises(UnsupportedError, match=r"'t' .* DELTA_LENGTH_BYTE_ARRAY"):
        described(text)
    if pa.Codec.is_available("brotli"):
        with pytest.raises(UnsupportedError, match=r"'n' .* BROTLI"):
            described(parquet(tmp_path / "b", data, compression="brotli"))


def test_int96_is_instant(tmp_path):
    data = pa.table({"t": pa.array([datetime(2026, 1, 1)], pa.timestamp("us"))})
    how = {"use_deprecated_int96_timestamps": True}
    assert types_of(parquet(tmp_path / "a", data, **how)) == {"t": "TIMESTAMP(9) WITH LOCAL TIME ZONE"}
    spark = data.replace_schema_metadata({"org.apache.spark.version": "4.1.0"})
    assert types_of(parquet(tmp_path / "b", spark, **how)) == {"t": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}
    old = data.replace_schema_metadata({"org.apache.spark.legacyINT96": ""})
    with pytest.raises(UnsupportedError, match=r"'t' .*Julian"):
        described(parquet(tmp_path / "c", old, **how))


def test_days_of_julian_calendar_are_refused(tmp_path):
    for i, (first, refused) in enumerate([(date(1582, 10, 15), False), (date(1582, 10, 14), True)]):
        data = pa.table({"d": pa.array([first, date(2026, 1, 1)])})
        data = data.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
        path = parquet(tmp_path / str(i), data)
        if refused:
            with pytest.raises(UnsupportedError, match=r"'d' .*Julian"):
                described(path)
        else:
            assert described(path).row_count == 2


def test_parquet_statistics_agree_with_rows(tmp_path):
    data = {
        "n": pa.array([5, None, 3, 9], pa.int16()),
        "t": ["b", "a", None, "ü"],
        "d": pa.array([date(2026, 1, 2), date(2026, 1, 1), None, None]),
        "m": pa.array([Decimal("1.50"), None, Decimal("-2.25"), None], pa.decimal128(9, 2)),
        "z": pa.array([2, 1, None, 3], pa.timestamp("ms", "UTC")),
        "f": [1.0, float("nan"), None, 2.0],
        "nothing": pa.nulls(4, pa.int32()),
        "l": [[1], None, [], [2]],
    }
    actual = described(parquet(tmp_path / "a", data, row_group_size=2))
    day = (date(2026, 1, 1) - date(1970, 1, 1)).days
    bounds = {name: (b.min, b.max, b.null_count) for name, b in actual.bounds.items()}
    assert bounds == {
        "n": (3, 9, 1),
        "t": ("a", "ü", 1),
        "d": (day, day + 1, 2),
        "m": (Decimal("-2.25"), Decimal("1.50"), 2),
        "z": (1, 3, 1),
        "f": (None, None, 1),
        "nothing": (None, None, 4),
    }
    assert (actual.row_count, actual.format) == (4, "parquet")
    without = described(parquet(tmp_path / "b", data, write_statistics=False))
    assert without.bounds == {}


def test_every_orc_type(tmp_path):
    text = (
        "struct<a:boolean,b:tinyint,c:smallint,d:int,e:bigint,f:float,g:double,h:string,i:char(3),j:varchar(4),"
        "k:binary,l:date,m:timestamp,n:decimal(20,3),o:array<map<string,struct<x:int>>>>"
    )
    path = tmp_path / "a.orc"
    with path.open("wb") as sink, pyorc.Writer(sink, text) as writer:
        writer.write((True, -1, 2, 3, 4, 1.0, 2.0, "t", "c", "v", b"b", date(2026, 1, 1), datetime(2026, 1, 1),
                      Decimal("1.5"), []))  # fmt: skip
    actual = described(path)
    assert [str(field.type) for field in actual.fields] == [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "CHAR(3)", "VARCHAR(4)",
        "BYTES", "DATE", "TIMESTAMP(9)", "DECIMAL(20, 3)", "ARRAY<MAP<STRING NOT NULL, ROW<`x` INT>>>",
    ]  # fmt: skip
    assert actual.row_count == 1
    assert (actual.bounds["b"].min, actual.bounds["b"].max, actual.bounds["h"].null_count) == (-1, -1, 0)


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("struct<c:timestamp with local time zone>", (datetime.fromisoformat("2026-01-01T00:00:00+00:00"),), "zone"),
        ("struct<c:uniontype<int,string>>", (1,), "no type"),
        ("struct<c:date>", (date(1500, 1, 1),), "1582"),
    ],
)
def test_orc_type_that_engines_misread_is_refused(tmp_path, text, row, why):
    path = tmp_path / "a.orc"
    with path.open("wb") as sink, pyorc.Writer(sink, text) as writer:
        writer.write(row)
    with pytest.raises(UnsupportedError, match=f"'c' of .*{why}"):
        described(path)


def avro(path, kind, values=()):
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": kind}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"c": value} for value in values])
    path.write_bytes(sink.getvalue())
    return path


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("long", "BIGINT"),
        (["null", "string"], "STRING"),
        ({"type": "string", "logicalType": "uuid"}, "STRING"),
        ({"type": "int", "logicalType": "date"}, "DATE"),
        ({"type": "int", "logicalType": "time-millis"}, "TIME(3)"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "TIMESTAMP(3)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "DECIMAL(9, 2)"),
        ({"type": "array", "items": ["null", "int"]}, "ARRAY<INT>"),
        ({"type": "map", "values": "double"}, "MAP<STRING NOT NULL, DOUBLE>"),
        ({"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}, "ROW<`x` INT>"),
    ],
)
def test_avro_types_become_column_types(tmp_path, kind, expected):
    assert types_of(avro(tmp_path / "a.avro", kind)) == {"c": expected}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (["string", "null"], "union"),
        (["null", "int", "string"], "union"),
        ({"type": "fixed", "name": "f", "size": 4}, "fixed"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "enum"),
        ({"type": "long", "logicalType": "time-micros"}, "time-micros"),
        ({"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 5}, "decimal"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "nanos"),
        ("null", "null"),
    ],
)
def test_avro_type_that_engines_misread_is_refused(tmp_path, kind, why):
    with pytest.raises(UnsupportedError, match=rf"'c' of .*a\.avro is stored as .*{why}"):
        described(avro(tmp_path / "a.avro", kind))


def test_rows_of_avro_are_counted(tmp_path):
    assert described(avro(tmp_path / "a.avro", "long", range(1000))).row_count == 1000


def test_files_of_other_kinds(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(
        InvalidInputError, match=r"notes.txt is not in format parquet or orc or avro: it begins with b'hell'"
    ):
        described(path)
    good = parquet(tmp_path / "a", {"n": [1]})
    with pytest.raises(InvalidInputError, match="is not in format orc"):
        described(good, "orc")
    cut = tmp_path / "cut"
    cut.write_bytes(good.read_bytes()[:-10])
    with pytest.raises(CorruptedError, match="cut is damaged"):
        described(cut)
    cut.write_bytes(b"ORC" + bytes(20))
    with pytest.raises(CorruptedError, match="cut is damaged"):
        described(cut)
    with pytest.raises(NotFoundError, match="was deleted"):
        describe(IO, str(tmp_path / "gone"), 1)


def test_orc_dates_of_now_pass(tmp_path):
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"d": [date(1582, 10, 15) + timedelta(1)]}), path)
    assert types_of(path) == {"d": "DATE"}
