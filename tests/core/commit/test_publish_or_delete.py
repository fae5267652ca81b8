"""Files of messages are deleted exactly if their commit provably published nothing."""

import pyarrow as pa
import pytest

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.overwrite_partitions import overwrite_partitions, replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError, CommitUnknownError, InvalidInputError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import files_below

COLUMNS = pa.schema([("k", pa.int64()), ("p", pa.string())])


def written(tmp_path):
    """Return a table, the messages of a writer, and the paths of its files."""
    table = Table.create(str(tmp_path / "t"), Schema(COLUMNS, partition_keys=["p"]))
    table.write(pa.table({"k": [1], "p": ["a"]}, COLUMNS))
    before = set(files_below(table.path))
    with table.writer() as writer:
        writer.write(pa.table({"k": [2], "p": ["b"]}, COLUMNS))
        messages = writer.prepare_commit()
    return table, messages, set(files_below(table.path)) - before


def fail(error, published=0):
    """Return a commit that fails, after the given number of snapshots that may exist."""

    def commit(publisher, messages):
        publisher.may_exist += published
        raise error

    return commit


def test_published_files_stay(tmp_path):
    table, messages, files = written(tmp_path)
    committed = Publisher(table.store).publish_or_delete(commit_messages, messages)
    assert committed.snapshot == table.snapshot()
    assert files <= set(files_below(table.path))


@pytest.mark.parametrize(
    ("error", "published", "stay"),
    [
        (CommitConflictError("a conflict"), 0, False),
        (CommitUnknownError("no answer"), 1, True),
        (MemoryError(), 1, True),
        (KeyboardInterrupt(), 0, False),
        (KeyboardInterrupt(), 1, True),
    ],
)
def test_files_of_failed_commit_stay_if_they_may_be_in_table(tmp_path, error, published, stay):
    table, messages, files = written(tmp_path)
    with pytest.raises(type(error)):
        Publisher(table.store).publish_or_delete(fail(error, published), messages)
    assert len(files) == 1
    assert (files <= set(files_below(table.path))) is stay


def test_refused_overwrite_deletes_files(tmp_path):
    table, messages, files = written(tmp_path)
    with pytest.raises(InvalidInputError, match="cannot write rows of p=b"):
        Publisher(table.store).publish_or_delete(overwrite_partitions, messages, {"p": "a"})
    assert not files & set(files_below(table.path))


def test_interrupt_in_earlier_commit_does_not_keep_files(tmp_path):
    table, messages, files = written(tmp_path)
    publisher = Publisher(table.store)
    publisher.publish_or_delete(replace_files, ())
    assert publisher.may_exist == 1
    with pytest.raises(KeyboardInterrupt):
        publisher.publish_or_delete(fail(KeyboardInterrupt()), messages)
    assert not files & set(files_below(table.path))


def test_block_deletes_messages_that_it_appends(tmp_path):
    table, messages, files = written(tmp_path)

    def block():
        appended = []
        with Publisher(table.store).deleting_unless_published(appended):
            appended += messages
            raise CommitConflictError("a conflict")

    with pytest.raises(CommitConflictError):
        block()
    assert not files & set(files_below(table.path))
