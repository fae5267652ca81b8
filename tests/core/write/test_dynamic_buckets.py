"""Dynamic buckets: keys get a bucket and stay in it, and the index of each bucket has its keys."""

import json
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.datafile.hash_index import write_hashes
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.entry import ADD
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes as hash_rows
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.table import Table
from paimon_core.write.hash_bucket_index import PartitionIndex
from paimon_core.write.routing import KeyShard
from paimon_core.write.routing.bucket_assigner import BucketAssigner, slots_of
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.hash_indexes import check_indexes, indexes_of
from tests.support.tables import keyed_table, orders, rows_of

int32s = st.integers(-(2**31), 2**31 - 1)


def dynamic_table(path, **options):
    return keyed_table(path, bucket="-1", **options)


# ---- the rule


def test_bucket_is_filled_before_next_is_opened():
    rule = BucketAssigner(1, 2, None)
    assert rule.assign_in_order(np.array([11, 12, 13, 14, 15], np.int32), {}).tolist() == [0, 0, 1, 1, 2]
    assert rule.assign_in_order(np.array([1, 2, 3], np.int32), {0: 2, 3: 1}).tolist() == [3, 1, 1]
    assert BucketAssigner(1, 2, 1).assign_in_order(np.array([1, 2, 3, 4], np.int32), {}).tolist() == [0] * 4


def test_slot_owns_every_nth_bucket():
    rule = BucketAssigner(2, 2, None)
    assert rule.assign_in_order(np.array([1, -1, 3, 2], np.int32), {}).tolist() == [1, 1, 3, 0]
    assert slots_of(np.array([-(2**31), -3, 5], np.int32), 4).tolist() == [0, 3, 1]


@given(st.lists(int32s, unique=True, max_size=60), st.integers(1, 5), st.integers(1, 9), st.integers(1, 7), st.data())
def test_filling_does_not_depend_on_how_keys_are_cut(keys, slots, target, most, data):
    rule = BucketAssigner(min(slots, most), target, most)
    whole = rule.assign_in_order(np.array(keys, np.int32), {})
    sizes: dict[int, int] = {}
    cut = data.draw(st.integers(0, len(keys)))
    pieces = []
    for piece in (keys[:cut], keys[cut:]):
        pieces.append(rule.assign_in_order(np.array(piece, np.int32), sizes))
        for bucket in pieces[-1].tolist():
            sizes[bucket] = sizes.get(bucket, 0) + 1
    assert np.concatenate(pieces).tolist() == whole.tolist()
    assert all(
        b < most and b % rule.slots == slots_of(np.array([k]), rule.slots)[0] for k, b in zip(keys, whole, strict=True)
    )


@given(st.lists(int32s, unique=True, max_size=40), st.dictionaries(st.integers(0, 9), st.integers(0, 4)), st.booleans())
def test_keys_get_the_same_buckets_in_any_batches(keys, sizes, bounded):
    rule = BucketAssigner(3, 3, 7 if bounded else None)
    together = rule.assign_by_hash(np.array(keys, np.int32), sizes)
    alone = [int(rule.assign_by_hash(np.array([key], np.int32), sizes)[0]) for key in keys]
    assert together.tolist() == alone


def test_partition_has_as_many_slots_as_its_expected_keys_fill_buckets():
    rule = BucketAssigner(8, 10, None)
    assert [rule.expecting(keys).slots for keys in (0, 1, 10, 11, 25, 800)] == [1, 1, 1, 2, 3, 8]
    assert rule.expecting(None) == rule
    assert BucketAssigner(3, 10, None, fixed_slots=True).expecting(1).slots == 3
    assert BucketAssigner(2, 10, 2).with_slots(5).slots == 2


def test_more_buckets_than_numbers_is_refused():
    rule = BucketAssigner(1, 1, None)
    with pytest.raises(OutOfRangeError, match=r"32767 buckets of 1 keys.*dynamic-bucket.target-row-num"):
        rule.assign_in_order(np.arange(40_000, dtype=np.int32), {})


# ---- the index


@given(st.lists(st.lists(int32s, max_size=20), max_size=6))
def test_partition_index_equals_dictionary(batches):
    index, model = PartitionIndex(), {}
    for number, batch in enumerate(batches):
        new = np.array(sorted(set(batch) - set(model)), np.int32)
        index.add(new, np.full(len(new), number))
        model.update((k, number) for k in new.tolist())
        expected = np.array(sorted({*batch, 7}), np.int32)
        assert index.find(expected).tolist() == [model.get(k, -1) for k in expected.tolist()]
    assert len(index) == len(model)
    assert {k: b for b, ks in index.by_bucket().items() for k in ks.tolist()} == model


def test_damaged_index_file_is_named_in_error(tmp_path):
    table = dynamic_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    (file,) = (tmp_path / "t" / "index").iterdir()
    file.write_bytes(b"abc")
    with pytest.raises(CorruptedError, match=file.name):
        table.write(orders((2, "b", 1)))
    file.unlink()
    with pytest.raises(CorruptedError, match=file.name):
        table.write(orders((2, "b", 1)))


# ---- tables


def test_keys_stay_in_their_bucket(tmp_path):
    table = dynamic_table(tmp_path / "t", **{"dynamic-bucket.target-row-num": "3"})
    table.write(orders(*((i, "a", i) for i in range(7))))
    assert check_indexes(table) == {0: 3, 1: 3, 2: 1}
    table.write(orders(*((i, "b", i) for i in range(3, 12))))
    assert check_indexes(table) == {0: 3, 1: 3, 2: 3, 3: 3}
    table.write(orders((0, "gone", 0)), ["-D"])
    table.compact(full=True)
    assert check_indexes(table)[0] == 3
    expected = [{"id": i, "v": "a" if i < 3 else "b", "n": i} for i in range(1, 12)]
    assert rows_of(table.to_arrow()) == expected
    assert rows_of(table.to_arrow(filter="id = 5")) == [expected[4]]


def test_one_writer_over_several_commits(tmp_path):
    table = dynamic_table(tmp_path / "t", **{"dynamic-bucket.target-row-num": "2", "write-only": "true"})
    with table.writer() as writer:
        for identifier in range(3):
            writer.write(orders(*((i, str(identifier), i) for i in range(2 + identifier))))
            messages = writer.prepare_commit(identifier)
            table.committer("me").commit(messages, identifier, started_from=writer.started_from)
        table.write(orders((9, "other", 9)))
        writer.write(orders((9, "mine", 9), (10, "mine", 10)))
        table.committer("me").commit(writer.prepare_commit(3), 3, started_from=writer.started_from)
    assert check_indexes(table) == {0: 2, 1: 2, 2: 2}
    assert [(r["id"], r["v"]) for r in rows_of(table.to_arrow())] == [
        (0, "2"), (1, "2"), (2, "2"), (3, "2"), (9, "mine"), (10, "mine")
    ]  # fmt: skip


@draws(15)
@given(st.data())
def test_writers_of_one_job_find_the_same_bucket(data):
    with tempfile.TemporaryDirectory() as place:
        table = dynamic_table(f"{place}/t", **{"dynamic-bucket.target-row-num": "4"})
        model: dict[int, str] = {}
        for job in range(data.draw(st.integers(1, 3))):
            if data.draw(st.booleans()):
                ids = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=12))
                table.write(orders(*((i, f"alone{job}", i) for i in ids)))
                model.update((i, f"alone{job}") for i in ids)
            base = StartedFrom.of(table.snapshot())
            messages = []
            for task in range(3):
                ids = data.draw(st.lists(st.integers(0, 40), max_size=12))
                with table.writer(role=WriterRole(task, 8), started_from=base) as writer:
                    writer.write(orders(*((i, f"task{job}", i) for i in ids)))
                    messages += writer.prepare_commit()
                model.update((i, f"task{job}") for i in ids)
            table.committer().commit(messages, started_from=base)
        if table.snapshot() is not None:
            check_indexes(table)
        assert {r["id"]: r["v"] for r in table.to_arrow().to_pylist()} == model


DAYS = pa.schema([pa.field("p", pa.string(), False), pa.field("id", pa.int64(), False), ("v", pa.string())])


def days(path, **options):
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "10", "write-only": "true", **options}
    return Table.create(str(path), Schema(DAYS, ["p", "id"], ["p"], options))


def in_tasks(table, day, ids, *, overwrite=False):
    """A job of two tasks that share all keys; returns how many keys each bucket of the day has afterwards."""
    base = StartedFrom.of(table.snapshot())
    messages = []
    for task in range(2):
        with table.writer(role=WriterRole(task, 2), started_from=base, overwrite=overwrite) as writer:
            writer.write(pa.table([[day] * len(ids), ids, [f"t{task}"] * len(ids)], schema=DAYS))
            messages += writer.prepare_commit()
    if overwrite:
        table.committer().overwrite(messages, {"p": day})
    else:
        table.committer().commit(messages, started_from=base)
    check_indexes(table)
    split = table.scan(filter=f"p = '{day}'").plan().splits[0]
    return {
        bucket: len(h) for (partition, bucket), h in sorted(indexes_of(table).items()) if partition == split.partition
    }


def test_tasks_that_share_small_partitions_fill_one_bucket_of_each(tmp_path):
    table = days(tmp_path / "t")
    assert in_tasks(table, "a", range(6)) == {0: 6}
    assert in_tasks(table, "a", range(4, 9)) == {0: 9}
    assert in_tasks(table, "b", range(3)) == {0: 3}
    assert in_tasks(table, "a", range(8, 12)) == {0: 12}, "within a job tasks cannot count together"
    assert in_tasks(table, "a", range(11, 15)) == {0: 12, 1: 3}


def test_tasks_spread_keys_of_partitions_that_are_as_large_as_others(tmp_path):
    table = days(tmp_path / "t")
    assert in_tasks(table, "a", range(40)) == {0: 40}, "nothing is known of a table without keys"
    before = in_tasks(table, "b", range(40))
    assert set(before) == {0, 1, 2, 3}
    assert set(in_tasks(table, "c", range(40), overwrite=True)) == {0, 1, 2, 3}
    assert set(in_tasks(table, "a", range(40), overwrite=True)) == {0, 1, 2, 3}
    after = in_tasks(table, "b", range(40, 60))
    assert sum(size != before.get(bucket) for bucket, size in after.items()) == 2, "two slots for half as many keys"
    given = days(tmp_path / "given", **{"dynamic-bucket.initial-buckets": "3"})
    assert set(in_tasks(given, "a", range(9))) == {0, 1, 2}


@draws(15)
@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1), min_size=1, max_size=3))
def test_writers_that_get_whole_slots_fill_buckets_to_their_target(jobs):
    with tempfile.TemporaryDirectory() as place:
        table, slots, keys = days(f"{place}/t"), 3, set()
        for job in jobs:
            base = StartedFrom.of(table.snapshot())
            rows = pa.table([[p for p, _ in job], [i for _, i in job], ["v"] * len(job)], schema=DAYS)
            slot = slots_of(hash_rows(encode(rows.select(["id"]).combine_chunks().to_batches()[0])), slots)
            task = (slot + (np.array(rows.column("p").to_pylist()) == "b")) % slots  # each partition begins elsewhere
            messages = []
            for number in range(slots):
                with table.writer(
                    role=WriterRole(number, 4, shard=KeyShard(number, slots, slots)), started_from=base
                ) as writer:
                    writer.write(rows.filter(pa.array(task == number)))
                    messages += writer.prepare_commit()
            table.committer().commit(messages, started_from=base)
            keys |= set(job)
            check_indexes(table)
        sizes = {at: len(hashes) for at, hashes in indexes_of(table).items()}
        assert sum(sizes.values()) == len(keys)
        assert max(sizes.values()) <= 10
        for (partition, bucket), size in sizes.items():
            before = sizes.get((partition, bucket - slots), 10)
            assert before == 10 or not size, "a bucket opens when the one before it is full"
        assert {(r["p"], r["id"]) for r in table.to_arrow().to_pylist()} == keys


def test_overwrite_forgets_buckets_of_keys(tmp_path):
    schema = pa.schema([pa.field("p", pa.string(), False), pa.field("id", pa.int64(), False), ("v", pa.string())])
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "2"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["p", "id"], ["p"], options))

    def data(p, *ids):
        return pa.table([[p] * len(ids), list(ids), [p] * len(ids)], schema=schema)

    table.write(pa.concat_tables([data("a", 1, 2, 3), data("b", 1, 2, 3)]))
    table.overwrite(data("a", 3), {"p": "a"})
    assert sorted(len(h) for h in indexes_of(table).values()) == [1, 1, 2]
    check_indexes(table)
    table.write(data("a", 1, 2, 3))
    check_indexes(table)
    table.drop_partitions([{"p": "b"}])
    assert len({p for p, _ in indexes_of(table)}) == 1
    table.truncate()
    assert indexes_of(table) == {}
    table.write(data("a", 1))
    assert check_indexes(table) == {0: 1}


def test_overwrite_forgets_buckets_that_have_lost_all_rows(tmp_path):
    table = dynamic_table(tmp_path / "t", **{"dynamic-bucket.target-row-num": "1"})
    table.write(orders((1, "a", 1), (2, "a", 1)))
    table.write(orders((2, "a", 1)), ["-D"])
    table.compact(full=True)
    table.overwrite(orders((2, "b", 1)))
    assert check_indexes(table) == {0: 1}


def test_bucket_with_files_and_without_index_is_refused(tmp_path):
    dynamic_table(tmp_path / "t").write(orders((1, "a", 1)))
    snapshot = tmp_path / "t" / "snapshot" / "snapshot-1"
    document = json.loads(snapshot.read_text())
    del document["indexManifest"]
    snapshot.write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match=r"bucket 0 of .*no hash index.*Overwrite"):
        Table.open(str(tmp_path / "t")).write(orders((2, "b", 1)))


def test_index_memory_is_bounded(tmp_path):
    table = dynamic_table(tmp_path / "t")
    table.write(orders(*((i, "a", i) for i in range(2000))))
    small = table.with_options({"lookup.cache-max-memory-size": "10 kb"})
    with pytest.raises(OutOfRangeError, match=r"index of 2000 keys.*16000 bytes .limit: 10240.*lookup.cache-max-mem"):
        small.write(orders((1, "b", 1)))
    assert check_indexes(table) == {0: 2000}


def test_keys_that_another_writer_routed_differently_are_conflict(tmp_path):
    table = dynamic_table(tmp_path / "t", **{"dynamic-bucket.target-row-num": "2"})
    table.write(orders((1, "a", 1)))
    with table.writer() as writer:
        writer.write(orders((2, "w", 1), (3, "w", 1)))
        messages = writer.prepare_commit()
    table.write(orders((3, "x", 1), (2, "x", 1)))
    with pytest.raises(CommitConflictError, match="another bucket"):
        table.committer().commit(messages, started_from=writer.started_from)
    table.committer().abort(messages)
    assert check_indexes(table) == {0: 2, 1: 1}
    with table.writer() as writer:
        writer.write(orders((2, "w", 1)))
        messages = writer.prepare_commit()
    table.overwrite(orders((7, "x", 1)))
    with pytest.raises(CommitConflictError, match="overwritten"):
        table.committer().commit(messages, started_from=writer.started_from)


def test_entries_of_hash_indexes_are_as_java_has_them(tmp_path):
    table = dynamic_table(tmp_path / "t")
    entry = write_hashes(table.store, BucketRef(b"", 0), np.array([1, -2], np.int32))
    assert (entry.kind, entry.file_size, entry.row_count, entry.deletion_ranges) == (ADD, 8, 2, None)
    assert table.store.io.read(table.store.index_path(entry)) == b"\0\0\0\1\xff\xff\xff\xfe"
