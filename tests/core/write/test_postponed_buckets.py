"""Postponed buckets: rows wait hidden in bucket -2 until a compaction routes them, or go to real buckets at once."""

import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.operations.compaction import compact_postponed
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.compaction import levels_of
from tests.support.tables import ORDERS, files_below, keyed_table, orders, rows_of

WAITING = {"postpone.batch-write-fixed-bucket": "false"}


def entries(table: Table):
    return live_entries(table.store, table.snapshot()).live


def waiting(table: Table) -> list[DataFileMeta]:
    return [e.file for e in entries(table) if e.bucket == -2]


def totals(table: Table) -> dict[str, set[tuple[int, int]]]:
    """Buckets that have files, and out of how many, by partition."""
    found: dict[str, set[tuple[int, int]]] = {}
    for e in entries(table):
        found.setdefault(table.store.partition_path(e.partition), set()).add((e.bucket, e.total_buckets))
    return found


def test_rows_wait_until_they_are_routed(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **WAITING, **{"postpone.default-bucket-num": "2"})
    with table.writer("me") as writer:
        writer.write(orders((1, "a", 1), (2, "a", 1)))
        writer.write(orders((1, "b", 2), (2, "gone", 2)), ["+U", "-D"])
        messages = writer.prepare_commit()
    table.committer("me").commit(messages)
    (file,) = waiting(table)
    assert file.file_name.startswith("data--u-me-s-0-w-")
    assert file.file_name.endswith(".avro")
    assert (file.row_count, file.delete_row_count, file.min_sequence_number) == (4, 1, -1)
    assert any("bucket-postpone/" in name for name in files_below(tmp_path))
    assert table.to_arrow().num_rows == 0
    table.write(orders((3, "c", 3)))
    snapshot = table.compact()
    assert snapshot.commit_kind == "COMPACT"
    assert [tuple(r.values()) for r in rows_of(table.to_arrow())] == [(1, "b", 2), (3, "c", 3)]
    assert not waiting(table)
    assert {total for _, total in totals(table)[""]} == {2}
    assert table.compact() is None


def test_delete_routed_without_other_rows_is_applied(tmp_path):
    options = {"deletion-vectors.enabled": "true", "postpone.default-bucket-num": "2", **WAITING}
    table = keyed_table(tmp_path / "t", bucket="-2", **options)
    table.write(orders(*((k, "v", k) for k in range(20))))
    table.compact(full=True)
    table.write(orders((7, None, None)), ["-D"])
    table.compact()
    assert [row["id"] for row in rows_of(table.to_arrow())] == [k for k in range(20) if k != 7]
    table.compact(full=True)
    assert [row["id"] for row in rows_of(table.to_arrow())] == [k for k in range(20) if k != 7]


def test_rows_of_batch_go_to_buckets_at_once(tmp_path):
    schema = pa.schema([pa.field("p", pa.string(), False), *ORDERS])
    options = {"bucket": "-2", "postpone.default-bucket-num": "3"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, ["p", "id"], ["p"], options))

    def data(p, ids):
        return pa.table([[p] * len(ids), list(ids), [p] * len(ids), [1] * len(ids)], schema=schema)

    table.write(data("a", range(20)))
    assert totals(table) == {"p=a": {(0, 3), (1, 3), (2, 3)}}
    four = table.with_options({"postpone.default-bucket-num": "4"})
    four.write(pa.concat_tables([data("a", range(10, 30)), data("b", range(20))]))
    assert totals(table) == {"p=a": {(b, 3) for b in range(3)}, "p=b": {(b, 4) for b in range(4)}}
    assert table.to_arrow().num_rows == 50
    for key in (3, 15, 29):
        assert table.to_arrow(filter=f"p = 'a' AND id = {key}").num_rows == 1
    four.with_options(WAITING).write(data("a", range(25, 40)))
    four.compact(full=True)
    assert table.to_arrow(filter="p = 'a'").num_rows == 40
    four.overwrite(data("a", range(5)), {"p": "a"})
    assert totals(table)["p=a"] <= {(b, 4) for b in range(4)}
    assert table.to_arrow(filter="p = 'a'").num_rows == 5


def test_overwrite_replaces_waiting_rows(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2")
    table.with_options(WAITING).write(orders((1, "a", 1)))
    table.overwrite(orders((2, "b", 2)))
    table.compact()
    assert [r["id"] for r in rows_of(table.to_arrow())] == [2]


def test_files_of_one_writer_are_replayed_in_order(tmp_path):
    options = {"write-buffer-size": "1 kb", "target-file-size": "1 b", **WAITING}
    table = keyed_table(tmp_path / "t", bucket="-2", **options)
    with table.writer() as writer:
        for i in range(30):
            writer.write(orders(*((k, f"{i:03}" + "x" * 300, i) for k in range(4))))
        table.committer().commit(writer.prepare_commit())
    made = [file.creation_time for file in waiting(table)]
    assert len(made) > 1
    assert len(set(made)) == len(made)
    table.compact()
    assert {r["n"] for r in rows_of(table.to_arrow())} == {29}


@pytest.mark.parametrize("engine", ["aggregation", "partial-update", "first-row"])
def test_every_row_is_counted_once(tmp_path, engine):
    options = {"merge-engine": engine, "fields.n.aggregate-function": "sum"} if engine == "aggregation" else {
        "merge-engine": engine
    }  # fmt: skip
    table = keyed_table(tmp_path / "t", bucket="-2", **options, **WAITING)
    table.write(orders((1, "a", 1), (1, "b", 2), (2, "c", 3)))
    table.write(orders((1, None, 4)))
    table.compact()
    expected = {
        "aggregation": [(1, "b", 7), (2, "c", 3)],
        "partial-update": [(1, "b", 4), (2, "c", 3)],
        "first-row": [(1, "a", 1), (2, "c", 3)],
    }
    assert [tuple(r.values()) for r in rows_of(table.to_arrow())] == expected[engine]


def test_two_compactions_route_rows_once(tmp_path, monkeypatch):
    table = keyed_table(
        tmp_path / "t", bucket="-2", **WAITING, **{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    )
    table.write(orders(*((k, "a", 1) for k in range(9))))
    dealt = compact_postponed._route_postponed(table.store, None)
    table.write(orders((9, "a", 1)))
    table.compact()
    before = files_below(tmp_path)
    snapshot, late = table.committer().compact(dealt)
    assert snapshot is None
    assert len(late) == len(dealt)
    assert {r["n"] for r in table.to_arrow().to_pylist()} == {1}
    assert len(files_below(tmp_path)) < len(before), "what was made in vain is deleted"


def test_first_writer_decides_number_of_buckets(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2")
    other = table.with_options({"postpone.default-bucket-num": "3"})
    with other.writer() as writer:
        writer.write(orders((1, "a", 1)))
        messages = writer.prepare_commit()
    other.with_options(WAITING).write(orders((7, "w", 7)))
    dealt = compact_postponed._route_postponed(other.store, None)
    table.write(orders((2, "b", 1)))
    with pytest.raises(CommitConflictError, match=r"1 buckets.*3 buckets|3 buckets.*1 buckets"):
        other.committer().commit(messages, started_from=writer.started_from)
    assert other.committer().compact(dealt)[0] is None
    assert other.compact() is not None
    assert [r["id"] for r in rows_of(table.to_arrow())] == [2, 7]
    assert {total for _, total in totals(table)[""]} == {1}


def test_buckets_are_compacted_as_due(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **WAITING, **{"num-sorted-run.compaction-trigger": "2"})
    for i in range(4):
        table.write(orders((i, "a", i), (i + 1, "b", i)))
        table.compact()
    (levels,) = [found for (_, bucket), found in levels_of(table).items() if bucket >= 0]
    assert len(levels.runs) <= 2
    table.compact(full=True)
    assert [tuple(r.values()) for r in rows_of(table.to_arrow())] == [
        (0, "a", 0), (1, "a", 1), (2, "a", 2), (3, "a", 3), (4, "b", 3)
    ]  # fmt: skip


def test_damaged_count_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"postpone\.default-bucket-num"):
        keyed_table(tmp_path / "t", bucket="-2", **{"postpone.default-bucket-num": "0"})
