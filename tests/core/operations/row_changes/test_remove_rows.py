"""Rows removed from files by their positions, and statements that exclude each other."""

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError, UnsupportedError
from paimon_core.operations.row_changes.remove_rows import RowPositions, remove_rows
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.table import Table
from tests.support.tables import files_below

ROWS = pa.schema([("k", pa.int64()), ("p", pa.string())])
POSITION = ["__paimon_file_path", "__paimon_row_index"]


def table_of(path, **options):
    table = Table.create(str(path), Schema(ROWS, partition_keys=["p"], options={"write-only": "true", **options}))
    for start in (0, 100):
        keys = range(start, start + 100)
        table.write(pa.table({"k": list(keys), "p": ["ab"[k % 2] for k in keys]}, ROWS))
    return table


def positions_of(table, filter):
    positions = RowPositions()
    for batch in table.to_arrow(POSITION, filter=filter).to_batches():
        positions.add(*batch.columns)
    return positions


def remove(table, positions, read_at=None):
    snapshot, publisher = table.snapshot(), Publisher(table.store)
    messages = remove_rows(table.store, snapshot, positions)
    started_from = StartedFrom(read_at or snapshot.id, guards=Guard.STATEMENT)
    return publisher.publish_or_delete(commit_messages, messages, started_from=started_from).snapshot


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}])
def test_exactly_rows_at_positions_are_removed(tmp_path, options):
    table = table_of(tmp_path / "t", **options)
    left = set(range(200))
    for filter, gone in (
        ("k in (3, 4, 150)", {3, 4, 150}),
        ("k < 50", set(range(50))),
        ("p = 'a'", set(range(0, 200, 2))),
    ):
        positions = positions_of(table, filter)
        assert positions.distinct == positions.added == len(gone & left)
        remove(table, positions)
        left -= gone
        assert set(table.to_arrow(["k"])["k"].to_pylist()) == left
    assert table.snapshot().commit_kind == "OVERWRITE"
    live = {path.rpartition("/")[2] for path in table.to_arrow(POSITION)[POSITION[0]].to_pylist()}
    assert all("p=b" in path for path in table.to_arrow(POSITION)[POSITION[0]].to_pylist())
    assert live <= {path.rpartition("/")[2] for path in files_below(table.path)}


def test_positions_are_counted_and_joined():
    one, other = RowPositions(), RowPositions()
    one.add(pa.array(["x/a", "x/b", "x/a"]), pa.array([1, 1, 3]))
    other.add(pa.array(["x/a", "x/c"]), pa.array([3, 1 << 31]))
    one.update(other)
    assert (one.added, one.distinct, bool(RowPositions())) == (5, 4, False)
    assert {name: list(rows) for name, (_, rows) in one.by_name().items()} == {"a": [1, 3], "b": [1], "c": [1 << 31]}
    with pytest.raises(UnsupportedError, match="more than 4294967296 rows"):
        one.add(pa.array(["x/a"]), pa.array(np.array([1 << 32])))


def test_statements_exclude_each_other_and_allow_appends(tmp_path):
    """A statement follows rows that others add, and no other statement: a whole file that it replaced, or new rows."""
    table = table_of(tmp_path / "t")
    read_at = table.snapshot().id
    positions = positions_of(table, "k = 1")
    table.write(pa.table({"k": [500], "p": ["a"]}, ROWS))
    committed = remove(table, positions, read_at)
    assert committed.properties == {"paimon.row-level-statement": "true"}
    files = sorted(files_below(table.path))
    with pytest.raises(CommitConflictError, match=f"snapshot {committed.id} is the result of another statement"):
        remove(table, positions_of(table, "k = 101"), read_at)
    writer = table.writer()
    writer.write(pa.table({"k": [501], "p": ["a"]}, ROWS))
    inserted = table.committer().commit(
        writer.prepare_commit(), started_from=StartedFrom.of(committed, Guard.STATEMENT)
    )
    assert inserted.commit_kind == "APPEND"
    with pytest.raises(CommitConflictError, match=f"snapshot {inserted.id} is the result of another statement"):
        remove(table, positions_of(table, "k = 101"), committed.id)
    rewritten = {path for path in set(files_below(table.path)) - set(files) if "/data-" in path}
    assert len(rewritten) == 1  # of the row inserted: a statement that conflicts leaves no file
    with pytest.raises(CommitConflictError, match="is not in snapshot"):
        remove(table, positions, committed.id)


def test_file_of_another_snapshot_is_refused(tmp_path):
    table = table_of(tmp_path / "t", **{"compaction.min.file-num": "2"})
    positions = positions_of(table, "k = 1")
    table.compact(full=True)
    with pytest.raises(CommitConflictError, match="is not in snapshot"):
        remove_rows(table.store, table.snapshot(), positions)
