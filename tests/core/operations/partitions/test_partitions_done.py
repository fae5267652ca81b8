"""Files ``_SUCCESS`` of partitions: by the option ``partition.end-input-to-done``, and what other options do to it."""

import json

import pyarrow as pa
import pytest

from paimon_core.errors import UnsupportedError
from paimon_core.operations.distributed_write import DistributedWrite
from paimon_core.operations.partitions.partitions_done import record_done
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.faulty_io import MemoryIO

ROOT = "memory://w/t"
COLUMNS = pa.schema([("p", pa.int32()), ("q", pa.string()), ("v", pa.int64())])
DONE = {"partition.end-input-to-done": "true"}


def table_with(options: dict[str, str], keys: tuple[str, ...] = ("p", "q")) -> Table:
    io = MemoryIO()
    create_table(io, ROOT, Schema(COLUMNS, [], list(keys), options))
    return Table(FileStore(io, ROOT, Schemas(io, ROOT).latest(), now=iter(range(10, 10_000, 10)).__next__))


def rows(*values: tuple) -> pa.Table:
    columns = zip(*values, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)], schema=COLUMNS)


def done(table: Table) -> dict[str, dict[str, int]]:
    paths = {path for path in table.store.io.files if path.endswith("/_SUCCESS")}
    return {p.removeprefix(ROOT + "/").removesuffix("/_SUCCESS"): json.loads(table.store.io.read(p)) for p in paths}


def test_partitions_that_batch_wrote_are_done():
    table = table_with(DONE)
    table.write(rows((1, "a", 1), (1, None, 2), (2, "a b", 3)))
    first = done(table)
    assert sorted(first) == ["p=1/q=__DEFAULT_PARTITION__", "p=1/q=a", "p=2/q=a b"]
    table.write(rows((1, "a", 4)))
    again = done(table)
    assert again["p=2/q=a b"] == first["p=2/q=a b"]
    assert again["p=1/q=a"]["creationTime"] == first["p=1/q=a"]["creationTime"]
    assert again["p=1/q=a"]["modificationTime"] > first["p=1/q=a"]["modificationTime"]
    table.overwrite(rows((3, "c", 5)))
    assert sorted(done(table)) == [*sorted(first), "p=3/q=c"]


def test_without_option_or_without_partitions_nothing_is_done():
    for table in (table_with({}), table_with(DONE, keys=())):
        table.write(rows((1, "a", 1)))
        table.overwrite(rows((1, "a", 1)))
        assert not done(table)


@pytest.mark.parametrize("number", [None, 7])
def test_distributed_batches_are_done_and_numbered_commits_are_not(number):
    table = table_with(DONE)
    write = DistributedWrite(table.store)
    with write.task_writer(0) as writer:
        writer.write(rows((1, "a", 1)))
        messages = writer.prepare_commit(number)
    table.committer().commit(messages, number)
    prepared = type("Prepared", (), {"messages": tuple(messages)})
    write.finish(prepared, number)
    assert list(done(table)) == ([] if number else ["p=1/q=a"])


def test_file_that_cannot_be_written_does_not_make_write_fail(caplog):
    table = table_with(DONE)
    plain = table.store.io.write

    def write(path: str, data: bytes) -> None:
        if path.endswith("_SUCCESS"):
            raise PermissionError(path)
        plain(path, data)

    table.store.io.write = write
    assert table.write(rows((1, "a", 1))) is not None
    assert not done(table)
    assert "not all of their partitions were marked as done" in caplog.text
    table.store.io.write = plain
    record_done(table.store, [{"p": 1}])
    assert list(done(table)) == ["p=1/q=a"]


def test_event_without_server_is_refused():
    table = table_with({"partition.mark-done-action": "mark-event"})
    table.write(rows((1, "a", 1)))
    with pytest.raises(UnsupportedError, match="'mark-event', but the table is not opened through a REST catalog"):
        record_done(table.store, [{"p": 1}])
    assert not done(table)


def test_another_action_is_refused_before_anything_is_written():
    other = {"partition.mark-done-action": "success-file,http-report"}
    with pytest.raises(UnsupportedError, match=r"partition\.mark-done-action.*http-report"):
        table_with({**DONE, **other})
    table = table_with(other)
    table.write(rows((1, "a", 1)))  # nothing is marked, so no action is needed
    with pytest.raises(UnsupportedError, match=r"partition\.mark-done-action.*http-report"):
        table.with_options(DONE).write(rows((1, "a", 2)))
    assert table.store.snapshots.latest().id == 1
    with pytest.raises(UnsupportedError, match="only 'success-file' and 'mark-event'"):
        record_done(table.store, [{"p": 1}])
