"""What a writer learns of the buckets it meets, and how little it reads for it."""

import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
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


def test_numbers_go_on_in_each_bucket_and_only_manifests_of_the_partitions_are_read():
    io = MemoryIO()
    create_table(io, ROOT, Schema(COLUMNS, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "1"}))
    for p in range(8):
        opened(io).write(rows(p, 1, 2, 3))
    counting = FaultyIO(io)
    writer = opened(counting).writer()
    writer.write(rows(5, 9))
    (message,) = writer.prepare_commit()
    assert message.new_files[0].min_sequence_number == 3
    manifests = [
        path for verb, path in counting.log if verb == "read" and "/manifest-" in path and "-list-" not in path
    ]
    assert len(manifests) == 1

    writer.write(rows(6, 9))
    writer.write(rows(99, 9))
    first, second = sorted(writer.prepare_commit(), key=lambda m: -m.new_files[0].min_sequence_number)
    assert (first.new_files[0].min_sequence_number, second.new_files[0].min_sequence_number) == (3, 0)


KEPT_OPEN = {
    "write-only": ({"bucket": "1", "write-only": "true"}, {}),
    "dynamic, write-only": ({"bucket": "-1", "write-only": "true"}, {}),
    "one of two": ({"bucket": "1"}, {"sequence": (0, 2)}),
    "dynamic, one of two": ({"bucket": "-1"}, {"sequence": (0, 2)}),
    "postponed": ({"bucket": "-2", "write-only": "true"}, {}),
}


@pytest.mark.parametrize(("options", "how"), KEPT_OPEN.values(), ids=KEPT_OPEN)
def test_a_writer_kept_open_numbers_its_next_rows_behind_those_of_others(tmp_path, options, how):
    table = keyed_table(tmp_path / "t", **options)
    table.write(orders((1, "first", 0), (2, "first", 0)))
    with table.writer(**how) as kept_open:
        for number in range(3):
            kept_open.write(orders((1, f"kept open {number}", number)))
            table.committer("me").commit(kept_open.prepare_commit(number), number, base_id=kept_open.base_id)
            assert value_of(table, 1) == f"kept open {number}"
            for _ in range(3):
                table.write(orders((1, f"another {number}", number)))
            assert value_of(table, 1) == f"another {number}"


def test_a_writer_looks_at_the_table_when_it_gets_its_first_rows(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true"})
    with table.writer() as opened_early:
        for n in range(3):
            table.write(orders((1, "another", n)))
        opened_early.write(orders((1, "opened early", 9)))
        table.committer().commit(opened_early.prepare_commit(), base_id=opened_early.base_id)
        assert opened_early.base_id == 3
    assert value_of(table, 1) == "opened early"


def test_rows_of_an_append_writer_kept_open_come_after_those_of_others(tmp_path):
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true"}
    table = append_table(tmp_path / "t", **options)
    with table.writer() as kept_open:
        for number in range(3):
            kept_open.write(orders((1, "kept open", number)))
            table.committer().commit(kept_open.prepare_commit(), base_id=kept_open.base_id)
            table.write(orders(*((1, "another", number) for _ in range(5))))
    found = table.to_arrow()["v"].to_pylist()
    assert found == (["kept open"] + ["another"] * 5) * 3


def test_a_writer_kept_open_refuses_a_partition_that_got_another_number_of_buckets(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.default-bucket-num": "2"})
    with table.writer() as kept_open:
        kept_open.write(orders((1, "a", 1)))
        table.committer().commit(kept_open.prepare_commit(), base_id=kept_open.base_id)
        table.with_options({"postpone.default-bucket-num": "3"}).overwrite(orders((1, "b", 2)))
        kept_open.write(orders((1, "c", 3)))
        with pytest.raises(CommitConflictError, match=r"with 3 buckets.*with 2"):
            kept_open.prepare_commit()


def value_of(table, key):
    row = table.get({"id": key})
    (read,) = table.to_arrow(filter=f"id = {key}")["v"].to_pylist()
    assert row["v"] == read
    return read
