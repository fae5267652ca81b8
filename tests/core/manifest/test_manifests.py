import datetime
import io
import math
import threading
import time
from dataclasses import replace
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.manifest.entry import DELETE
from paimon_core.manifest.index_entry import DeletionRange, GlobalIndex, IndexManifestEntry
from paimon_core.manifest.partition_stats import partition_stats
from paimon_core.manifest.serializers import MANIFEST_FILE, MANIFEST_LIST_SCHEMA
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.row.binary_row import deserialize, serialize
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.manifests import PARTITION, entry, manifests


def test_manifest_is_described_by_its_list():
    m = manifests()
    written = [
        entry("a", p=3, bucket=2, level=1),
        entry("b", DELETE, p=None, bucket=0, level=5),
        entry("c", p=-1, bucket=7),
    ]
    (meta,) = m.write(written)
    assert meta.file_name == "manifest-u0-0"
    assert meta.file_size == len(m.io.read(m.path(meta.file_name)))
    assert (meta.num_added_files, meta.num_deleted_files, meta.schema_id) == (2, 1, 0)
    assert (meta.min_bucket, meta.max_bucket, meta.min_level, meta.max_level) == (0, 7, 0, 5)
    assert (meta.min_row_id, meta.max_row_id) == (None, None)
    assert deserialize(meta.partition_stats.min_values, PARTITION) == (-1,)
    assert deserialize(meta.partition_stats.max_values, PARTITION) == (3,)
    assert meta.partition_stats.null_counts == (1,)
    assert m.read(meta.file_name, meta.file_size) == written
    name, size = m.write_list([meta])
    assert (name, size) == ("manifest-list-u0-0", len(m.io.read(m.path("manifest-list-u0-0"))))
    assert m.read_list(name) == [meta]


class DistantIO(MemoryIO):
    """A store of high latency: a write ends when a number of writes have begun, and fails if the others are late."""

    def __init__(self, number):
        super().__init__()
        self.begun, self.failing = threading.Barrier(number, timeout=10), ""
        self.running = set()

    @property
    def high_latency(self):
        return True

    def write(self, path, data):
        self.begun.wait()
        self.running.add(path)
        try:
            if self.failing and self.failing in path:
                raise OSError(path)
            time.sleep(0.1 if self.failing else 0)  # another file is written after the error
            super().write(path, data)
        finally:
            self.running.discard(path)


def test_files_of_a_block_are_written_at_the_same_time():
    m = manifests(DistantIO(4))
    with m.together():
        metas = [*m.write([entry("a")]), *m.write([entry("b")])]
        lists = [m.write_list(metas)[0], m.write_list([])[0]]
    assert [e.file.file_name for meta in metas for e in m.read(meta.file_name, meta.file_size)] == ["a", "b"]
    assert [m.read_list(name) for name in lists] == [metas, []]
    m.io.begun = threading.Barrier(1)
    name, _ = m.write_list(metas)
    assert m.read_list(name) == metas


@pytest.mark.parametrize("number", [2, 7])
def test_error_of_one_file_in_a_block_is_raised_when_no_other_is_being_written(number):
    m = manifests(DistantIO(1))
    m.io.failing = "manifest-list-u0-0"

    def write_all():
        with m.together():
            for _ in range(number):
                m.write_list([])

    with pytest.raises(OSError, match="manifest-list-u0-0"):
        write_all()
    assert not m.io.running
    m.delete(f"manifest-list-u0-{n}" for n in range(number))
    assert m.io.files == {}


def test_file_that_is_being_written_is_deleted_after_it_is_complete():
    m = manifests(DistantIO(2))
    with m.together():
        name, _ = m.write_list([])
        kept, _ = m.write_list([])
        m.delete([name])
    assert list(m.io.files) == [m.path(kept)]


def test_row_ids_are_range_only_when_every_file_has_one():
    m = manifests()
    ids = [entry("a", first_row_id=100), entry("b", first_row_id=5)]
    assert [(x.min_row_id, x.max_row_id) for x in m.write(ids)] == [(5, 109)]
    assert [(x.min_row_id, x.max_row_id) for x in m.write([*ids, entry("c")])] == [(None, None)]


def test_manifests_roll_at_target_size():
    m = manifests(manifest_target_file_size="8 kb", manifest_compression="null")
    written = [entry(f"f{i}", p=i) for i in range(500)]
    metas = m.write(iter(written))
    assert len(metas) > 2
    assert all(meta.file_size >= 8 << 10 for meta in metas[:-1])
    assert [e for meta in metas for e in m.read(meta.file_name)] == written
    assert len({meta.file_name for meta in metas}) == len(metas)
    assert m.write([]) == []


def test_failed_write_leaves_nothing():
    inner = MemoryIO()
    for at in range(3):
        m = manifests(FaultyIO(inner, at=at), manifest_target_file_size="1 b")
        with pytest.raises(OSError):  # the fault of the test's own storage
            m.write(entry(f"f{i}") for i in range(500))
        assert not inner.files


def test_unpartitioned_tables_have_empty_partition_statistics():
    (meta,) = manifests(partition_schema=pa.schema([])).write([replace(entry("a"), partition=bytes(12))])
    assert meta.partition_stats == EMPTY_STATS


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        (pa.bool_(), [True, False], False, True),
        (pa.int64(), [5, -5], -5, 5),
        (pa.float64(), [1.5, -0.5], -0.5, 1.5),
        (pa.float64(), [1.5, math.nan], None, None),
        (pa.string(), ["b", "a" * 99], "a" * 99, "b"),
        (pa.binary(), [b"\xff", b"\x01"], b"\x01", b"\xff"),
        (pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-7.50")], Decimal("-7.50"), Decimal("1.25")),
        (pa.date32(), [3, -3], -3, 3),
        (pa.time32("ms"), [3, 1], 1, 3),
        (pa.timestamp("ms"), [3, -3], -3, 3),
        (pa.timestamp("ns"), [1_000_000_001, -3], -3, 1_000_000_001),
        (pa.timestamp("us", "UTC"), [3, -3], -3, 3),
        (pa.int32(), [None, None], None, None),
    ],
)
def test_partition_statistics_of_every_type(kind, values, low, high):
    schema = pa.schema([("p", kind)])
    stats = partition_stats({serialize((v,), schema): 2 for v in values}, schema)
    assert deserialize(stats.min_values, schema) == deserialize(serialize((low,), schema), schema)
    assert deserialize(stats.max_values, schema) == deserialize(serialize((high,), schema), schema)
    assert stats.null_counts == (2 * (values[0] is None),)


def test_deletions_lose_their_statistics_on_request():
    m = manifests(manifest_delete_file_drop_stats="true")
    (meta,) = m.write([entry("a", DELETE), entry("b")])
    gone, added = m.read(meta.file_name)
    assert gone.file.value_stats_cols == ()
    assert added == entry("b")


def test_index_manifests_keep_unknown_types():
    m = manifests()
    index = [
        IndexManifestEntry(0, b"p", 0, "HASH", "h", 4, 1),
        IndexManifestEntry(
            0, b"p", 1, "DELETION_VECTORS", "d", 9, 2, (DeletionRange("f", 1, 2), DeletionRange("g", 3, 4, 5)), "/x/d"
        ),
        IndexManifestEntry(0, b"", 0, "someday", "s", 1, 1, (), None, GlobalIndex(0, 9, 1, (2, 3), b"m", None)),
    ]
    name = m.write_index(index)
    assert name == "index-manifest-u0-0"
    assert m.read_index(name) == index


def test_lists_with_columns_of_others_are_read():
    m = manifests()
    (meta,) = m.write([entry("a")])
    record = {**MANIFEST_FILE.to_record(meta), "_TOTAL_BUCKETS": 4}
    extra = {"name": "_TOTAL_BUCKETS", "type": ["null", "int"], "default": None}
    old = [f for f in MANIFEST_LIST_SCHEMA["fields"] if f["name"][:4] not in ("_MIN", "_MAX")]
    data = io.BytesIO()
    fastavro.writer(data, {**MANIFEST_LIST_SCHEMA, "fields": [*old, extra]}, [record])
    m.io.write(m.path("list"), data.getvalue())
    unknown = {"min_bucket": None, "max_bucket": None, "min_level": None, "max_level": None}
    assert m.read_list("list") == [replace(meta, **unknown)]


def test_missing_cut_or_newer_manifests_are_refused_by_name():
    m = manifests()
    (meta,) = m.write([entry("a")])
    with pytest.raises(CorruptedError, match="manifest-nowhere-0 is missing"):
        m.read("manifest-nowhere-0")
    with pytest.raises(CorruptedError, match=f"{meta.file_name} has {meta.file_size} bytes"):
        m.read(meta.file_name, meta.file_size + 1)
    name, _ = m.write_list([meta])
    with pytest.raises(CorruptedError, match=name):
        m.read(name)
    with pytest.raises(UnsupportedError, match="version 1 only"):
        m.read_index(name)
    m.delete([name, "never-there"])
    with pytest.raises(CorruptedError, match="is missing"):
        m.read_list(name)


def test_timestamps_are_never_converted_between_zones(monkeypatch):
    m = manifests()
    wall = int(datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc).timestamp() * 1000) + 7
    (meta,) = m.write([entry("a", creation_time=wall)])
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert m.read(meta.file_name)[0].file.creation_time == wall
