"""Keys that move between partitions: each key is in one partition, which the merge engine decides."""

import tempfile
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.commit.table_commit import TableCommit
from paimon_core.errors import CommitConflictError, InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.operations.compaction.staging import drop_staged, route_staged, staging
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.table import Table
from paimon_core.write.key_locations import Fingerprints, KeyLocationIndex, fingerprints
from paimon_core.write.routing import KeyShard
from paimon_core.write.routing.bucket_assigner import slots_of
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.tables import files_below

ROWS = pa.schema([("p", pa.string()), pa.field("id", pa.int64(), False), ("v", pa.int32())])
ENGINES = ("deduplicate", "first-row", "partial-update", "aggregation")


def moving_table(path, engine="deduplicate", **options):
    settings_ = {"bucket": "-1", "merge-engine": engine, "dynamic-bucket.target-row-num": "3", **options}
    if engine == "aggregation":
        settings_["fields.v.aggregate-function"] = "sum"
    return Table.create(str(path), Schema(ROWS, ["id"], ["p"], settings_))


def rows(*found):
    columns = list(zip(*found, strict=True)) if found else [[], [], []]
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, ROWS, strict=True)], schema=ROWS)


def stored(table):
    return sorted((tuple(row.values()) for row in table.to_arrow().to_pylist()), key=str)


def merged(engine, model, changes):
    """Apply rows in order to ``model``, a dictionary by id, as the merge engine does."""
    for kind, (p, key, v) in changes:
        old = model.get(key)
        if engine == "deduplicate":
            model.pop(key, None)
            if kind != "-D":
                model[key] = (p, key, v)
        elif old is None:
            model[key] = (p, key, v)
        elif engine == "first-row":
            continue
        elif engine == "aggregation":
            model[key] = (old[0], key, v if old[2] is None else old[2] if v is None else old[2] + v)
        else:
            model[key] = (old[0], key, old[2] if v is None else v)


row = st.tuples(st.sampled_from(("a", "b", "ü", None)), st.integers(0, 8), st.none() | st.integers(0, 99))


@pytest.mark.parametrize("engine", ENGINES)
@draws(15)
@given(data=st.data())
def test_key_is_in_one_partition(engine, data):
    model: dict[int, tuple] = {}
    with tempfile.TemporaryDirectory() as place:
        table = moving_table(f"{place}/t", engine)
        for _ in range(data.draw(st.integers(1, 3))):
            changes = data.draw(st.lists(st.tuples(st.sampled_from(("+I", "+I", "+U", "-D")), row), max_size=14))
            if engine != "deduplicate":
                changes = [("+I", r) for _, r in changes]
            merged(engine, model, changes)
            cut = data.draw(st.integers(0, len(changes)))
            with table.with_options({"write-buffer-size": "1 b"}).writer() as writer:
                for part in (changes[:cut], changes[cut:]):
                    if part:
                        writer.write(rows(*(r for _, r in part)), [kind for kind, _ in part])
                messages = writer.prepare_commit()
            table.committer().commit(messages, started_from=writer.started_from)
            assert stored(table) == sorted(model.values(), key=str)
            if data.draw(st.booleans()):
                table.compact(full=True)
                assert stored(table) == sorted(model.values(), key=str)


def test_buckets_are_filled_by_keys_they_have(tmp_path):
    table = moving_table(tmp_path / "t")
    table.write(rows(*(("a", k, 0) for k in range(7))))
    buckets = {s.bucket: s.row_count for s in table.scan().plan().splits}
    assert buckets == {0: 3, 1: 3, 2: 1}
    table.write(rows(*(("b", k, 1) for k in range(5)), *(("a", k, 1) for k in range(7, 9))))
    table.compact(full=True)
    sizes = {(table.store.partition_path(s.partition), s.bucket): s.row_count for s in table.scan().plan().splits}
    assert sizes == {("p=a", 1): 1, ("p=a", 2): 3, ("p=b", 0): 3, ("p=b", 1): 2}
    table.write(rows(*(("a", k, 1) for k in range(20, 26))))
    sizes = {(table.store.partition_path(s.partition), s.bucket): s.row_count for s in table.scan().plan().splits}
    assert {bucket: n for (path, bucket), n in sizes.items() if path == "p=a"} == {0: 3, 1: 3, 2: 3, 3: 1}


def test_second_writer_is_conflict_and_writes_again(tmp_path):
    table = moving_table(tmp_path / "t")
    table.write(rows(("a", 1, 1)))
    with table.writer() as writer:
        writer.write(rows(("b", 1, 2)))
        messages = writer.prepare_commit()
    table.write(rows(("c", 1, 3)))
    with pytest.raises(InvalidInputError, match=r"started_from=writer\.started_from"):
        table.committer().commit(messages)
    with pytest.raises(CommitConflictError, match="write again"):
        table.committer().commit(messages, started_from=writer.started_from)
    table.committer().abort(messages)
    table.write(rows(("d", 1, 4)))
    assert stored(table) == [("d", 1, 4)]


def test_writers_of_key_shards(tmp_path):
    table = moving_table(tmp_path / "t")
    table.write(rows(*(("a", k, 0) for k in range(20))))
    base, messages = StartedFrom.of(table.snapshot()), []
    everything = rows(*(("b" if k % 2 else "a", k, 1) for k in range(30)))
    keys = fingerprints(everything.select(["id"]).to_batches()[0])
    for number in range(3):
        mine = everything.filter(pa.array(slots_of(keys.hash32, 3) == number))
        with table.writer(role=WriterRole(number, 4, shard=KeyShard(number, 3)), started_from=base) as writer:
            writer.write(mine)
            messages += writer.prepare_commit()
    table.committer().commit(messages, started_from=base)
    assert stored(table) == sorted((("b" if k % 2 else "a", k, 1) for k in range(30)), key=str)


def test_staged_rows_are_routed_in_order(tmp_path):
    table = moving_table(tmp_path / "t")
    table.write(rows(("a", 1, 0), ("b", 2, 0)))
    before = files_below(tmp_path)
    aside, staged = Table(staging(table.store)), []
    for task, found in enumerate(([("c", 1, 1), ("a", 1, 2)], [("d", 2, 3), ("b", 3, 4)])):
        with aside.writer("job", role=WriterRole(task, 8)) as writer:
            writer.write(rows(*found))
            staged += writer.prepare_commit()
    assert stored(table) == [("a", 1, 0), ("b", 2, 0)]
    with table.writer() as writer:
        messages = route_staged(writer, table.store, staged)
    TableCommit(table.store).commit(messages, started_from=writer.started_from)
    drop_staged(table.store, staged)
    assert stored(table) == [("a", 1, 2), ("b", 3, 4), ("d", 2, 3)]
    assert not any("postpone" in name for name in files_below(tmp_path) - before)


@pytest.mark.parametrize(
    ("options", "refused", "message"),
    [
        ({"ignore-delete": "true"}, UnsupportedError, "ignore-delete"),
        ({"lookup.cache-max-memory-size": "30 b"}, OutOfRangeError, r"index of more than 2 keys.*40 bytes .limit: 30"),
    ],
)
def test_impossible_writes_are_refused(tmp_path, options, refused, message):
    table = moving_table(tmp_path / "t", **options)
    with pytest.raises(refused, match=message):
        table.write(rows(("a", 1, 1), ("a", 2, 1)))


def test_writers_without_key_shard_are_refused(tmp_path):
    table = moving_table(tmp_path / "t")
    with pytest.raises(InvalidInputError, match="may move between partitions"):
        table.writer(role=WriterRole(0, 2))
    with pytest.raises(UnsupportedError, match="Overwrite the whole table"):
        table.overwrite(rows(("a", 1, 1)), {"p": "a"})
    table.write(rows(("a", 1, 1), ("b", 2, 1)))
    table.overwrite(rows(("c", 2, 2)))
    assert stored(table) == [("c", 2, 2)]
    table.write(rows(("a", 2, 3)))
    assert stored(table) == [("a", 2, 3)]


def test_hidden_row_is_compacted_before_its_key_may_move(tmp_path):
    table = moving_table(tmp_path / "t", "first-row", **{"write-only": "true"})
    table.write(rows(("a", 1, 1)))
    with pytest.raises(UnsupportedError, match=r"1 files of level 0.*compact\(\)"):
        table.write(rows(("b", 1, 2)))
    table.compact()
    table.write(rows(("b", 1, 2)))
    table.compact()
    assert stored(table) == [("a", 1, 1)]


def test_keys_older_than_ttl_count_as_new(tmp_path):
    table = moving_table(tmp_path / "t", **{"cross-partition-upsert.index-ttl": "1 ms"})
    table.write(rows(("a", 1, 1)))
    table.with_options({"cross-partition-upsert.index-ttl": "1 d"}).write(rows(("b", 1, 2)))
    assert stored(table) == [("b", 1, 2)]
    time.sleep(0.01)
    table.write(rows(("c", 1, 3)))
    assert stored(table) == [("b", 1, 2), ("c", 1, 3)]


keys = st.tuples(st.integers(0, 3).map(lambda k: k * 2**40), st.integers(0, 3))


@given(st.lists(st.dictionaries(keys, st.integers(0, 9), max_size=8), max_size=6))
def test_key_location_index_equals_dictionary_with_hash_collisions(batches):
    index, model = KeyLocationIndex(), {}
    for batch in batches:
        index.put(_fingerprints(batch), np.array(list(batch.values()), np.int64))
        model.update(batch)
    requested = [(wide * 2**40, narrow) for wide in range(4) for narrow in range(4)]
    assert index.find(_fingerprints(requested)).tolist() == [model.get(key, -1) for key in requested]
    assert len(index) == len(model)


def _fingerprints(keys):
    return Fingerprints(np.array([w for w, _ in keys], np.uint64), np.array([n for _, n in keys], np.int32))
