"""Decoders with a filter return the same entries as a filter of all decoded entries, in each block layout."""

import gc
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.format.avro_container import ContainerWriter
from paimon_core.lazy import collection_paused
from paimon_core.manifest import decode
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.decode import decode_entries
from paimon_core.manifest.serializers import ENTRY, MANIFEST_SCHEMA
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.scan.entries import PartitionFilter
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from tests.support.draws import draws
from tests.support.manifests import DECODERS, PARTITION, entry


def encoded(rows, per_block=4):
    sink = io.BytesIO()
    writer = ContainerWriter(sink, MANIFEST_SCHEMA, "zstandard", 1)
    for i in range(0, len(rows), per_block):
        writer.write([ENTRY.to_record(row) for row in rows[i : i + per_block]])
    return sink.getvalue()


def partition_filter(text):
    field = DataField(0, "p", parse_type("INT"))
    return PartitionFilter(bind(parse_predicate(text), [field]), PARTITION)


def rows_of(partitions, **more):
    return [entry(f"data-{i:06d}.parquet", p=p, bucket=i % 3, **more) for i, p in enumerate(partitions)]


@draws(20)
@given(
    st.lists(st.tuples(st.sampled_from([None, -1, 0, 1, 2, 3, 255, 256, 70_000]), st.integers(1, 40)), max_size=12),
    st.sampled_from(["p = 2", "p in (0, 70000)", "p > 1", "p is null", "p = 1 or p is null", "p != 255", "p <=> 3"]),
    st.integers(1, 9),
)
def test_partition_filter_in_decoder_equals_filter_of_all_entries(runs, text, per_block):
    rows = rows_of([p for p, count in runs for _ in range(count)])
    data, only = encoded(rows, per_block), partition_filter(text)
    matching = only.matching({row.partition for row in rows})
    expected = [row for row in rows if row.partition in matching]
    for limits in DECODERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode, "_MIN_ENTRIES", limits[0])
            patch.setattr(decode, "_MIN_BLOCKS", limits[1])
            assert decode_entries(data, "m", only=partition_filter(text)) == expected


def test_pinned_partitions_skip_blocks(monkeypatch):
    rows = rows_of([i // 100 for i in range(600)])
    data, blocks = encoded(rows, 10), []
    entries_of = decode._entries
    monkeypatch.setattr(decode, "_entries", lambda *a: blocks.extend(a[1]) or entries_of(*a))
    assert decode_entries(data, "m", only=partition_filter("p in (2, 3)")) == rows[200:400]
    assert len(blocks) == 20
    blocks.clear()
    assert decode_entries(data, "m", only=partition_filter("p >= 2 and p < 4")) == rows[200:400]
    assert len(blocks) == 60


@pytest.mark.parametrize("count", [0, 1, 63, 64, 700])
def test_file_names_and_keys_of_any_width_are_decoded(count):
    same = [entry(f"data-{i:06d}", low=i, high=i, p=i // 50) for i in range(count)]
    mixed = [entry(("ä" if i % 7 == 3 else "x") * (i % 5 + 1) + str(i), p=None if i % 2 else i) for i in range(count)]
    line_ends = [entry(f"a\n{i:04d}") for i in range(count)]
    for rows in (same, mixed, line_ends):
        assert decode_entries(encoded(rows), "m") == rows
        some = [row for row in rows if row.bucket_ref == rows[0].bucket_ref]
        if some:
            assert decode_entries(encoded(rows), "m", only=BucketFilter.for_buckets([some[0].bucket_ref])) == some


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 14, 15, 25, 34])
def test_batches_hold_all_blocks_in_order(monkeypatch, count):
    monkeypatch.setattr(decode, "_MIN_BLOCKS", 5)
    blocks = [(i, b"") for i in range(count)]
    batches = list(decode._batches(iter(blocks), 10))
    assert [block for batch in batches for block in batch] == blocks
    assert all(5 <= len(batch) < 15 for batch in batches) or count < 5


def test_collector_is_enabled_after_the_last_pause():
    assert gc.isenabled()
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(KeyError), collection_paused():
            raise KeyError
        assert not gc.isenabled()
    finally:
        gc.enable()
