"""What a writer learns of the buckets it meets, and how little it reads for it."""

import pyarrow as pa

from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import FaultyIO, MemoryIO

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
