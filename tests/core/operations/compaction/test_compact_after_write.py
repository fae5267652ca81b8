"""Compaction after a write whose writers met in buckets, and of writers that say they did not."""

import pyarrow as pa
import pytest

from paimon_core.commit.clean_up import without_compaction
from paimon_core.commit.compaction import has_compaction
from paimon_core.errors import PaimonError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.operations.compaction.compact_after_write import compact_written_buckets
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.row.bucket import buckets
from paimon_core.table import Table
from paimon_core.write.table_write import WriterRole
from tests.support.compaction import check_levels, levels_of, only_levels, shape
from tests.support.tables import append_table, files_below, keyed_table, orders, rows_of

STRIDE = 1 << 20


def job(table: Table, *parts, alone: bool | None = None):
    """A commit of several writers that may meet, each with its rows; the messages."""
    messages = []
    for task, rows in enumerate(parts):
        with table.writer(role=WriterRole(task, STRIDE, exclusive=alone)) as writer:
            writer.write(rows)
            messages += writer.prepare_commit()
    return messages


def upserts(table: Table, tasks: int, value: str) -> set[tuple[bytes, int]]:
    messages = job(table, *(orders(*((i, value, i) for i in range(t, 90, tasks))) for t in range(tasks)))
    assert not any(map(has_compaction, messages))
    table.committer().commit(messages)
    return {m.bucket_ref for m in messages}


def test_written_buckets_are_compacted_in_one_snapshot(tmp_path):
    table = keyed_table(tmp_path / "t")
    touched = upserts(table, 7, "a")
    result = compact_written_buckets(table.store, touched)
    assert (result.id, result.commit_kind) == (2, "COMPACT")
    check_levels(table, most_runs=1)
    assert {(row["v"], row["n"] - row["id"]) for row in rows_of(table.to_arrow())} == {("a", 0)}
    assert compact_written_buckets(table.store, touched) is None


def test_other_buckets_are_left_alone(tmp_path):
    table = keyed_table(tmp_path / "t")
    upserts(table, 7, "a")
    compact_written_buckets(table.store, {BucketRef(b"\0" * 12, 9)})
    assert len(table.snapshots()) == 1
    ((at, _), *_) = levels_of(table).items()
    compact_written_buckets(table.store, {at})
    assert sorted(len(levels.runs) for levels in levels_of(table).values()) == [1, 7]


def test_compaction_takes_only_files_of_policy(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    assert compact_written_buckets(table.store, upserts(table, 3, "a")) is None
    assert shape(table) == [(0, 30)] * 3
    assert compact_written_buckets(table.with_options({"write-only": "true"}).store, upserts(table, 9, "b")) is None
    assert compact_written_buckets(table.store, set()) is None


class Counted:
    """A runner of this process that notes the buckets it was given."""

    parts = 1

    def __init__(self):
        self.asked = []

    def run_all(self, store, tasks, run, progress):
        self.asked.append([task.bucket for task in tasks])
        return LOCAL.run_all(store, tasks, run, progress)


@pytest.mark.parametrize("keyed", [True, False])
def test_no_task_begins_where_nothing_is_due(tmp_path, keyed):
    """A task of Spark takes longer than many a write."""
    at = tmp_path / "t"
    table = keyed_table(at) if keyed else append_table(at, bucket="2", bucket_key="id")
    runner = Counted()
    touched = upserts(table, 3, "a")
    assert {bucket.bucket for bucket in touched} == {0, 1}
    assert compact_written_buckets(table.store, touched, runner=runner) is None
    assert runner.asked == []
    rows = orders(*((i, "b", i) for i in range(90)))
    of_first = rows.filter(pa.array(buckets(rows.select(["id"]).to_batches()[0], 2) == 0))
    for _ in range(3):
        table.committer().commit(job(table, of_first))
    assert compact_written_buckets(table.store, touched, runner=runner).commit_kind == "COMPACT"
    assert runner.asked == [[0]]


def test_every_batch_ends_with_full_compaction_where_one_is_due_by_number(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"full-compaction.delta-commits": "3"})
    compact_written_buckets(table.store, upserts(table, 2, "a"))
    assert shape(table) == [(5, 90)]


def test_buckets_of_append_tables_keep_their_order(tmp_path):
    table = append_table(tmp_path / "t", bucket="1", bucket_key="id")
    touched = upserts(table, 6, "a")
    rows = table.to_arrow().to_pylist()
    assert compact_written_buckets(table.store, touched).commit_kind == "COMPACT"
    assert len(live_files(table)) == 1
    assert table.to_arrow().to_pylist() == rows
    loose = append_table(tmp_path / "loose")
    assert compact_written_buckets(loose.store, upserts(loose, 6, "a")) is None


def live_files(table: Table) -> list[str]:
    return [file.file_name for split in table.scan().plan().splits for file in split.files]


def test_failure_leaves_rows_and_no_file(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    touched = upserts(table, 7, "a")
    (victim, *_) = (tmp_path / "t" / "bucket-0").iterdir()
    content = victim.read_bytes()
    victim.write_bytes(b"garbage")
    before = files_below(tmp_path)
    with pytest.raises(PaimonError, match=victim.name):
        compact_written_buckets(table.store, touched)
    assert files_below(tmp_path) == before
    victim.write_bytes(content)
    assert table.to_arrow().num_rows == 90


def test_exclusive_writer_compacts_with_numbers_of_its_job(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "2"})
    table.write(orders((1, "a", 1), (2, "a", 2)))
    (message,) = job(table, orders((2, "b", 2), (3, "b", 3)), alone=True)
    assert has_compaction(message)
    table.committer().commit([message])
    assert [level for level, _ in shape(table)] == [only_levels(table).max_level]
    assert only_levels(table).max_sequence_number >= STRIDE
    assert [row["v"] for row in rows_of(table.to_arrow())] == ["a", "b", "b"]


def test_message_without_compaction_keeps_rows_and_deletes_files(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "2"})
    table.write(orders((1, "a", 1), (2, "a", 2)))
    messages = job(table, orders((2, "b", 2), (4, "b", 4)), orders((3, "c", 3), (5, "c", 5)), alone=True)
    assert all(map(has_compaction, messages))
    rows_only = [without_compaction(table.store, message) for message in messages]
    assert [m.new_files for m in rows_only] == [m.new_files for m in messages]
    table.committer().commit(rows_only)
    assert shape(table) == [(0, 2)] * 3
    assert len(list((tmp_path / "t" / "bucket-0").iterdir())) == 3
    assert [row["v"] for row in rows_of(table.to_arrow())] == ["a", "b", "c", "b", "c"]
