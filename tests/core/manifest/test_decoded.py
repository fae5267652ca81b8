"""Decoded metadata: the same entries as decoded again, never more than allowed, and no damage goes unseen."""

from pathlib import Path

import pytest

from paimon_core.errors import CorruptedError
from paimon_core.manifest import manifests
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.decoded import DecodedFiles
from paimon_core.manifest.stats import SimpleStats
from tests.support.manifests import entry
from tests.support.tables import append_table, keyed_table, orders


def entries(table):
    snapshot = table.snapshot()
    store = table.store
    metas = store.manifests.read_list(snapshot.delta_manifest_list)
    return [store.manifests.read(m.file_name, m.file_size) for m in metas]


def test_manifest_is_decoded_once(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    first = entries(table)
    for name in ("decode_entries", "decode_records"):  # they must not be called
        monkeypatch.setattr(manifests, name, None)
    assert entries(table) == first
    again = entries(table)
    again[0].clear()
    assert entries(table) == first


def test_small_manifest_is_decoded_once_for_all_buckets(tmp_path, monkeypatch):
    table = keyed_table(tmp_path / "t", bucket="8", **{"write-only": "true"})
    table.write(orders(*((i, "a", 1) for i in range(100))))
    store, [meta] = table.store, table.store.manifests.read_list(table.snapshot().delta_manifest_list)
    everything = store.manifests.read(meta.file_name, meta.file_size)
    assert len(everything) == 8
    filters = [BucketFilter.for_buckets([one.bucket_ref]) for one in everything]
    monkeypatch.setattr(manifests, "_SMALL", 0)
    expected = [store.manifests.read(meta.file_name, meta.file_size, only=only) for only in filters]
    monkeypatch.undo()
    monkeypatch.setattr(manifests, "decode_entries", None)  # it must not be called
    assert [store.manifests.read(meta.file_name, meta.file_size, only=only) for only in filters] == expected
    assert expected == [[one] for one in everything]


def test_damaged_file_is_decoded_again(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    entries(table)
    [path] = Path(table.path).glob("manifest/manifest-????????-*")
    data = bytearray(path.read_bytes())
    data[-30] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(CorruptedError):
        entries(table)


def test_entries_held_are_bounded():
    held = DecodedFiles(most=5)
    requested = []

    def get(name, count, with_stats=False):
        def decode():
            requested.append(name)
            return [name] * count

        return held.get(name.encode(), with_stats, decode)

    for name, count in (("a", 2), ("b", 2), ("a", 2), ("c", 2), ("a", 2), ("b", 2), ("d", 6), ("d", 6), ("c", 2)):
        assert get(name, count) == [name] * count
    assert requested == ["a", "b", "c", "b", "d", "d", "c"]  # c left out b, and b left out c; d is too large
    get("c", 2, True)
    assert requested[-1] == "c"


def test_entries_with_long_statistics_count_more():
    """The statistics of an entry of a table with 2,000 columns have 50 kilobytes."""
    held, long = manifests._DECODED, SimpleStats(bytes(25_000), bytes(25_000), (0,) * 2_000)
    few = entry("f", stats=long)
    assert held._kilobytes(entry("f")) == 1
    assert held._kilobytes(few) == 1 + 132_000 // 1024
    bounded = DecodedFiles(most=5 * 129, kilobytes=held._kilobytes)
    decoded = []
    for name in (b"a", b"b", b"a", b"c", b"a"):
        bounded.get(name, True, lambda name=name: decoded.append(name) or [few] * 2)
    assert decoded == [b"a", b"b", b"c"]
    bounded.get(b"b", True, lambda: decoded.append(b"b") or [few] * 2)
    bounded.get(b"d", True, lambda: decoded.append(b"d") or [few] * 6)
    bounded.get(b"d", True, lambda: decoded.append(b"d") or [few] * 6)
    assert decoded == [b"a", b"b", b"c", b"b", b"d", b"d"]
