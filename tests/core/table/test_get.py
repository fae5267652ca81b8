"""Rows by key: equal to the rows of a filter, for every kind of table, with few files opened."""

import random
import threading
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import paimon_core
from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.read import lookup
from paimon_core.read.key_cache import KeyCache
from paimon_core.scan.entries import live_entries
from tests.support.tables import keyed_table, orders

FIELDS = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("t", pa.string(), nullable=False),
        pa.field("p", pa.int32(), nullable=False),
        ("v", pa.int32()),
        ("w", pa.string()),
    ]
)
TABLES = {
    "deduplicate": {},
    "sequence": {"sequence.field": "v"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
    "ignore-delete": {"ignore-delete": "true"},
    "orc": {"file.format": "orc"},
    "bloom-filter": {"file-index.bloom-filter.columns": "k,t", "file-index.in-manifest-threshold": "1 b",
                     "file-index.bloom-filter.k.items": "100", "file-index.bloom-filter.t.items": "100"},
    "lookup": {"changelog-producer": "lookup"},
    "deletion-vectors": {"deletion-vectors.enabled": "true"},
    "dynamic": {"bucket": "-1"},
}  # fmt: skip

WIDELY = ("deduplicate", "bloom-filter", "deletion-vectors", "dynamic")


def made(tmp_path, options, keys, partitions=()):
    schema = paimon_core.Schema(FIELDS, keys, partitions, {"bucket": "2", **options})
    return paimon_core.Table.create(str(tmp_path / "t"), schema)


def rows(rng, count):
    keys = rng.sample(range(80), count)
    return pa.table(
        {
            "k": keys,
            "t": [f"t{k % 3}" for k in keys],
            "p": [k % 2 for k in keys],
            "v": [rng.randrange(50) for _ in keys],
            "w": [rng.choice("abc") for _ in keys],
        },
        FIELDS,
    )


def filled(table, seed, turns=6, deletes=True):
    rng = random.Random(seed)
    for turn in range(turns):
        batch = rows(rng, 25)
        kinds = [rng.choice(["+I", "+I", "-D"]) for _ in range(25)] if deletes and turn else None
        table.write(batch, kinds)
        if turn == 3:
            table.compact(full=True)
    return rng


@pytest.mark.parametrize(
    ("name", "layout"),
    [*((name, "one") for name in TABLES), *((n, layout) for n in WIDELY for layout in ("several", "partitioned"))],
)
@pytest.mark.parametrize("small", [True, False], ids=["whole", "keys-first"])
@pytest.mark.cases(8)
def test_rows_equal_rows_of_read(tmp_path, monkeypatch, name, layout, small):
    if not small:
        monkeypatch.setattr(lookup, "_SMALL_FILE", 0)
    options = TABLES[name]
    keys, partitions = {"one": (("k",), ()), "several": (("k", "t"), ()), "partitioned": (("p", "k"), ("p",))}[layout]
    if options.get("bucket") == "-1" and layout == "partitioned":
        options = {**options, "dynamic-bucket.target-row-num": "10"}
    table = made(tmp_path, options, keys, partitions)
    deletes = not {"partial-update", "first-row", "aggregation"} & {*options.values()}
    rng = filled(table, f"{options}{layout}", deletes=deletes)
    expected = {tuple(row[k] for k in keys): row for row in table.to_arrow().to_pylist()}
    requested = [
        tuple({"k": k, "t": f"t{k % 3}", "p": k % 2}[name] for name in keys) for k in rng.choices(range(90), k=60)
    ]
    actual = table.get([dict(zip(keys, key, strict=True)) for key in requested])
    assert actual.schema.names == FIELDS.names
    assert actual.to_pylist() == [expected[key] for key in requested if key in expected]
    for key in requested[:5]:
        assert table.get(dict(zip(keys, key, strict=True))) == expected.get(key)


def test_key_of_another_bucket_or_partition_is_not_found(tmp_path):
    table = made(tmp_path, {}, ("p", "k"), ("p",))
    table.write(rows(random.Random(1), 20))
    known = table.to_arrow().to_pylist()[0]
    assert table.get({"p": known["p"], "k": known["k"]}) == known
    assert table.get({"p": 1 - known["p"], "k": known["k"]}) is None
    assert table.get({"p": 77, "k": known["k"]}) is None


def test_only_files_whose_range_holds_key_are_opened_and_newest_first(tmp_path):
    table = made(tmp_path, {"bucket": "1", "write-only": "true"}, ("k",))
    for low in (0, 100, 0):
        table.write(
            pa.table({"k": [low, low + 50], "t": ["a", "b"], "p": [0, 0], "v": [low, 1], "w": [None, None]}, FIELDS)
        )
    entries = sorted(live_entries(table.store, table.snapshot()).live, key=lambda e: e.file.min_sequence_number)
    for entry in (entries[0], entries[1]):
        table.store.io.delete(table.store.file_path(entry.bucket_ref, entry.file))
    assert table.get({"k": 50})["v"] == 1
    with pytest.raises(CorruptedError, match="is missing"):
        table.get({"k": 150})


def test_decoded_keys_are_cached_and_new_snapshots_are_read(tmp_path):
    table = made(tmp_path, {"bucket": "1"}, ("k",))
    table.write(rows(random.Random(1), 30))
    known = table.to_arrow().to_pylist()[0]
    assert table.get({"k": known["k"]}) == known
    assert table._lookup._cache.size > 0
    table.write(pa.table({"k": [known["k"]], "t": ["x"], "p": [0], "v": [-1], "w": [None]}, FIELDS))
    assert table.get({"k": known["k"]})["v"] == -1
    assert table.get({"k": known["k"]}, columns=["w", "v"]) == {"w": None, "v": -1}


def stretches(tmp_path, **options):
    """A table of one bucket with two files that share no key."""
    table = made(tmp_path, {"bucket": "1", "write-only": "true", **options}, ["k"])
    for first in (0, 100):
        keys = list(range(first, first + 50))
        table.write(pa.table({"k": keys, "t": ["t"] * 50, "p": [0] * 50, "v": keys, "w": ["w"] * 50}, FIELDS))
    return table


def test_files_of_one_bucket_that_share_no_key_are_read_side_by_side(tmp_path, monkeypatch):
    table, both, plain = stretches(tmp_path), threading.Barrier(2), lookup.read_file

    def meeting(*args):
        both.wait(timeout=30)  # broken where one file is read after the other
        return plain(*args)

    monkeypatch.setattr(lookup, "read_file", meeting)
    assert table.get([{"k": 101}, {"k": 1}])["v"].to_pylist() == [101, 1]


@pytest.mark.parametrize(("bound", "again"), [("1 mb", 0), ("100 b", 2)])
def test_small_files_are_kept_whole_within_bound(tmp_path, monkeypatch, bound, again):
    table = stretches(tmp_path, **{"lookup.cache-max-memory-size": bound})
    read, plain = [], lookup.read_file
    monkeypatch.setattr(lookup, "read_file", lambda *args: read.append(args) or plain(*args))
    expected = [{"k": k} for k in (101, 1, 60)]
    first = table.get(expected)
    assert len(read) == 2
    assert table.get(expected) == first
    assert table.get([{"k": 2}])["v"].to_pylist() == [2]
    assert len(read) == 2 + again + again // 2
    assert table.get(expected, columns=["w"]).to_pylist() == [{"w": "w"}] * 2


def test_oldest_tables_leave_full_cache():
    cache = KeyCache(100)
    for name in "abc":
        cache.put(name, pa.table({"k": pa.array(range(6), pa.int64())}))
    assert [cache.get(n) is not None for n in "abc"] == [False, True, True]
    cache.put("large", pa.table({"k": pa.array(range(600), pa.int64())}))
    assert cache.get("large") is None
    assert cache.size <= 100


def test_keys_of_every_type(tmp_path):
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901)
    values = {"d": date(2024, 1, 2), "m": Decimal("1.50"), "ts": moment, "b": b"\x00\xff", "o": True, "s": "é"}
    kinds = [pa.date32(), pa.decimal128(20, 2), pa.timestamp("us"), pa.binary(), pa.bool_(), pa.string()]
    fields = [pa.field(n, t, nullable=False) for n, t in zip(values, kinds, strict=True)]
    schema = paimon_core.Schema(pa.schema([*fields, ("v", pa.int32())]), tuple(values), options={"bucket": "3"})
    table = paimon_core.Table.create(str(tmp_path / "t"), schema)
    other = {**values, "s": "z"}
    table.write(pa.Table.from_pylist([{**values, "v": 1}, {**other, "v": 2}], pa.schema([*fields, ("v", pa.int32())])))
    assert table.get(values) == {**values, "v": 1}
    assert table.get([other, {**values, "o": False}, values])["v"].to_pylist() == [2, 1]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"t": "a"}, "a key consists of k"),
        ({"k": 1, "t": "a"}, "a key consists of k"),
        ({"k": "x"}, "'k' is BIGINT"),
        ({"k": None}, "holds NULL"),
        (pa.table({"z": [1]}), "a key consists of k"),
    ],
)
def test_wrong_keys_are_refused(tmp_path, key, message):
    table = made(tmp_path, {}, ("k",))
    with pytest.raises(InvalidInputError, match=message):
        table.get(key)


def test_tables_without_keys_and_without_rows(tmp_path):
    table = made(tmp_path, {}, ("k",))
    assert table.get({"k": 1}) is None
    assert table.get(pa.table({"k": pa.array([1, 2], pa.int32())})).num_rows == 0
    assert table.get([]).num_rows == 0
    append = paimon_core.Table.create(str(tmp_path / "a"), paimon_core.Schema(FIELDS))
    with pytest.raises(InvalidInputError, match="primary key"):
        append.get({"k": 1})


@pytest.mark.parametrize("count", [1, lookup._FEW, lookup._FEW + 1, 300])
def test_few_rows_and_many_of_files_that_delete_and_of_others(tmp_path, count):
    """Of a file that deletes nothing the kinds of its rows are not read; a few rows are taken in another way."""
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    table.write(orders(*((i, f"old {i}", i) for i in range(200))))
    table.write(orders(*((i, None, i) for i in range(100, 120))), ["-D"] * 10 + ["+U"] * 10)
    table.write(orders(*((i, "new", None) for i in range(180, 300))))
    drawn = random.Random(count).sample(range(300), count)
    for requested in (drawn, drawn):  # decoded, then kept
        rows = {row["id"]: row for row in table.to_arrow().to_pylist()}
        assert table.get([{"id": i} for i in requested]).to_pylist() == [rows[i] for i in requested if i in rows]
