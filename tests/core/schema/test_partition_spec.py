"""Every partition that can be written has a text that names it, and only it."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.inspect.advice.remedies import partition_of
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.schema.partition_spec import PartitionText, partition_spec, partition_specs, partition_values
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema, assign_ids
from paimon_core.types.datatype import NO_ID, DataField
from paimon_core.types.parse import parse_type

UTC = dt.timezone.utc
VALUES = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, 0, None],
    "BIGINT": [-(2**63), 2**63 - 1, None],
    "FLOAT": [0.0, -0.0, 0.1, 1e30, 1e-40, 3.4028234663852886e38, math.inf, -math.inf, math.nan, None],
    "DOUBLE": [0.0, -0.0, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan, 1e7, None],
    "DECIMAL(10, 2)": [Decimal("1.24"), Decimal("-0.01"), Decimal("0.00"), None],
    "STRING": [
        "null", "NULL", "", " ", " a ", "a,b", "a;b", "a=b", "a/b", "it's", "'quoted'", "''", "`", "X'00'", "é%20",
        "__DEFAULT_PARTITION__", "line\nbreak", None,
    ],
    "BYTES": [b"", b"\x00\xff", b"null", b"a,b", None],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), None],
    "TIME(3)": [dt.time(0), dt.time(23, 59, 59, 999000), None],
    "TIMESTAMP(3)": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999000), None],
    "TIMESTAMP(6)": [dt.datetime(1, 1, 1, 0, 0, 0, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [
        dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), None,
    ],
}  # fmt: skip


def table_of(path, kind, values):
    columns = {"id": "INT", "P p": kind}
    fields = assign_ids([DataField(NO_ID, name, parse_type(text)) for name, text in columns.items()], 0)[0]
    options = {"bucket": "-1", "partition.legacy-name": "false"}
    table = Table.create(str(path), Schema(fields, [], ["P p"], options))
    kinds = arrow_schema(table.schema.fields).types
    table.write(pa.table([pa.array(range(len(values)), kinds[0]), pa.array(values, kinds[1])], names=["id", "P p"]))
    return table


def nanos(path):
    """A table partitioned by TIMESTAMP(9), for which Python has no values."""
    ticks = pa.array([1, 123456789, -1, None], pa.int64()).view(pa.timestamp("ns"))
    return table_of(path, "TIMESTAMP(9)", ticks)


def live(table):
    snapshot = table.snapshot()
    return sorted({entry.partition for entry in live_entries(table.store, snapshot, with_stats=False).live})


def check_each_is_dropped_alone(table):
    partitions = live(table)
    remaining = table.to_arrow().num_rows
    assert len(partitions) == remaining
    for number, partition in enumerate(partitions):
        where = partitions_predicate(table.store, {partition})
        assert [e.partition for e in live_entries(table.store, table.snapshot(), partition=where).live] == [partition]
        text = partition_of(table.store, partition).spec
        values = partition_values(table.schema, partition_spec(text), "the text", table.path)
        assert (
            values == partition_values(table.schema, partition_specs(f"{text};")[0], "the text", table.path)
            or "NaN" in text
        )
        table.drop_partitions([values])
        assert live(table) == partitions[number + 1 :], text
        assert table.to_arrow().num_rows == len(partitions) - number - 1


@pytest.mark.parametrize("kind", VALUES)
def test_each_partition_has_text_that_drops_it_alone(tmp_path, kind):
    check_each_is_dropped_alone(table_of(tmp_path / "t", kind, VALUES[kind]))


def test_partitions_by_nanoseconds(tmp_path):
    check_each_is_dropped_alone(nanos(tmp_path / "t"))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("FLOAT", "p=0.1", 0.10000000149011612),
        ("DOUBLE", "p=inf", math.inf),
        ("DOUBLE", "p = -Infinity ", -math.inf),
        ("DOUBLE", "p='1.0E300'", 1e300),
        ("STRING", "P=a b", "a b"),
        ("STRING", "`p`=' a '", " a "),
        ("STRING", "p=it's", "it's"),
        ("STRING", "p=", ""),
        ("STRING", "p=__DEFAULT_PARTITION__", None),
        ("STRING", "p='__DEFAULT_PARTITION__'", "__DEFAULT_PARTITION__"),
        ("STRING", "p='null'", "null"),
        ("INT", "p=null", None),
        ("INT", "p='7'", 7),
        ("BYTES", "p=X'00ff'", b"\x00\xff"),
        ("DATE", "p=2024-1-2", dt.date(2024, 1, 2)),
        ("DATE", "p=19723", dt.date(2024, 1, 1)),
        ("TIME(3)", "p=3723004", dt.time(1, 2, 3, 4000)),
        ("TIMESTAMP(3)", "p=2024-01-02 03:04:05.120000", dt.datetime(2024, 1, 2, 3, 4, 5, 120000)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "p=2024-01-02 03:00:00+02:00", dt.datetime(2024, 1, 2, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_texts_and_their_values(tmp_path, kind, text, value):
    schema = Table.create(str(tmp_path / "t"), schema_of(kind)).schema
    assert partition_values(schema, partition_spec(text), "the text", "t") == {"p": value}


def schema_of(kind):
    fields = [DataField(0, "id", parse_type("INT")), DataField(1, "p", parse_type(kind))]
    return Schema(fields, [], ["p"], {"bucket": "-1", "partition.legacy-name": "false"})


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("STRING", "p=null"),
        ("STRING", "p=NULL"),
        ("FLOAT", "p=1e300"),
        ("FLOAT", "p=1e-50"),
        ("DOUBLE", "p=1e400"),
        ("DECIMAL(10, 2)", "p=1.239"),
        ("INT", "p=1.5"),
        ("INT", "p=''"),
        ("INT", "p=X'00'"),
        ("DATE", "p=2024-01-01 10:00:00"),
        ("TIMESTAMP(3)", "p=2024-01-01 00:00:00.1239"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "p=2024-01-01 00:00:00"),
    ],
)
def test_ambiguous_or_invalid_texts_are_refused(tmp_path, kind, text):
    schema = Table.create(str(tmp_path / "t"), schema_of(kind)).schema
    with pytest.raises(InvalidInputError, match="the text"):
        partition_values(schema, partition_spec(text), "the text", "t")


def test_forms_of_texts():
    several = partition_specs("a=1,b='x;y,''z';; a = 2 , `b``=`=;")
    assert several == [
        (PartitionText("a", "1"), PartitionText("b", "x;y,'z", quoted=True)),
        (PartitionText("a", "2"), PartitionText("b`=", "")),
    ]
    assert partition_spec("a=x;y") == (PartitionText("a", "x;y"),)
    assert partition_specs(" ; ") == []
    for wrong in ("", "a", "=1", "a=1,", "a=1,,b=2", "a='1", "a='1'2", "a=1,A=2"):
        with pytest.raises(ValueError, match=r"must be column=value|twice"):
            partition_spec(wrong)
