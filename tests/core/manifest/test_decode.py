import io
from dataclasses import replace

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import avro_columns
from paimon_core.format.avro_container import Container, ContainerWriter
from paimon_core.manifest import decode, vectorized_decode
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.decode import UnknownFieldsError, decode_entries
from paimon_core.manifest.entry import DELETE
from paimon_core.manifest.serializers import DATA_FILE_SCHEMA, ENTRY, MANIFEST_SCHEMA, plain
from paimon_core.manifest.vectorized_decode import decode_entry_blocks
from paimon_core.row.binary_row import serialize
from tests.support.draws import draws
from tests.support.manifests import DECODERS, entries, entry


def container(rows, per_block=2, schema=MANIFEST_SCHEMA, codec="zstandard"):
    sink = io.BytesIO()
    writer = ContainerWriter(sink, schema, codec, 1)
    for i in range(0, len(rows), per_block):
        writer.write(rows[i : i + per_block])
    return sink.getvalue()


def side_by_side(data, *, with_stats=True):
    found = Container(io.BytesIO(data))
    return decode_entry_blocks(plain(found.header.schema), list(found.blocks()), with_stats=with_stats)


def bare(entry):
    return replace(entry, file=entry.file.without_stats())


@draws(40)
@given(st.lists(entries, min_size=1, max_size=6), st.integers(1, 4))
def test_both_decoders_return_the_written_entries(given_entries, per_block):
    data = container([ENTRY.to_record(e) for e in given_entries], per_block)
    assert decode_entries(data, "m") == given_entries
    assert side_by_side(data) == given_entries
    assert decode_entries(data, "m", with_stats=False) == list(map(bare, given_entries))
    assert side_by_side(data, with_stats=False) == list(map(bare, given_entries))


def test_many_blocks_are_decoded_together(monkeypatch):
    given_entries = [entry(f"data-{i}-0.parquet", high=i * 100, p=i % 3, creation_time=i << 40) for i in range(1_200)]
    data = container([ENTRY.to_record(e) for e in given_entries], 2)
    assert len(given_entries) > 2 * decode._BLOCKS_AT_ONCE
    monkeypatch.setattr(decode, "_one_by_one", None)  # would fail
    assert decode_entries(data, "m") == given_entries


@draws(40)
@given(st.lists(entries, min_size=1, max_size=6), st.integers(1, 3), st.sets(st.integers(0, 5)), st.booleans())
def test_entries_of_some_buckets_are_found_among_all(given_entries, per_block, chosen, whole):
    data = container([ENTRY.to_record(e) for e in given_entries], per_block)
    expected = [given_entries[i % len(given_entries)].bucket_ref for i in chosen]
    partitions = frozenset(partition for partition, _ in expected)
    only = BucketFilter(partitions) if whole else BucketFilter.for_buckets(expected)
    among = [e for e in given_entries if (e.partition in partitions if whole else e.bucket_ref in expected)]
    assert decode_entries(data, "m", only=only) == among
    found = Container(io.BytesIO(data))
    schema, blocks = plain(found.header.schema), list(found.blocks())
    assert decode_entry_blocks(schema, blocks, with_stats=True, only=only) == among
    patterns = only.byte_patterns(schema)
    held = {i // per_block for i, e in enumerate(given_entries) if only.holds(e.partition, e.bucket)}
    assert held <= {i for i, (_, block) in enumerate(blocks) if any(mark in block for mark in patterns)}


def test_blocks_without_requested_entries_are_not_decoded(monkeypatch):
    given_entries = [entry(f"data-{i}-0.parquet", p=i // 100, bucket=i % 100 // 50) for i in range(600)]
    data = container([ENTRY.to_record(e) for e in given_entries], 10)
    decoded, decoder = [], decode.BlockDecoder.decode
    monkeypatch.setattr(decode, "_MIN_ENTRIES", 10**9)
    monkeypatch.setattr(decode.BlockDecoder, "decode", lambda *a: decoded.append(a[1]) or decoder(*a))
    at = given_entries[270].partition
    assert decode_entries(data, "m", only=BucketFilter.for_buckets([(at, 1)])) == given_entries[250:300]
    assert sum(decoded) == 50
    assert decode_entries(data, "m", only=BucketFilter(frozenset([at]))) == given_entries[200:300]
    assert sum(decoded) == 150


def test_buckets_are_found_if_field_order_differs():
    fields = {f["name"]: f for f in MANIFEST_SCHEMA["fields"]}
    order = ("_VERSION", "_KIND", "_BUCKET", "_PARTITION", "_TOTAL_BUCKETS", "_FILE")
    given_entries = [entry(str(i), p=i % 3, bucket=i % 2) for i in range(30)]
    data = container(
        [ENTRY.to_record(e) for e in given_entries], schema={**MANIFEST_SCHEMA, "fields": [fields[n] for n in order]}
    )
    only = BucketFilter.for_buckets([(given_entries[1].partition, 1)])
    assert decode_entries(data, "m", only=only) == given_entries[1::6]


@draws(25)
@given(st.lists(entries, min_size=1, max_size=3), st.integers(11, 21))
def test_files_of_older_versions_have_fewer_fields(given_entries, kept):
    old_file = {**DATA_FILE_SCHEMA, "fields": DATA_FILE_SCHEMA["fields"][: kept + 1]}
    names = {f["name"] for f in old_file["fields"]}
    schema = {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"][:-1], {"name": "_FILE", "type": old_file}]}
    rows = [ENTRY.to_record(e) for e in given_entries]
    for row in rows:
        row["_FILE"] = {k: v for k, v in row["_FILE"].items() if k in names}
    data = container(rows, schema=schema)
    later = {f["name"][1:].lower() for f in DATA_FILE_SCHEMA["fields"][kept + 1 :]}
    attributes = {"embedded_file_index": "embedded_index"}
    expected = [replace(e, file=replace(e.file, **{attributes.get(n, n): None for n in later})) for e in given_entries]
    assert decode_entries(data, "m", lossless=True) == expected
    assert side_by_side(data) == expected


def test_unknown_fields_are_ignored_but_not_rewritten():
    extra = {"name": "_NEWER", "type": ["null", {"type": "array", "items": ["null", "string"]}], "default": None}
    file = {**DATA_FILE_SCHEMA, "fields": [extra, *DATA_FILE_SCHEMA["fields"]]}
    schema = {**MANIFEST_SCHEMA, "fields": [*MANIFEST_SCHEMA["fields"][:-1], {"name": "_FILE", "type": file}]}
    rows = [ENTRY.to_record(entry(str(i))) for i in range(5)]
    for i, row in enumerate(rows):
        row["_FILE"] = {**row["_FILE"], "_NEWER": [None, ["a", None, "b"], []][i % 3]}
    data = container(rows, schema=schema)
    expected = [entry(str(i)) for i in range(5)]
    assert decode_entries(data, "m") == side_by_side(data) == expected
    with pytest.raises(UnknownFieldsError, match="_NEWER"):
        decode_entries(data, "m", lossless=True)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_fastavro_and_this_engine_read_each_others_files(codec):
    given_entries = [entry(str(i), creation_time=1_700_000_000_123, value_stats_cols=("a", "b")) for i in range(5)]
    rows = [ENTRY.to_record(e) for e in given_entries]
    ours = list(fastavro.reader(io.BytesIO(container(rows, codec=codec))))
    assert [r["_FILE"]["_CREATION_TIME"].timestamp() for r in ours] == [1_700_000_000.123] * 5
    theirs = io.BytesIO()
    fastavro.writer(theirs, MANIFEST_SCHEMA, rows, codec=codec, sync_interval=100)
    assert decode_entries(theirs.getvalue(), "m") == given_entries


def test_top_level_has_exactly_six_fields_strict_readers_want():
    kinds = ((f["name"], f["type"]) for f in MANIFEST_SCHEMA["fields"])
    assert [(name, kind if isinstance(kind, str) else kind["type"]) for name, kind in kinds] == [
        ("_VERSION", "int"),
        ("_KIND", "int"),
        ("_PARTITION", "bytes"),
        ("_BUCKET", "int"),
        ("_TOTAL_BUCKETS", "int"),
        ("_FILE", "record"),
    ]


@pytest.mark.parametrize("blocks", [1, 50])
def test_another_version_is_refused(blocks):
    rows = [{**ENTRY.to_record(entry("f")), "_VERSION": 3}] * blocks
    with pytest.raises(UnsupportedError, match="/x/m has version 3"):
        decode_entries(container(rows, 1), "/x/m")


def test_garbage_is_refused_with_file_name():
    data = container([ENTRY.to_record(entry(str(i))) for i in range(100)], 1, codec="null")
    other = container([{"a": 1}], schema={"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]})
    for bad in (b"", b"garbage", data[:-1], data[: len(data) // 2], other):
        with pytest.raises(CorruptedError, match="/x/m"):
            decode_entries(bad, "/x/m")


@given(st.integers(0, 2**31), st.integers(1, 255))
def test_both_decoders_treat_changed_byte_equally(at, change):
    given_entries = [entry(str(i), value_stats_cols=("a",)) for i in range(60)]
    data = bytearray(container([ENTRY.to_record(e) for e in given_entries], 2, codec="null"))
    start = len(container([], codec="null"))
    at = start + at % (len(data) - start)
    data[at] ^= change
    outcomes = []
    for limits in DECODERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode, "_MIN_ENTRIES", limits[0])
            patch.setattr(decode, "_MIN_BLOCKS", limits[1])
            try:
                outcomes.append(decode_entries(bytes(data), "m"))
            except (CorruptedError, UnsupportedError) as refusal:
                outcomes.append(str(refusal))
    assert outcomes == [outcomes[0]] * len(DECODERS)


@pytest.mark.parametrize("count", [1, 63, 64, 200])
@pytest.mark.parametrize("with_stats", [False, True])
def test_entries_of_few_blocks_are_decoded_at_once(monkeypatch, count, with_stats):
    given_entries = [entry(f"data-{i}", high=i, p=i % 3) for i in range(count)]
    data = container([ENTRY.to_record(e) for e in given_entries], 100)
    expected = [e if with_stats else replace(e, file=e.file.without_stats()) for e in given_entries]
    slowly, calls = decode._one_by_one, []
    monkeypatch.setattr(decode, "_one_by_one", lambda *a: calls.append(1) or slowly(*a))
    assert decode_entries(data, "m", with_stats=with_stats) == expected
    assert bool(calls) is (count < 64)


def test_few_blocks_are_not_decoded_side_by_side(monkeypatch):
    given_entries = [entry("x" * (i % 9) + str(i), p=i % 2 or None) for i in range(100)]
    given_entries[0] = replace(given_entries[0], kind=DELETE)
    monkeypatch.setattr(avro_columns, "_decode_in_steps", None)
    assert decode_entries(container([ENTRY.to_record(e) for e in given_entries], 50), "m") == given_entries


@pytest.mark.parametrize(
    ("change", "at_once"),
    [
        ({}, True),
        ({"kind": DELETE}, True),
        ({"partition": serialize((1, 2), pa.schema([("a", pa.int32()), ("b", pa.int32())]))}, True),
        ({"min_key": b"\4\0\x28\0\0\0\1"}, False),  # like the first bytes of an entry
        ({"file_name": "a longer name"}, True),
    ],
)
def test_guess_of_starts_is_checked(monkeypatch, change, at_once):
    given_entries = [entry(f"data-{i}", high=10 << i) for i in range(40)]
    file = {name: value for name, value in change.items() if name in DataFileMeta.__slots__}
    others = {name: value for name, value in change.items() if name not in file}
    for i in range(0, 40, 8):  # the first entry of every second block
        given_entries[i] = replace(given_entries[i], file=replace(given_entries[i].file, **file), **others)
    in_steps, calls = avro_columns._decode_in_steps, []
    monkeypatch.setattr(avro_columns, "_decode_in_steps", lambda *a: calls.append(1) or in_steps(*a))
    assert side_by_side(container([ENTRY.to_record(e) for e in given_entries], 4)) == given_entries
    assert bool(calls) is not at_once


@draws(40)
@given(st.lists(entries, min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 20))
def test_any_guess_of_starts_returns_the_written_entries(given_entries, per_block, head):
    data = container([ENTRY.to_record(e) for e in given_entries], per_block)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorized_decode, "_HEAD", head)
        patch.setattr(avro_columns, "_IN_CACHE", 2)
        assert side_by_side(data) == given_entries
