"""Changes as rows: with and without kinds, filters on deletes, and the order of keys that move between partitions."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.read.cross_partition_changes import keys_with_last_kind
from paimon_core.scan.batch_limits import Limits
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.draws import draws
from tests.support.tables import ORDERS, append_table, keyed_table, orders

FROM_1 = {"scan.snapshot-id": "1"}


def stream_rows(table: Table, filter: str | None = None, columns: list[str] | None = None, **how: bool) -> list[tuple]:
    """Return all rows of a stream."""
    stream = table.stream(columns, filter, **how)
    rows = []
    while True:
        before = stream.checkpoint()
        rows += [tuple(row.values()) for batch in stream.to_batches() for row in batch.to_pylist()]
        if stream.checkpoint() == before:
            return rows


def changing(path, **options: str) -> Table:
    """Return a table with a row that is added, changed and deleted, and a row that stays."""
    table = keyed_table(path, bucket="1", **options)
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.write(orders((1, "c", 9)), ["+U"])
    table.write(orders((1, "c", 9)), ["-D"])
    return table.with_options(FROM_1)


def test_changes_with_kinds(tmp_path):
    table = changing(tmp_path / "t", changelog_producer="lookup")
    assert stream_rows(table, changelog=True) == [
        ("+I", 1, "a", 1), ("+I", 2, "b", 2), ("-U", 1, "a", 1), ("+U", 1, "c", 9), ("-D", 1, "c", 9),
    ]  # fmt: skip
    assert stream_rows(table, "n < 5", ["n"], changelog=True) == [("+I", 1), ("+I", 2), ("-U", 1)]
    assert table.stream(["v"], changelog=True).schema.names == ["rowkind", "v"]
    assert sum(b.num_rows for b in table.stream([], ignore_deletes=True).to_batches()) == 3


def test_without_kinds_deletes_are_refused_or_left_out(tmp_path):
    table = changing(tmp_path / "t", changelog_producer="lookup")
    with pytest.raises(UnsupportedError, match=r"at snapshot 6, .*read\.changelog.*read\.ignore-deletes"):
        stream_rows(table)
    assert stream_rows(table, ignore_deletes=True) == [(1, "a", 1), (2, "b", 2), (1, "c", 9)]
    assert stream_rows(table, "n < 5", ["v"], ignore_deletes=True) == [("a",), ("b",)]


@pytest.mark.parametrize("kind", ["-D", "-U"])
def test_retract_without_replacement_is_delete(tmp_path, kind):
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 9)), [kind])
    with pytest.raises(UnsupportedError, match="snapshot 1"):
        stream_rows(table.with_options(FROM_1))
    assert stream_rows(table.with_options(FROM_1), changelog=True) == [(kind, 1, "a", 9)]


@pytest.mark.parametrize(
    ("filter", "refused"), [("id = 2", False), ("id = 1", True), ("v = 'b'", True), ("n > 5", True)]
)
def test_delete_is_refused_if_its_key_may_match(tmp_path, filter, refused):
    """A deleting row may hold only its key, so other columns cannot decide whether a filter matches it."""
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 9), (2, "b", 9)))
    table.write(orders((1, None, None)), ["-D"])
    table = table.with_options(FROM_1)
    if refused:
        with pytest.raises(UnsupportedError, match="snapshot 2"):
            stream_rows(table, filter, ["n"])
    else:
        assert stream_rows(table, filter, ["n"]) == [(9,)]


def test_files_of_one_commit_emit_each_key_once(tmp_path):
    """The last row of a key is emitted, for any number of files and writers of a commit."""
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    writers = [table.writer(role=WriterRole(n, 2)) for n in range(2)]
    for n in reversed(range(2)):
        with writers[n] as writer:
            writer.write(
                orders((1, f"of {n}", n), (2 + n, "own", n), (7, "gone", 0)), ["+I", "+I", "-D" if n else "+I"]
            )
            writers[n] = writer.prepare_commit()
    table.committer().commit([*writers[0], *writers[1]])
    rows = [("+I", 1, "of 1", 1), ("+I", 2, "own", 0), ("+I", 3, "own", 1), ("-D", 7, "gone", 0)]
    assert stream_rows(table.with_options(FROM_1), changelog=True) == rows
    assert [tuple(row.values()) for row in table.changes(0).to_pylist()] == rows


def test_merge_engine_merges_rows_of_one_commit(tmp_path):
    options = {"merge_engine": "aggregation", "fields.n.aggregate_function": "sum", "write_buffer_size": "1 b",
               "write_buffer_spillable": "false"}  # fmt: skip
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **options)
    with table.writer() as writer:
        for n in range(3):
            writer.write(orders((1, "x", n), (n + 5, "y", n)))
        table.committer().commit(writer.prepare_commit())
    result = stream_rows(table.with_options(FROM_1), "id = 1", changelog=True)
    assert result == [("+I", 1, "x", 3)]


def test_overwrite_is_emitted_only_by_option(tmp_path):
    requested = {**FROM_1, "streaming-read-overwrite": "true"}
    for name, options in (
        ("none", {}),
        ("input", {"changelog_producer": "input"}),
        ("vectors", {"deletion_vectors.enabled": "true"}),
    ):
        table = keyed_table(tmp_path / name, bucket="1", **options)
        table.write(orders((1, "a", 0), (2, "b", 0), (3, "c", 0)))
        table.write(orders((2, "b", 0)), ["-D"])
        table.overwrite(orders((3, "d", 0)))
        before = stream_rows(table.with_options(FROM_1), changelog=True)
        after = stream_rows(table.with_options(requested), changelog=True)
        assert after == [*before, ("-D", 1, "a", 0), ("-D", 3, "c", 0), ("+I", 3, "d", 0)]
    table = append_table(tmp_path / "append")
    table.write(orders((1, "a", 0)))
    table.overwrite(orders((2, "b", 0)))
    assert stream_rows(table.with_options(FROM_1)) == [(1, "a", 0)]
    assert len(stream_rows(table.with_options({**FROM_1, "streaming-read-append-overwrite": "true"}))) == 2


def test_overwrite_without_previous_vectors_is_refused(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"deletion_vectors.enabled": "true"})
    table.write(orders((1, "a", 0)))
    table.overwrite(orders((3, "d", 0)))
    (at,) = [s.id for s in table.snapshots() if s.commit_kind == CommitKind.OVERWRITE]
    kept = table.snapshot().id - at + 1
    table.maintenance.expire_snapshots(retain_max=kept, retain_min=kept)
    stream = table.with_options({"scan.snapshot-id": str(at), "streaming-read-overwrite": "true"}).stream()
    with pytest.raises(OutOfRangeError, match=f"'scan.snapshot-id' = '{at + 1}'"):
        stream.plan()


def moving(path, **options: str) -> Table:
    schema = Schema(ORDERS, primary_keys=["id"], partition_keys=["v"], options={"bucket": "-1", **options})
    return Table.create(str(path), schema)


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_moved_keys_are_deleted_before_inserted(tmp_path, producer):
    """Moves in both directions are tested, because partitions are read in order of their names."""
    table = moving(tmp_path / "t", **{"changelog-producer": producer})
    table.write(orders((1, "a", 0), (2, "b", 0), (3, "a", 0)))
    table.write(orders((1, "b", 1), (2, "a", 1), (3, "a", 1)))
    rows = stream_rows(table.with_options(FROM_1), changelog=True)
    held: dict[int, tuple] = {}
    for kind, *row in rows:
        if kind in ("-U", "-D"):
            assert held.pop(row[0])[1] == row[1]
        else:
            assert row[0] not in held or held[row[0]][1] == row[1]
            held[row[0]] = tuple(row)
    assert sorted(held.values()) == [(1, "b", 1), (2, "a", 1), (3, "a", 1)]
    assert [row[:1] for row in stream_rows(table.with_options(FROM_1), columns=["n"], changelog=True)] == [
        r[:1] for r in rows
    ]


def test_cross_partition_changes_without_order_are_refused(tmp_path):
    flushed = {"write-buffer-size": "1 b", "write-buffer-spillable": "false"}
    table = moving(tmp_path / "t", **{"changelog-producer": "input", **flushed})
    with table.writer() as writer:
        for place in "aba":
            writer.write(orders((1, place, 0)))
        table.committer().commit(writer.prepare_commit())
    with pytest.raises(UnsupportedError, match=r"snapshot 1 .* more than once.*'changelog-producer' = 'lookup'"):
        stream_rows(table.with_options(FROM_1), changelog=True)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=30), st.integers(1, 7), st.booleans())
@draws(60)
def test_keys_with_last_kind_splits_keys(rows, size, alive):
    rows = sorted(rows, key=lambda row: row[0])
    last = dict(rows)
    table = pa.table(
        {"kind": pa.array([k for _, k in rows], pa.int8()), "key": pa.array([k for k, _ in rows], pa.int64())}
    )
    result = [
        tuple(r.values())
        for b in keys_with_last_kind(iter(table.to_batches(max_chunksize=size)), ["key"], alive=alive)
        for r in b.to_pylist()
    ]
    assert result == [(kind, key) for key, kind in rows if (last[key] % 2 == 0) == alive]


def test_splits_and_readers_are_picklable(tmp_path):
    stream = changing(tmp_path / "t", changelog_producer="input").stream(changelog=True)
    splits, reader = pickle.loads(pickle.dumps((stream.plan(Limits(files=2)), stream.reader)))
    assert sum(b.num_rows for split in splits for b in reader.to_batches(split)) == 3
    assert sum(split.row_count for split in splits) == 3
    assert np.all([split.size > 0 for split in splits])


def test_changelog_is_read_after_snapshot_expiry(tmp_path):
    table = changing(tmp_path / "t", changelog_producer="lookup", **{"changelog.time_retained": "9 h"})
    stream = table.stream(changelog=True)
    expected = stream_rows(table, changelog=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    assert len(table.snapshots()) == 1
    assert [tuple(r.values()) for b in stream.to_batches() for r in b.to_pylist()] == expected
    assert stream_rows(table, changelog=True) == expected


def test_column_updates_of_existing_rows_are_refused(tmp_path):
    table = append_table(tmp_path / "t", **{"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.update_columns(pa.table({"_ROW_ID": [1], "v": ["B"]}))
    with table.writer() as writer:
        writer.write(orders((3, "c", 3)))
        table.committer().commit(writer.prepare_commit())
    assert sorted(stream_rows(table)) == [(1, "a", 1), (2, "B", 2), (3, "c", 3)]
    for start in (1, 2):
        with pytest.raises(UnsupportedError, match=r"snapshot 2 .*'scan.snapshot-id' = '3'"):
            stream_rows(table.with_options({"scan.snapshot-id": str(start)}))
    later = table.with_options({"scan.snapshot-id": "3"})
    assert stream_rows(later, columns=["id", "_ROW_ID"]) == [(3, 2)]
