"""Parquet: what others write, what they must find in ours, and the parts of a file that are left out."""

import datetime as dt
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import parquet
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.int96 import decode_int96
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.arrow import arrow_schema
from tests.support.samples import NANOS, fields_of

PARQUET = ParquetFormat()


def encode(fields, *parts, **options):
    sink = pa.BufferOutputStream()
    writer = PARQUET.open_writer(sink, fields, Options(options), "zstd")
    for part in parts:
        writer.write(part)
    writer.close()
    return sink.getvalue()


def foreign(array, **how):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c0": array}), sink, **how)
    return sink.getvalue()


def read(data, fields, **how):
    batches = list(PARQUET.read(pa.BufferReader(data), ReadRequest(fields, 1000, path="the-file", **how)))
    return pa.Table.from_batches(batches, arrow_schema(fields))


def values(data, type_text):
    return read(data, fields_of([type_text]))["c0"].to_pylist()


MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123000)
DECIMALS = [Decimal("1.23"), None, Decimal("-99.99")]


@pytest.mark.parametrize(
    ("array", "how", "type_text", "expected"),
    [
        (pa.array(DECIMALS, pa.decimal128(5, 2)), {}, "DECIMAL(5,2)", DECIMALS),
        (pa.array(DECIMALS, pa.decimal128(5, 2)), {"store_decimal_as_integer": True}, "DECIMAL(5,2)", DECIMALS),
        (pa.array([MOMENT], pa.timestamp("ns")), {}, "TIMESTAMP(9)", [MOMENT]),
        (pa.array([MOMENT], pa.timestamp("us")), {}, "TIMESTAMP(9)", [MOMENT]),
        (pa.array([MOMENT], pa.timestamp("us")), {}, "TIMESTAMP(3)", [MOMENT]),
        (pa.array([MOMENT], pa.timestamp("ms")), {}, "TIMESTAMP(6)", [MOMENT]),
        (pa.array([MOMENT], pa.timestamp("ms", "UTC")), {}, "TIMESTAMP(3)", [MOMENT]),
        (pa.array([1500], pa.int64()), {}, "TIMESTAMP(3)", [dt.datetime(1970, 1, 1, 0, 0, 1, 500000)]),
        (pa.array([1500], pa.int64()), {}, "TIMESTAMP(6)", [dt.datetime(1970, 1, 1, 0, 0, 0, 1500)]),
        (pa.array([3661001], pa.int32()), {}, "TIME(3)", [dt.time(1, 1, 1, 1000)]),
        (pa.array([1000], pa.time64("us")), {}, "TIME(3)", [dt.time(0, 0, 0, 1000)]),
        (pa.array([-1, 3], pa.int32()), {}, "TINYINT", [-1, 3]),
        (pa.array([-1, 3], pa.int32()), {}, "DATE", [dt.date(1969, 12, 31), dt.date(1970, 1, 4)]),
        (pa.array([b"\xc3\xa9", None]), {}, "STRING", ["é", None]),
        (pa.array(["é", None], pa.large_string()), {}, "STRING", ["é", None]),
        (pa.array(["é", None, "é"]).dictionary_encode(), {}, "STRING", ["é", None, "é"]),
        (pa.array([b"ab", None], pa.binary(2)), {}, "BINARY(2)", [b"ab", None]),
        (pa.array([[1, None], None]), {"use_compliant_nested_type": False}, "ARRAY<INT>", [[1, None], None]),
        (pa.array([[1, 2]], pa.large_list(pa.int64())), {}, "ARRAY<BIGINT>", [[1, 2]]),
        (pa.array([[{"k": "a", "v": 1}], []]), {}, "MAP<STRING,BIGINT>", [[("a", 1)], []]),
        (
            pa.array([{"b": 1, "extra": 2, "a": "x"}]),
            {},
            "ROW<a STRING, b BIGINT, c INT>",
            [{"a": "x", "b": 1, "c": None}],
        ),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float32())), {}, "VECTOR<FLOAT, 2>", [[1.0, 2.0], None]),
    ],
)
def test_every_physical_type_of_other_writers_is_read(array, how, type_text, expected):
    for dictionary in (True, False):
        assert values(foreign(array, use_dictionary=dictionary, **how), type_text) == expected


@pytest.mark.parametrize(
    ("array", "type_text"),
    [
        (pa.array([300], pa.int32()), "TINYINT"),
        (pa.array([b"\xff"]), "STRING"),
        (pa.array([1], pa.time64("us")), "TIME(3)"),
        (pa.array([1.5]), "BIGINT"),
        (pa.array([1]), "DOUBLE"),
        (pa.array([1]), "STRING"),
    ],
)
def test_values_that_do_not_fit_are_refused(array, type_text):
    with pytest.raises(CorruptedError, match="'c0' of the-file"):
        values(foreign(array), type_text)


DAY = 86_400 * 10**9
int96_moments = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))


@given(st.lists(st.none() | int96_moments, min_size=1, max_size=20))
def test_int96_keeps_microseconds_of_every_year(moments):
    nanos = [m and (m - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) * 1000 for m in moments]
    stored = pa.array([None if n is None else int96(*divmod(n, DAY)) for n in nanos], pa.binary(12))
    assert decode_int96(stored, "us").view(pa.timestamp("us")).to_pylist() == moments
    millis = [m and m.replace(microsecond=m.microsecond // 1000 * 1000) for m in moments]
    assert decode_int96(stored, "ms").view(pa.timestamp("ms")).to_pylist() == millis


def int96(days, nanos):
    return nanos.to_bytes(8, "little", signed=True) + (days + 2440588).to_bytes(4, "little")


@given(st.lists(st.integers(-(2**63) + 2 * DAY, 2**63 - 2 * DAY), min_size=1))
def test_int96_with_negative_nanoseconds_is_exact(nanos):
    forwards = [int96(*divmod(n, DAY)) for n in nanos]
    backwards = [int96(-(-n // DAY), n - DAY * -(-n // DAY)) for n in nanos]  # days rounded up, the rest taken away
    for stored in (forwards, backwards):
        assert decode_int96(pa.array(stored, pa.binary(12)), "ns").to_pylist() == nanos


def test_int96_beyond_nanoseconds_is_refused_not_wrapped():
    stored = pa.array([int96(-719162, 0), None], pa.binary(12))
    with pytest.raises(UnsupportedError, match="1677 to 2262"):
        decode_int96(stored, "ns")
    assert decode_int96(pa.array([None], pa.binary(12)), "ns").to_pylist() == [None]


def test_nanoseconds_are_written_as_int96_and_other_timestamps_as_integers():
    fields = fields_of([*NANOS, "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "ARRAY<TIMESTAMP(3)>", "TIMESTAMP(7)"])
    table = arrow_schema(fields).empty_table()
    schema = pq.read_metadata(pa.BufferReader(encode(fields, table))).schema
    leaves = [schema.column(i) for i in range(len(schema.names))]
    physical = {leaf.path: (leaf.physical_type, leaf.logical_type.type) for leaf in leaves}
    assert physical == {
        "c0": ("INT96", "NONE"),
        "c1": ("INT96", "NONE"),
        "c2.q": ("INT96", "NONE"),
        "c2.r": ("INT64", "NONE"),
        "c3": ("INT64", "NONE"),
        "c4": ("INT64", "NONE"),
        "c5.list.element": ("INT64", "NONE"),
        "c6": ("INT96", "NONE"),
    }


def test_decimals_are_stored_as_integers_if_they_fit():
    fields = fields_of(["DECIMAL(9,2)", "DECIMAL(18,2)", "DECIMAL(19,2)", "DECIMAL(38,2)"])
    schema = pq.read_metadata(pa.BufferReader(encode(fields, arrow_schema(fields).empty_table()))).schema
    physical = [(schema.column(i).physical_type, schema.column(i).length) for i in range(4)]
    assert physical == [("INT32", 0), ("INT64", 0), ("FIXED_LEN_BYTE_ARRAY", 9), ("FIXED_LEN_BYTE_ARRAY", 16)]


def test_nested_fields_have_field_ids():
    fields = fields_of(["INT"] * 25 + ["MAP<INT,STRING>", "MAP<INT,ARRAY<STRING>>"])
    stored = pq.read_schema(pa.BufferReader(encode(fields, arrow_schema(fields).empty_table())))

    def field_id(field):
        return int(field.metadata[b"PARQUET:field_id"])

    plain, deep = stored.field("c25"), stored.field("c26")
    assert (field_id(plain), field_id(deep)) == (25, 26)
    assert field_id(plain.type.key_field) == 536845310
    assert field_id(plain.type.item_field) == 536896512
    assert field_id(deep.type.key_field) == 536844286
    assert field_id(deep.type.item_field) == 536897536
    assert field_id(deep.type.item_type.value_field) == 536897537


def test_column_names_may_contain_dots():
    from_others = pa.table({"a": [{"b": 1}], "a.b": ["x"]})
    sink = pa.BufferOutputStream()
    pq.write_table(from_others, sink)
    (field,) = fields_of(["STRING"])
    renamed = type(field)(0, "a.b", field.type)
    assert read(sink.getvalue(), [renamed]).to_pydict() == {"a.b": ["x"]}


def test_row_groups_follow_block_size():
    fields = fields_of(["BIGINT"])
    parts = [pa.table({"c0": np.random.default_rng(i).integers(0, 2**60, 10_000)}) for i in range(10)]
    data = encode(fields, *parts, **{"file.block-size": "150kb"})
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert metadata.num_row_groups == 5
    assert pq.read_metadata(pa.BufferReader(encode(fields, *parts))).num_row_groups == 1


COLUMNS = ["BIGINT", "STRING", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "DECIMAL(22,2)", "DATE", "DOUBLE", "BOOLEAN"]


def grouped():
    fields = fields_of(COLUMNS)
    n = range(1000)
    columns = [
        list(n),
        [f"k{i:04d}" for i in n],
        [i * 1000 for i in n],
        list(n),
        [Decimal(i) for i in n],
        list(n),
        [float("nan") if i == 950 else i / 2 for i in n],
        [i >= 500 for i in n],
    ]
    schema = arrow_schema(fields)
    table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    parts = [table.slice(i, 100) for i in range(0, 1000, 100)]
    return fields, table, encode(fields, *parts, **{"file.block-size": "1b"})


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("c0 = 5", 1),
        ("c0 >= 900", 1),
        ("c0 < 150 OR c0 > 890", 4),
        ("c1 = 'k0450'", 1),
        ("c1 LIKE 'k07%'", 1),
        ("c2 < TIMESTAMP '1970-01-01 00:00:00.1'", 1),
        ("c3 < TIMESTAMP '1970-01-01 00:00:00.250'", 3),
        ("c4 BETWEEN 101 AND 102", 1),
        ("c5 = DATE '1970-01-05'", 1),
        ("c6 < 10", 2),  # and the row group with NaN, which has no bounds
        ("c7 = true", 5),
        ("c0 IS NULL", 0),
        ("NOT (c0 < 900)", 1),
    ],
)
def test_row_groups_without_matches_are_skipped(text, groups):
    fields, table, data = grouped()
    predicate = bind(parse_predicate(text), fields)
    actual = read(data, fields, predicate=predicate)
    assert actual.num_rows == groups * 100
    matches = actual.filter(evaluate(predicate, actual))["c0"]
    assert matches.to_pylist() == table.filter(evaluate(predicate, table))["c0"].to_pylist()


class Counting(io.BytesIO):
    """A distant file that counts its requests."""

    requests = 0

    def read(self, size=-1):
        self.requests += 1
        return super().read(size)

    def readinto(self, buffer):
        self.requests += 1
        return super().readinto(buffer)


def test_small_row_groups_of_remote_files_are_fetched_together(monkeypatch):
    fields, _, data = grouped()
    fields = [f for f in fields if f.name != "c6"]  # which holds NaN
    whole = read(data, fields)

    def fetched():
        file = Counting(data.to_pybytes())
        batches = list(PARQUET.read(pa.PythonFile(file, "r"), ReadRequest(fields, 1000)))
        assert pa.Table.from_batches(batches).equals(whole)
        return file.requests

    together = fetched()
    monkeypatch.setattr(parquet, "_REMOTE_RUN", 1)
    groups = pq.read_metadata(pa.BufferReader(data)).num_row_groups
    assert groups > 5
    assert fetched() >= together + groups - 1


def test_runs_of_row_groups_are_bounded():
    assert parquet.runs_of([1, 2, 5, 6, 7], [4, 6, 1, 30, 2], 10) == [[1, 2], [5], [6], [7]]
    assert parquet.runs_of([], [], 10) == []


comparisons = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])


@given(st.integers(-50, 1050), comparisons, st.sampled_from(["c0", "c3", "c4", "c6"]))
def test_skipping_loses_no_row(number, op, column):
    fields, table, data = grouped()
    literal = f"TIMESTAMP '1970-01-01 00:00:{number / 1000 % 60:06.3f}'" if column == "c3" else number
    predicate = bind(parse_predicate(f"{column} {op} {literal}"), fields)
    found = read(data, fields, predicate=predicate)
    matches = found.filter(evaluate(predicate, found))["c0"]
    assert matches.to_pylist() == table.filter(evaluate(predicate, table))["c0"].to_pylist()


@pytest.mark.parametrize("columns", [None, ["c6", "c0"], []])
def test_small_files_are_read_at_once_with_equal_results(monkeypatch, columns):
    """One look at the footer, no threads, no probe: what the way of large files gives."""
    fields, table, data = grouped()
    requested = fields if columns is None else [f for name in columns for f in fields if f.name == name]
    opened, decoded = [], []

    class Opened(pq.ParquetFile):
        def __init__(self, *arguments, **how):
            opened.append(how["buffer_size"])
            super().__init__(*arguments, **how)

        def iter_batches(self, *arguments, **how):
            decoded.append(how["use_threads"])
            return super().iter_batches(*arguments, **how)

    monkeypatch.setattr(pq, "ParquetFile", Opened)
    quick = read(data, requested, batch_bytes=1 << 25)
    assert opened == [0]
    assert not any(decoded)
    monkeypatch.setattr(parquet, "_WORTH_THREADS", 0)
    monkeypatch.setattr(parquet, "_BIG_ROW_GROUP", 0)
    general = read(data, requested, batch_bytes=1 << 25)
    assert str(quick.to_pydict()) == str(general.to_pydict())  # NaN equals nothing
    assert quick.num_rows == table.num_rows
    if columns != []:
        assert opened[-1] > 0
        assert decoded[-1]
        assert str(quick.to_pydict()) == str((table.select(columns) if columns else table).to_pydict())
