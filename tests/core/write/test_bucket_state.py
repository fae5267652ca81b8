"""The state of buckets that a writer reads, and the number of files that it reads for it."""

import random

import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.row.binary_row import serialize
from paimon_core.scan.entries import live_entries
from paimon_core.schema.change import SetOption
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write import bucket_state
from paimon_core.write.bucket_state import Restore
from paimon_core.write.table_write import WriterRole
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import append_table, keyed_table, orders

ROOT = "memory://w/t"
COLUMNS = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.int32())]
)


def rows(p, *ids):
    return pa.table([pa.array([p] * len(ids), pa.int32()), pa.array(ids), pa.array(ids, pa.int32())], schema=COLUMNS)


def opened(io):
    schema = Schemas(io, ROOT).latest()
    return Table(FileStore(io, ROOT, schema))


def test_numbers_continue_per_bucket_and_other_partitions_are_not_read():
    io = MemoryIO()
    create_table(io, ROOT, Schema(COLUMNS, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "1"}))
    for p in range(8):
        opened(io).write(rows(p, 1, 2, 3))
    counting = FaultyIO(io)
    writer = opened(counting).writer()
    writer.write(rows(5, 9))
    (message,) = writer.prepare_commit()
    assert message.new_files[0].min_sequence_number == 3
    assert len(read_manifests(counting)) == 1

    writer.write(rows(6, 9))
    writer.write(rows(99, 9))
    first, second = sorted(writer.prepare_commit(), key=lambda m: -m.new_files[0].min_sequence_number)
    assert (first.new_files[0].min_sequence_number, second.new_files[0].min_sequence_number) == (3, 0)


def read_manifests(counting):
    reads = [path for verb, path in counting.log if verb == "read"]
    return [path for path in reads if "/manifest-" in path and "-list-" not in path]


def made(**options):
    io = MemoryIO()
    keys = {"primary_keys": ["p", "id"], "partition_keys": ["p"]}
    create_table(io, ROOT, Schema(COLUMNS, options={"write-only": "true", **options}, **keys))
    return io


def test_only_manifests_of_written_buckets_are_read_once():
    io = made(bucket="4")
    by_bucket = {}
    for key in range(20):
        snapshot = opened(io).write(rows(5, key))
        (split,) = (s for s in opened(io).scan(filter=f"id = {key}").plan().splits if s.files[-1].row_count)
        by_bucket.setdefault(split.bucket, []).append((key, snapshot.id))
    assert len(by_bucket) == 4
    counting = FaultyIO(io)
    with opened(counting).writer() as writer:
        writer.write(rows(5, by_bucket[2][0][0]))
        (message,) = writer.prepare_commit()
        assert (message.bucket, message.new_files[0].min_sequence_number) == (2, len(by_bucket[2]))
        assert len(read_manifests(counting)) == len(by_bucket[2])
    counting.log.clear()
    with opened(counting).writer() as writer:
        for bucket in (1, 3):  # the second batch meets another bucket
            writer.write(rows(5, by_bucket[bucket][0][0]))
            writer._route()
        writer.write(rows(5, *range(20)))
        actual = {m.bucket: m.new_files[0].max_sequence_number for m in writer.prepare_commit()}
        assert actual[0] == 2 * len(by_bucket[0]) - 1
        assert len(set(read_manifests(counting))) == len(read_manifests(counting)) == 20


def test_partition_with_other_bucket_count_is_refused_for_empty_bucket():
    io = made(bucket="1")
    opened(io).write(rows(5, 1))
    opened(io).write(rows(6, 1))
    opened(io).alter([SetOption("bucket", "8")])
    other = next(id for id in range(99) if bucket_written(io, id))
    with pytest.raises(InvalidInputError, match="p=5 has files written with 1 buckets"):
        opened(io).write(rows(5, other))
    assert opened(io).write(rows(7, other)).id == 3


def test_overwritten_partition_with_another_number_of_buckets_accepts_rows():
    io = made(bucket="1")
    for _ in range(3):
        opened(io).write(rows(5, 1, 2, 3))
    opened(io).alter([SetOption("bucket", "8")])
    opened(io).overwrite(rows(5, 1), {"p": 5})
    for key in range(20):
        opened(io).write(rows(5, key))
    assert opened(io).to_arrow().num_rows == 20
    opened(io).drop_partitions([{"p": 5}])
    opened(io).alter([SetOption("bucket", "2")])
    for key in range(20):
        opened(io).write(rows(5, key))
    assert opened(io).to_arrow().num_rows == 20


@pytest.mark.parametrize("kept", [0, bucket_state._CACHE_BYTES])
def test_states_agree_with_all_entries(monkeypatch, kept):
    monkeypatch.setattr(bucket_state, "_CACHE_BYTES", kept)
    io = made(**{"bucket": "3", "manifest.merge-min-count": "4", "manifest.target-file-size": "3 kb"})
    rng = random.Random(5)
    for turn in range(25):
        table = opened(io)
        table.write(rows(rng.randrange(4), *rng.sample(range(50), 3)))
        if turn % 7 == 6:
            table.compact(full=True)
        if turn % 11 == 10:
            table.overwrite(rows(2, 1), {"p": 2})
    store, snapshot = opened(io)._store, opened(io)._store.snapshots.latest()
    files = {}
    for entry in live_entries(store, snapshot).live:
        files.setdefault(entry.bucket_ref, []).append(entry.file)
    requested = [
        BucketRef(serialize((p,), store.schema.partition_arrow), bucket) for p in range(6) for bucket in range(3)
    ]
    actual, rest = Restore(store, lambda: snapshot, with_stats=True), rng.sample(requested, len(requested))
    while rest:
        actual.load(rest[:4])
        rest = rest[4:]
    whole = Restore(store, lambda: snapshot, with_stats=True)
    whole.load_partitions({partition for partition, _ in requested})
    for at in requested:
        assert list(actual.state(at).files) == list(whole.state(at).files) == files.get(at, [])
        assert actual.total_buckets(at[0]) == (3 if any((at[0], b) in files for b in range(3)) else None)


def bucket_written(io, key):
    with opened(io).writer() as writer:
        writer.write(rows(99, key))
        (message,) = writer.prepare_commit()
        return message.bucket


KEPT_OPEN = {
    "write-only": ({"bucket": "1", "write-only": "true"}, {}),
    "dynamic, write-only": ({"bucket": "-1", "write-only": "true"}, {}),
    "one of two": ({"bucket": "1"}, {"role": WriterRole(0, 2)}),
    "dynamic, one of two": ({"bucket": "-1"}, {"role": WriterRole(0, 2)}),
    "postponed": ({"bucket": "-2", "write-only": "true"}, {}),
}


@pytest.mark.parametrize(("options", "how"), KEPT_OPEN.values(), ids=KEPT_OPEN)
def test_open_writer_numbers_rows_above_other_commits(tmp_path, options, how):
    table = keyed_table(tmp_path / "t", **options)
    table.write(orders((1, "first", 0), (2, "first", 0)))
    with table.writer(**how) as kept_open:
        for number in range(3):
            kept_open.write(orders((1, f"kept open {number}", number)))
            table.committer("me").commit(kept_open.prepare_commit(number), number, started_from=kept_open.started_from)
            assert value_of(table, 1) == f"kept open {number}"
            for _ in range(3):
                table.write(orders((1, f"another {number}", number)))
            assert value_of(table, 1) == f"another {number}"


def test_writer_reads_table_with_its_first_rows(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    with table.writer() as opened_early:
        for n in range(3):
            table.write(orders((1, "another", n)))
        opened_early.write(orders((1, "opened early", 9)))
        table.committer().commit(opened_early.prepare_commit(), started_from=opened_early.started_from)
        assert opened_early.started_from.snapshot_id == 3
    assert value_of(table, 1) == "opened early"


def test_rows_of_open_append_writer_come_after_rows_of_others(tmp_path):
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true"}
    table = append_table(tmp_path / "t", **options)
    with table.writer() as kept_open:
        for number in range(3):
            kept_open.write(orders((1, "kept open", number)))
            table.committer().commit(kept_open.prepare_commit(), started_from=kept_open.started_from)
            table.write(orders(*((1, "another", number) for _ in range(5))))
    actual = table.to_arrow()["v"].to_pylist()
    assert actual == (["kept open"] + ["another"] * 5) * 3


def test_writer_kept_open_refuses_partition_that_got_another_number_of_buckets(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.default-bucket-num": "2"})
    with table.writer() as kept_open:
        kept_open.write(orders((1, "a", 1)))
        table.committer().commit(kept_open.prepare_commit(), started_from=kept_open.started_from)
        table.with_options({"postpone.default-bucket-num": "3"}).overwrite(orders((1, "b", 2)))
        kept_open.write(orders((1, "c", 3)))
        with pytest.raises(CommitConflictError, match=r"with 3 buckets.*with 2"):
            kept_open.prepare_commit()


def value_of(table, key):
    row = table.get({"id": key})
    (read,) = table.to_arrow(filter=f"id = {key}")["v"].to_pylist()
    assert row["v"] == read
    return read
