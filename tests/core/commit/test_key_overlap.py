"""Key changes by two commits: changes of the same keys conflict, changes of other keys in the same bucket do not."""

import pyarrow as pa
import pytest

from paimon_core.commit import key_overlap
from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.table import Table

PARTS = pa.schema(
    [pa.field("p", pa.string(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())]
)


def create(path, columns=PARTS, keys=("p", "k")):
    options = {"bucket": "1", "write-only": "true"}
    partitions = ["p"] if "p" in columns.names else []
    return Table.create(str(path), Schema(columns, primary_keys=list(keys), partition_keys=partitions, options=options))


def rows(table, *keys, p="a"):
    columns = {"p": [p] * len(keys), "k": list(keys), "v": [0] * len(keys)}
    schema = table.store.schema.arrow
    return pa.table({name: columns[name] for name in schema.names}, schema)


def commit(table, data, since):
    publisher, writer = Publisher(table.store), table.writer()
    writer.write(data)
    messages = writer.prepare_commit()
    started_from = StartedFrom(since, guards=Guard.ROWS | Guard.KEYS)
    return publisher.publish_or_delete(commit_messages, messages, started_from=started_from).snapshot


def test_other_keys_of_same_bucket_do_not_conflict(tmp_path):
    table = create(tmp_path / "t")
    since = table.write(rows(table, 1, 2, 3)).id
    table.write(rows(table, 2, 7))
    table.write(rows(table, 1, p="b"))
    committed = commit(table, rows(table, 1, 3, 8), since)
    assert committed.id == since + 3
    with pytest.raises(CommitConflictError, match=f"snapshot {since + 1} has changed rows"):
        commit(table, rows(table, 6, 7), since)
    with pytest.raises(CommitConflictError, match=f"snapshot {since + 3} has changed rows"):
        commit(table, rows(table, 8), since)
    table.overwrite(rows(table, 50), {"p": "a"})
    with pytest.raises(CommitConflictError, match=f"snapshot {since + 4} has changed rows"):
        commit(table, rows(table, 60), committed.id)


def test_uncertain_key_overlap_is_conflict(tmp_path, monkeypatch):
    table = create(tmp_path / "t")
    since = table.write(rows(table, 1)).id
    table.write(rows(table, *range(10, 20)))
    monkeypatch.setattr(key_overlap, "_MOST_ROWS", 10)
    with pytest.raises(CommitConflictError):
        commit(table, rows(table, 2), since)
    monkeypatch.undo()
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=2, retain_min=1, older_than=2**62)
    with pytest.raises(CommitConflictError):
        commit(table, rows(table, 2), since)
    floats = create(tmp_path / "f", pa.schema([pa.field("k", pa.float64(), nullable=False), ("v", pa.int64())]), ["k"])
    since = floats.write(rows(floats, 1.0)).id
    floats.write(rows(floats, float("nan")))
    with pytest.raises(CommitConflictError):
        commit(floats, rows(floats, float("nan")), since)
