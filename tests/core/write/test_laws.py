"""Laws of writing: the table does not depend on how the input is cut, split over writers or buffered."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.schema.schema import Schema
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.tables import ORDERS, rows_of

ROOT = "memory://w/t"
PARTITIONED = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string()), ("v", pa.string())])


def make(schema: pa.Schema = ORDERS, keys=("id",), partitions=(), **options: str) -> Table:
    settings_ = {"bucket": "2"} if keys else {}
    settings_ |= {key.replace("_", "-"): value for key, value in options.items()}
    io = MemoryIO()
    created = create_table(io, ROOT, Schema(schema, keys, partitions, settings_))
    return Table(FileStore(io, ROOT, created))


def data(count: int, keys: int) -> pa.Table:
    ids = [i * 7 % keys for i in range(count)]
    return pa.table([pa.array(ids, pa.int64()), [f"v{i}" for i in range(count)], pa.array(range(count), pa.int32())],
                    schema=ORDERS)  # fmt: skip


def expected(rows: pa.Table) -> list[dict]:
    last = {row["id"]: row for row in rows.to_pylist()}
    return [last[key] for key in sorted(last)]


@draws(25)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from(["256 b", "4 kb", "256 mb"]))
def test_cutting_batches_and_small_buffers_change_nothing(cuts, buffer):
    rows = data(sum(cuts), 30)
    table = make(write_buffer_size=buffer, target_file_size="1 kb")
    with table.writer() as writer:
        at = 0
        for cut in cuts:
            writer.write(rows.slice(at, cut))
            at += cut
        messages = writer.prepare_commit()
    table.committer().commit(messages)
    assert rows_of(table.to_arrow()) == expected(rows)


@draws(25)
@given(st.data(), st.integers(1, 4))
def test_disjoint_keys_give_same_table_with_any_writers(data_, writers):
    """Writers of one job share the buckets; a key goes to one writer, in order."""
    rows = data(120, 40)
    owner = data_.draw(st.lists(st.integers(0, writers - 1), min_size=40, max_size=40))
    table = make(write_buffer_size=data_.draw(st.sampled_from(["512 b", "256 mb"])))
    table.write(data(40, 40).set_column(1, "v", pa.array(["old"] * 40)))
    messages: list[CommitMessage] = []
    for number in range(writers):
        mine = rows.filter(pa.array([owner[key] == number for key in rows["id"].to_pylist()]))
        with table.writer(role=WriterRole(number, writers)) as writer:
            writer.write(mine)
            messages += writer.prepare_commit()
    table.committer().commit(data_.draw(st.permutations(messages)))
    assert rows_of(table.to_arrow()) == expected(rows)


def test_writers_that_share_bucket_never_give_one_sequence_number_twice():
    table = make(bucket="1")
    messages = []
    for number in range(3):
        with table.writer(role=WriterRole(number, 3)) as writer:
            writer.write(data(10, 10).slice(number * 3, 3))
            messages += writer.prepare_commit()
    table.committer().commit(messages)
    spans = [(f.min_sequence_number, f.max_sequence_number) for m in messages for f in m.new_files]
    numbers = [n for low, high in spans for n in range(low, high + 1, 3)]
    assert len(numbers) == len(set(numbers)) == 9


@draws(20)
@given(st.lists(st.sampled_from([None, "", " ", "a", "a/b=%", "é"]), min_size=1, max_size=30), st.integers(1, 4))
def test_append_table_has_every_row_once_however_split(partitions, writers):
    table = make(PARTITIONED, (), ("p",), target_file_size="1 b")
    rows = pa.table(
        [pa.array(range(len(partitions)), pa.int64()), pa.array(partitions, pa.string()),
         pa.array([str(i) for i in range(len(partitions))])], schema=PARTITIONED,
    )  # fmt: skip
    messages = []
    for number in range(writers):
        with table.writer(role=WriterRole(number, writers)) as writer:
            writer.write(rows.slice(number * 8, 8 if number < writers - 1 else None))
            messages += writer.prepare_commit()
    table.committer().commit(messages)
    assert rows_of(table.to_arrow()) == rows_of(rows)  # NULL, empty and blank share a directory, and stay apart


@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_bucket_of_append_table_keeps_order_of_arrival(format_):
    """Over files and commits; without buckets only what one commit wrote is in order (behaviour 8.4)."""
    bucketed = {"bucket": "1", "bucket-key": "id"}
    for options, commits in ((bucketed, 2), ({}, 1)):
        table = make(keys=(), target_file_size="2 kb", write_buffer_size="1 kb", **{"file.format": format_, **options})
        rows = data(3000, 3000)
        for i in range(commits):
            table.write(rows.slice(i * 3000 // commits, 3000 // commits))
        assert len(table.scan().plan().splits[0].files) > 3
        assert table.to_arrow().column("n").to_pylist() == list(range(3000))


@pytest.mark.parametrize("function", ["default", "mod", "hive"])
def test_append_table_with_fixed_buckets(function):
    table = make(keys=(), bucket="4", bucket_key="id", **{"bucket-function.type": function})
    rows = data(400, 100)
    table.write(rows)
    table.write(rows)
    splits = table.scan().plan().splits
    assert {s.bucket for s in splits} == {0, 1, 2, 3}
    buckets = {}
    for split in splits:
        for batch in table.reader().to_batches(split):
            for row in batch.to_pylist():
                assert buckets.setdefault(row["id"], split.bucket) == split.bucket
    for key in (0, 7, 99):
        actual = table.to_arrow(filter=f"id = {key}").to_pylist()
        assert [r["n"] for r in actual] == [r["n"] for r in rows.to_pylist() if r["id"] == key] * 2
        assert len(table.scan(filter=f"id = {key}").plan().splits) == 1


def test_messages_travel_as_bytes_and_pickles():
    table = make(PARTITIONED, (), ("p",))
    with table.writer() as writer:
        writer.write(pa.table([pa.array([1, 2], pa.int64()), ["a", None], ["x", "y"]], schema=PARTITIONED))
        messages = writer.prepare_commit()
    assert [CommitMessage.from_bytes(m.to_bytes()) for m in messages] == messages
    assert pickle.loads(pickle.dumps(messages)) == messages
    table.committer().commit([CommitMessage.from_bytes(m.to_bytes()) for m in messages])
    assert table.to_arrow().num_rows == 2


def test_prepare_commit_returns_only_newer_rows():
    table = make(bucket="1")
    committer = table.committer("me")
    with table.writer() as writer:
        for i in range(3):
            writer.write(data(10, 5).slice(i, 1))
            committer.commit(writer.prepare_commit(), i)
        assert writer.prepare_commit() == []
    assert [s.commit_identifier for s in table.snapshots()] == [0, 1, 2]
    assert rows_of(table.to_arrow()) == expected(data(10, 5).slice(0, 3))


def test_aborted_writer_leaves_no_file():
    table = make(write_buffer_size="1 kb", write_buffer_spillable="false")
    before = set(table.store.io.files)
    writer = table.writer()
    writer.write(data(500, 500))
    assert set(table.store.io.files) != before
    writer.abort()
    assert set(table.store.io.files) == before
