"""Metrics: the exact numbers of known commits, compactions and scans, and their receivers."""

import json
import logging
import pickle
import threading
from dataclasses import replace

import pyarrow as pa
import pytest

from paimon_core import metrics
from paimon_core.commit import publisher as publisher_module
from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.measure import report_compaction
from paimon_core.commit.overwrite_partitions import overwrite_partitions
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, OutOfRangeError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.metrics import CommitMetrics, CompactionMetrics, Metrics, listeners
from paimon_core.metrics.values import MEASURE
from paimon_core.read.metrics import ReadRecorder
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import append_table, keyed_table, orders

FIRST = orders((1, "a", 1), (2, "b", 2), (2, "c", 3), (3, "d", 4))
COUNTS = ("rows_received", "rows_added", "rows_deleted", "rows_merged", "files_added", "files_deleted", "files_moved")


@pytest.fixture
def received():
    """Return the measurements of a listener that is removed after the test."""
    events: list[Metrics] = []
    metrics.add_listener(events.append)
    yield events
    metrics.remove_listener(events.append)


def counts(commit: CommitMetrics) -> dict[str, int]:
    """Return the counts of rows and files that are not 0."""
    return {name: getattr(commit, name) for name in COUNTS if getattr(commit, name)}


def files(table: Table) -> list:
    return [file for split in table.scan().plan().splits for file in split.files]


def test_commit_counts_rows_files_and_bytes(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", changelog_producer="input")
    with metrics.collect() as measured:
        snapshot = table.write(FIRST)
    [commit] = measured.events
    [file] = files(table)
    assert counts(commit) == {"rows_received": 4, "rows_added": 3, "rows_merged": 1, "files_added": 1}
    assert (commit.bytes_added, commit.bytes_deleted) == (file.file_size, 0)
    assert (commit.changelog_files, commit.changelog_rows) == (1, 4)
    assert (commit.partitions, commit.buckets, commit.manifests_written, commit.manifests_merged) == (1, 1, 2, 0)
    assert (commit.snapshot_id, commit.commit_kind, commit.total_rows) == (snapshot.id, "APPEND", 3)
    assert (commit.commit_user, commit.commit_identifier) == (snapshot.commit_user, snapshot.commit_identifier)
    assert (commit.attempts, commit.retries, commit.lost_attempts, commit.error) == (1, 0, 0, None)
    assert commit.table == table.path
    assert set(commit.phase_seconds) == {"plan", "check", "write", "sync", "publish"}
    assert 0 < sum(commit.phase_seconds.values()) <= commit.seconds
    assert commit.write_seconds > 0


def test_delete_rows_are_counted(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    with metrics.collect() as measured:
        table.write(orders((1, "a", 1), (2, "b", 2)), ["-D", "+I"])
    assert (measured.commit.rows_added, measured.commit.delete_rows_added) == (2, 1)


def test_removed_rows_are_counted(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(FIRST)
    size = files(table)[0].file_size
    with metrics.collect() as measured:
        table.truncate()
    assert counts(measured.commit) == {"rows_deleted": 4, "files_deleted": 1}
    assert (measured.commit.commit_kind, measured.commit.bytes_deleted) == ("OVERWRITE", size)


def test_deletion_vectors_are_counted_by_their_rows(tmp_path):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(FIRST)
    with metrics.collect() as measured:
        table.delete("id = 2")
    commit = measured.commit
    assert (commit.rows_marked, commit.index_files_added, commit.files_added, commit.buckets) == (2, 1, 0, 1)
    with metrics.collect() as measured:
        table.delete("id = 3")
    assert measured.commit.rows_marked == 1, "a file of three marks replaces one of two"
    with metrics.collect() as measured:
        table.compact(full=True)
    [compaction] = measured.compactions
    assert (compaction.rows_in, compaction.rows_out, compaction.rows_dropped) == (4, 1, 3)
    assert measured.commits[0].rows_marked == -3


def test_compaction_counts_input_and_output(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for row in ((1, "a", 1), (1, "b", 1), (2, "c", 1)):
        table.write(orders(row))
    old = files(table)
    with metrics.collect() as measured:
        snapshot = table.with_options({"write-only": "false"}).compact(full=True)
    [new] = files(table)
    [compaction] = measured.compactions
    assert (compaction.files_in, compaction.rows_in, compaction.bytes_in) == (3, 3, sum(f.file_size for f in old))
    assert (compaction.files_out, compaction.rows_out, compaction.bytes_out) == (1, 2, new.file_size)
    assert compaction.level_0_files == 3
    assert (compaction.rows_dropped, compaction.files_moved, compaction.rejected, compaction.buckets) == (1, 0, 0, 1)
    assert compaction.snapshot_id == snapshot.id
    assert compaction.seconds > 0
    [commit] = measured.commits
    assert commit.commit_kind == "COMPACT"
    assert counts(commit) == {"rows_added": 2, "rows_deleted": 3, "files_added": 1, "files_deleted": 3}
    assert measured.commit is None, "no rows were committed"


def test_upgraded_file_counts_as_moved(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"target-file-size": "1 kb"})
    table.write(FIRST)
    with metrics.collect() as measured:
        table.compact(full=True)
    [compaction] = measured.compactions
    assert (compaction.files_moved, compaction.files_in, compaction.files_out, compaction.rows_dropped) == (1, 0, 0, 0)
    assert counts(measured.commits[0]) == {"files_moved": 1}


def test_compacting_write_makes_two_commits(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "1"})
    table.write(FIRST)
    with metrics.collect() as measured:
        table.write(orders((1, "z", 9)))
    assert [type(event) for event in measured.events] == [CommitMetrics, CommitMetrics, CompactionMetrics]
    assert [commit.commit_kind for commit in measured.commits] == ["APPEND", "COMPACT"]
    assert measured.compaction.rows_dropped == 1
    assert measured.compaction.seconds > 0
    assert measured.commits[1].rows_received == 0, "the rows are those of the first commit"


def test_routed_postponed_rows_are_counted(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    table.write(FIRST)
    with metrics.collect() as measured:
        table.compact()
    assert measured.compaction.rows_in == 4
    assert measured.compaction.rows_out == 3, "the writer of the bucket merged two rows of one key"


def test_append_compaction_is_counted(tmp_path):
    table = append_table(tmp_path / "t", **{"compaction.min.file-num": "2"})
    table.write(FIRST)
    table.write(FIRST)
    with metrics.collect() as measured:
        table.compact()
    [compaction] = measured.compactions
    assert (compaction.files_in, compaction.files_out, compaction.rows_in, compaction.rows_out) == (2, 1, 8, 8)


# ---- attempts, conflicts


def rival(table: Table, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """Let another commit take the snapshot id of the next attempts."""
    publish, left = publisher_module.publish, [times]

    def late(store, *attempt):
        if left[0]:
            left[0] -= 1
            monkeypatch.setattr(publisher_module, "publish", publish)
            with _silent():
                table.write(orders((100 + left[0], "r", 0)))
            monkeypatch.setattr(publisher_module, "publish", late)
        return publish(store, *attempt)

    monkeypatch.setattr(publisher_module, "publish", late)


def _silent():
    """Collect nothing in the block, as if it were another process."""

    class Other:
        def __enter__(self):
            self.token = listeners._collections.set(())

        def __exit__(self, *_):
            listeners._collections.reset(self.token)

    return Other()


def test_lost_attempt_is_counted(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t", **{"commit.min-retry-wait": "1 ms"})
    rival(table, monkeypatch, times=2)
    with metrics.collect() as measured:
        table.write(FIRST)
    [commit] = measured.commits
    assert (commit.attempts, commit.retries, commit.lost_attempts, commit.snapshot_id) == (3, 2, 2, 3)
    assert commit.phase_seconds["wait"] > 0
    assert commit.rows_added == 4
    assert measured.failures == []


def test_commit_that_always_loses_is_reported_as_failure(tmp_path, monkeypatch, received):
    table = append_table(tmp_path / "t", **{"commit.min-retry-wait": "1 ms", "commit.max-retries": "1"})
    rival(table, monkeypatch, times=2)
    with table.writer() as writer:
        writer.write(FIRST)
        messages = writer.prepare_commit()
    received.clear()
    with metrics.collect() as measured, pytest.raises(CommitConflictError):
        table.committer().commit(messages)
    [failure] = measured.failures
    assert (failure.error, failure.snapshot_id, failure.lost_attempts) == ("CommitConflictError", None, 2)
    assert (failure.rows_added, failure.rows_received) == (0, 0)
    assert measured.commit is None


def test_rejected_compactions_are_counted(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", **{"num-sorted-run.compaction-trigger": "1"})
    table.write(FIRST)
    with table.writer() as writer:
        writer.write(orders((1, "z", 9)))
        messages = writer.prepare_commit()
    table.compact(full=True)
    publisher = table.committer().publisher
    done = commit_messages(publisher, messages)
    [compaction] = done.metrics.compactions
    assert (compaction.rejected, compaction.snapshot_id, compaction.rows_in) == (1, None, 0)
    assert [commit.commit_kind for commit in done.metrics.commits] == ["APPEND"]


def test_repeated_commit_is_reported_once(tmp_path, received):
    table = append_table(tmp_path / "t")
    for _ in range(2):
        with table.writer() as writer:
            writer.write(FIRST)
            messages = writer.prepare_commit()
        IdempotentCommits(table.store, "stream").commit(messages, 0)
    assert [event.snapshot_id for event in received] == [1]
    with table.writer() as writer:
        writer.write(FIRST)
        messages = writer.prepare_commit()
    for _ in range(2):
        table.committer("me").commit(messages, 7)
    assert [event.snapshot_id for event in received] == [1, 2]


def test_commit_messages_carry_writer_metrics(tmp_path):
    table = keyed_table(tmp_path / "t")
    with table.writer() as writer:
        writer.write(FIRST)
        messages = writer.prepare_commit()
    assert sum(message.rows_received for message in messages) == 4
    assert messages[0].write_seconds > 0
    assert [m.write_seconds for m in messages[1:]] == [0.0]
    for message in messages:
        again = CommitMessage.from_bytes(message.to_bytes())
        assert again == message
        assert (again.rows_received, again.write_seconds) == (message.rows_received, message.write_seconds)
        assert pickle.loads(pickle.dumps(message)).rows_received == message.rows_received


def test_commit_of_messages_has_metrics(tmp_path):
    table = append_table(tmp_path / "t")
    with table.writer() as writer:
        writer.write(FIRST)
        messages = writer.prepare_commit()
    publisher = table.committer().publisher
    assert commit_messages(publisher, messages).metrics.commit.rows_added == 4
    assert overwrite_partitions(publisher, []).metrics.commit.rows_deleted == 4


def test_snapshot_metrics_are_computed_from_metadata(tmp_path):
    table = keyed_table(tmp_path / "t", changelog_producer="input", write_only="true")
    assert table.operation_metrics() == {}
    with metrics.collect() as measured:
        table.write(FIRST)
        table.write(orders((1, "a", 1)), ["-D"])
        table.with_options({"write-only": "false"}).compact(full=True)
        table.truncate()
    assert [commit.snapshot_id for commit in measured.commits] == [1, 2, 3, 4]
    for commit in measured.commits:
        recorded = table.operation_metrics(snapshot_id=commit.snapshot_id)
        assert recorded == {name: getattr(commit, name) for name in recorded}
    assert table.operation_metrics(snapshot_id=2)["delete_rows_added"] == 1
    table.tags.create("old", 1)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(OutOfRangeError):
        table.operation_metrics(tag="old")


# ---- scans


def test_scan_counts_pruned_files(tmp_path):
    schema = pa.schema([("day", pa.string()), ("n", pa.int64())])
    options = {"file-index.bloom-filter.columns": "n", "bucket": "-1"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["day"], options=options))
    for day, n in (("a", 1), ("a", 50), ("b", 2), ("a", 9)):
        table.write(pa.table({"day": [day], "n": [n]}))
    with metrics.collect() as measured:
        table.to_arrow(filter="day = 'a' AND n > 5")
    [scan] = measured.scans
    assert (scan.manifests_read, scan.manifests_skipped) == (3, 1)
    assert (scan.files, scan.files_skipped, scan.files_skipped_by_index, scan.rows) == (2, 1, 0, 2)
    assert scan.bytes == sum(f.file_size for s in table.scan(filter="n > 5").plan().splits for f in s.files)


def test_scan_without_listener_measures_nothing(tmp_path, monkeypatch):
    table = append_table(tmp_path / "t")
    table.write(FIRST)
    monkeypatch.setattr(metrics.ScanMetrics, "__init__", None)
    monkeypatch.setattr("paimon_core.read.metrics.ReadRecorder.__init__", None)
    assert table.to_arrow().num_rows == 4


def test_reads_of_splits_are_reported_from_every_thread(tmp_path, received):
    table = keyed_table(tmp_path / "t", bucket="3", write_only="true")
    for _ in range(2):
        table.write(orders(*((n, "v", n) for n in range(30))))
    received.clear()
    with metrics.collect() as measured:
        table.to_arrow(filter="id < 10")
    assert len(measured.reads) == 3
    read = measured.read
    assert (read.splits, read.files, read.rows_stored, read.rows_merged) == (3, 6, 60, 30)
    assert (read.rows_filtered, read.rows) == (20, 10)
    assert {(one.table, one.branch, one.snapshot_id, one.error) for one in received[1:]} == {
        (table.path, "main", 2, None)
    }
    assert sorted(one.rows for one in received if isinstance(one, metrics.ReadMetrics)) == sorted(
        one.rows for one in measured.reads
    )


def test_reads_of_changes_are_reported(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", changelog_producer="input")
    table.write(FIRST)
    with metrics.collect() as measured:
        rows = table.changes(0, 1)
    assert (rows.num_rows, measured.read.rows, measured.read.splits) == (4, 4, 1)


def test_read_that_stops_early_is_reported(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(FIRST)
    with metrics.collect() as measured:
        rows = table.to_batches()
        next(rows)
        assert measured.reads == []
        rows.close()
    assert (measured.read.rows, measured.read.error) == (4, None)


def test_failed_read_has_error_class(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(FIRST)
    [path] = (tmp_path / "t").glob("bucket-*/*")
    path.write_bytes(b"no data file")
    with metrics.collect() as measured, pytest.raises(CorruptedError):
        table.to_arrow()
    assert (measured.read.error, measured.read.rows) == ("CorruptedError", 0)


def test_recorder_receives_metrics_instead_of_listeners(tmp_path, received):
    table = append_table(tmp_path / "t")
    table.write(FIRST)
    [split] = table.scan().plan().splits
    received.clear()
    recorder = ReadRecorder()
    list(replace(table.reader(), recorder=recorder).to_batches(split))
    assert (recorder.metrics().rows, recorder.metrics().table, received) == (4, table.path, [])


# ---- who gets them


def test_listeners_get_every_event_until_they_are_removed(tmp_path):
    events = []
    table = append_table(tmp_path / "t")
    metrics.add_listener(events.append)
    try:
        metrics.add_listener(events.append)
        table.write(FIRST)
        assert len(events) == 1, "added twice, called once"
    finally:
        metrics.remove_listener(events.append)
    table.write(FIRST)
    assert len(events) == 1
    with pytest.raises(InvalidInputError, match="is not a listener"):
        metrics.remove_listener(events.append)
    with pytest.raises(InvalidInputError, match="a listener is a function"):
        metrics.add_listener("print")


def test_failing_listener_does_not_fail_commit(tmp_path, caplog, received):
    def broken(event):
        raise OSError("s3://user:secret@bucket is away")

    table = append_table(tmp_path / "t")
    metrics.add_listener(broken)
    try:
        table.write(FIRST)
    finally:
        metrics.remove_listener(broken)
    assert len(received) == 1, "the other listeners are called"
    assert "is away" in caplog.text
    assert "secret" not in caplog.text
    assert table.to_arrow().num_rows == 4


def test_failing_measurement_deletes_no_committed_file(tmp_path, caplog, monkeypatch):
    table = append_table(tmp_path / "t")
    monkeypatch.setattr("paimon_core.commit.measure._changed", lambda *_: 1 / 0)
    table.write(FIRST)
    assert table.to_arrow().num_rows == 4
    assert "reporting a commit" in caplog.text


def test_collections_nest_within_one_thread(tmp_path):
    tables = [append_table(tmp_path / name) for name in "ab"]
    with metrics.collect() as outer:
        other = threading.Thread(target=tables[1].write, args=(FIRST,))
        other.start()
        other.join()
        with metrics.collect() as inner:
            tables[0].write(FIRST)
        tables[0].truncate()
    assert [commit.table for commit in outer.commits] == [tables[0].path] * 2
    assert inner.events == outer.events[:1]


def test_collection_of_all_threads(tmp_path):
    tables = [append_table(tmp_path / name) for name in "ab"]
    with metrics.collect(all_threads=True) as measured, metrics.collect(all_threads=True) as same:
        other = threading.Thread(target=tables[1].write, args=(FIRST,))
        other.start()
        other.join()
        tables[0].write(FIRST)
    tables[0].write(FIRST)
    assert [commit.table for commit in measured.commits] == [tables[1].path, tables[0].path]
    assert same.events == measured.events


def test_metrics_add_up():
    one = CommitMetrics(
        table="t", commit_kind="APPEND", commit_user="u", commit_identifier=1, snapshot_id=1, seconds=1.0,
        phase_seconds={"plan": 0.5}, attempts=1, rows_added=3, total_rows=3,
    )  # fmt: skip
    two = CommitMetrics(
        table="t", commit_kind="OVERWRITE", commit_user="u", commit_identifier=2, snapshot_id=2, seconds=2.0,
        phase_seconds={"plan": 0.5, "wait": 1.0}, attempts=2, rows_added=4, total_rows=4,
    )  # fmt: skip
    both = one + two
    assert (both.seconds, both.attempts, both.rows_added) == (3.0, 3, 7)
    assert both.phase_seconds == {"plan": 1.0, "wait": 1.0}
    assert (both.snapshot_id, both.total_rows, both.commit_kind, both.commit_identifier) == (2, 4, "OVERWRITE", 2)
    with pytest.raises(TypeError):
        one + CompactionMetrics(table="t")
    gauges = [CompactionMetrics(table="t", level_0_files=number, files_in=number) for number in (3, 2)]
    assert ((gauges[0] + gauges[1]).level_0_files, (gauges[0] + gauges[1]).files_in) == (3, 5)


# ---- the log


def test_log_record_has_fields(tmp_path, caplog):
    table = keyed_table(tmp_path / "t", bucket="1")
    with caplog.at_level(logging.INFO, metrics.listeners.LOGGER):
        table.write(FIRST)
        table.to_arrow()
    [record] = [r for r in caplog.records if r.name == "paimon_core.metrics"]
    assert record.levelname == "INFO"
    assert record.paimon["event"] == "commit"
    assert record.paimon["rows_added"] == 3
    assert "error" not in record.paimon
    assert json.loads(json.dumps(record.paimon))["table"] == table.path
    assert record.context["paimon.rows_added"] == "3"
    assert record.getMessage().startswith(f"commit {table.path}: ")
    assert "rows_added=3" in record.getMessage()
    caplog.clear()
    with caplog.at_level(logging.DEBUG, metrics.listeners.LOGGER):
        table.to_arrow()
    assert [r.paimon["event"] for r in caplog.records if r.name == "paimon_core.metrics"] == ["scan", "read"]


def test_passwords_of_paths_are_hidden(tmp_path, monkeypatch, received):
    table = append_table(tmp_path / "t")
    monkeypatch.setattr(type(table.store), "root", "s3://me:secret@bucket/t")
    report_compaction(table.store, None, [], 1)
    assert [event.table for event in received] == ["s3://***@bucket/t"]


@pytest.mark.parametrize("kind", [CommitMetrics, CompactionMetrics, metrics.ScanMetrics, metrics.ReadMetrics])
def test_every_instrument_has_text_and_unit(kind):
    measures = [f.metadata[MEASURE] for f in kind.__dataclass_fields__.values() if f.metadata]
    recorded = [m for m in measures if m.kind != "attribute"]
    assert all(m.name and m.unit and m.text for m in recorded)
    assert len({m.name for m in recorded}) == len(recorded)
