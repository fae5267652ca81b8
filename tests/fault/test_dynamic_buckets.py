"""Writers of one table with dynamic buckets that meet: nothing is lost, and no key comes to live in two buckets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.datafile.hash_index import read_hashes
from paimon_core.errors import CommitConflictError
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.index_entry import HASH
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.schedule import interleave
from tests.support.tables import ORDERS, orders

ROOT = "memory://w/t"
turns = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 25)), max_size=24)
ids = st.lists(st.integers(0, 15), min_size=1, max_size=8, unique=True)


def open_table(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def upsert(value, keys):
    return lambda io: open_table(io).write(orders(*((k, value, k) for k in keys))).id


def in_tasks(value, keys):
    """A job of two tasks, as an engine runs one that is tried again when it came too late."""

    def run(io: FileIO) -> int:
        table = open_table(io)
        while True:
            newest, messages = table.snapshot(), []
            for task in range(2):
                with table.writer(role=WriterRole(task, 2), started_from=StartedFrom.of(newest)) as writer:
                    writer.write(orders(*((k, value, k) for k in keys[task::2])))
                    messages += writer.prepare_commit()
            try:
                return table.committer().commit(messages, started_from=StartedFrom.of(newest)).id
            except CommitConflictError:
                table.committer().abort(messages)

    return run


def overwrite(value, keys):
    return lambda io: open_table(io).overwrite(orders(*((k, value, k) for k in keys))).id


@draws(15)
@pytest.mark.parametrize("kinds", [(upsert, upsert), (upsert, in_tasks), (in_tasks, in_tasks), (upsert, overwrite)])
@given(data=st.data())
def test_two_writers_give_a_key_one_bucket(kinds, data):
    io = MemoryIO()
    options = {
        "bucket": "-1", "dynamic-bucket.target-row-num": "3", "commit.min-retry-wait": "0 ms",
        "commit.max-retry-wait": "0 ms", "file.format": "avro",
    }  # fmt: skip
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    first = data.draw(ids)
    open_table(io).write(orders(*((k, "old", k) for k in first)))
    keys = [data.draw(ids) for _ in kinds]
    operations = [kind(value, k) for kind, value, k in zip(kinds, "ab", keys, strict=True)]
    results = interleave(io, operations, data.draw(turns))
    for result in results:
        if isinstance(result, Exception):
            raise result
    table = open_table(io)
    stored = {row["id"]: row["v"] for row in table.to_arrow().to_pylist()}
    assert table.to_arrow().num_rows == len(stored)
    expected = dict.fromkeys(first, "old")
    either = set(keys[0]) & set(keys[1])
    for number in sorted(range(2), key=results.__getitem__):
        if kinds[number] is overwrite:
            expected, either = {}, set()
        expected.update((k, "ab"[number]) for k in keys[number])
    assert stored.keys() == expected.keys()
    assert {k: v for k, v in stored.items() if k not in either} == {
        k: v for k, v in expected.items() if k not in either
    }
    check_indexes(io, table)


def check_indexes(io: MemoryIO, table: Table) -> None:
    """Check that each key has one bucket, and that a snapshot names each index file."""
    store, named = table.store, set()
    for snapshot in table.snapshots():
        if snapshot.index_manifest is None:
            continue
        entries = [e for e in store.manifests.read_index(snapshot.index_manifest) if e.index_type == HASH]
        hashes = [h for e in entries for h in read_hashes(store, e).tolist()]
        assert len(hashes) == len(set(hashes))
        named |= {e.file_name for e in entries}
    assert {path.rsplit("/", 1)[1] for path in io.files if "/index/" in path} == named
