"""Lookups that read the metadata of their partitions only find the same rows as lookups that read all metadata."""

import datetime as dt

import pyarrow as pa
import pytest

from paimon_core import Schema, Table
from paimon_core.read import lookup, lookup_buckets

COLUMNS = pa.schema(
    [
        pa.field("day", pa.date32(), nullable=False),
        pa.field("shop", pa.string(), nullable=False),
        pa.field("k", pa.int64(), nullable=False),
        ("v", pa.string()),
    ]
)
DAYS = [dt.date(2024, 1, day) for day in range(1, 7)]
SHOPS = ["", "north", "a shop with a long name"]


def keys_of(table):
    return [{"day": d, "shop": s, "k": k} for d in DAYS for s in (*SHOPS, "none") for k in (0, 1, 2, 9)]


@pytest.fixture(scope="module", params=[["day"], ["day", "shop"], ["shop"], []])
def table(request, tmp_path_factory):
    schema = Schema(
        COLUMNS,
        partition_keys=request.param,
        primary_keys=["day", "shop", "k"],
        options={"bucket": "2", "write-only": "true"},
    )
    table = Table.create(str(tmp_path_factory.mktemp("lookups") / "t"), schema)
    for turn in range(3):
        rows = [(d, s, k, f"{d} {s} {k} {turn}") for d in DAYS[turn:] for s in SHOPS for k in range(turn, 3)]
        table.write(
            pa.table(
                [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), COLUMNS, strict=True)], schema=COLUMNS
            )
        )
    table.delete("k = 1 and day = '2024-01-04'")
    return table


@pytest.mark.parametrize("most_loads", [0, 2, 100])
@pytest.mark.cases(1)
def test_partitions_read_one_by_one_have_same_rows(table, monkeypatch, most_loads):
    keys = keys_of(table)
    expected = [table.get(key) for key in keys]
    assert sum(row is not None for row in expected) > len(DAYS) * len(SHOPS)
    monkeypatch.setattr(lookup_buckets, "_FEW_FILES", -1)
    monkeypatch.setattr(lookup_buckets, "_MOST_LOADS", most_loads)
    large = Table.open(table.path)
    assert [large.get(key) for key in keys] == expected
    at_once = Table.open(table.path)
    assert at_once.get(keys).to_pylist() == [row for row in expected if row is not None]
    assert at_once.get(keys[:7]).to_pylist() == [row for row in expected[:7] if row is not None]


def test_large_table_reads_partitions_of_keys(tmp_path, monkeypatch):
    schema = Schema(COLUMNS, partition_keys=["day"], primary_keys=["day", "shop", "k"], options={"bucket": "1"})
    table = Table.create(str(tmp_path / "t"), schema)
    for day in DAYS:
        table.write(pa.table([[day], ["north"], [1], ["v"]], schema=COLUMNS))
    monkeypatch.setattr(lookup_buckets, "_FEW_FILES", 1)
    buckets = lookup_buckets.LookupBuckets(table.scan())
    keys = lookup.key_table(table.schema, [{"day": day, "shop": "x", "k": 1} for day in DAYS[:2]])
    assert len(buckets.of_keys(keys.slice(0, 1))) == 1
    assert len(buckets.of_keys(keys)) == 2
    assert len(buckets.of_keys(keys.slice(0, 0))) == 2
