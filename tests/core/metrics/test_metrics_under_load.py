"""Metrics under load: threads write, compact and read, listeners come, go and fail, and every number is exact."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from paimon_core import metrics
from paimon_core.errors import CommitConflictError
from paimon_core.metrics import CommitMetrics, CompactionMetrics, Metrics, ReadMetrics
from tests.support.tables import keyed_table, orders

WRITES, BATCH = 25, 40


def totals(reader: InMemoryMetricReader) -> dict[str, float]:
    """Return the sums of all counters, and the numbers of records of all histograms, over all attributes."""
    scopes = [scope for resource in reader.get_metrics_data().resource_metrics for scope in resource.scope_metrics]
    return {
        metric.name: sum(getattr(point, "value", getattr(point, "count", 0)) for point in metric.data.data_points)
        for scope in scopes
        for metric in scope.metrics
    }


class Load:
    """Threads that work on one table until its writers are done."""

    def __init__(self, table):
        self.table, self.done = table, threading.Event()
        self.returned: list[int] = []  # the rows of each read

    def write(self, writer: int) -> None:
        rows = [(writer * 1_000_000 + key, "a", key) for key in range(BATCH)]
        for _ in range(WRITES):
            self.table.write(orders(*rows))

    def compact(self) -> None:
        table = self.table.with_options({"write-only": "false"})
        while not self.done.is_set():
            with suppress(CommitConflictError):
                table.compact(full=True)

    def read(self) -> None:
        while not self.done.is_set():
            self.returned.append(self.table.to_arrow().num_rows)

    def listen(self) -> None:
        """Add and remove a listener that fails, and collect during the work."""

        def failing(event: Metrics) -> None:
            raise ValueError(event.event)

        while not self.done.is_set():
            metrics.add_listener(failing)
            with metrics.collect(all_threads=True) as collected:
                self.done.wait(0.002)
            metrics.remove_listener(failing)
            assert all(isinstance(event, Metrics) for event in collected.events)


@pytest.mark.more
def test_each_event_is_counted_once_under_load(tmp_path, reader, caplog):
    caplog.set_level("CRITICAL", logger=metrics.listeners.LOGGER)  # the failing listener warns of each event
    table = keyed_table(tmp_path / "t", bucket="2", **{"write-only": "true", "commit.min-retry-wait": "1 ms"})
    events: list[Metrics] = []
    metrics.add_listener(events.append)
    load = Load(table)
    try:
        with ThreadPoolExecutor(8) as pool:
            others = [pool.submit(work) for work in (load.compact, load.read, load.read, load.listen)]
            writers = [pool.submit(load.write, number) for number in range(4)]
            for writer in writers:
                writer.result()
            load.done.set()
            for one in others:
                one.result()
    finally:
        load.done.set()
        metrics.remove_listener(events.append)
    snapshots = {snapshot.id: snapshot for snapshot in table.snapshots()}
    commits = [event for event in events if isinstance(event, CommitMetrics) and event.error is None]
    assert sorted(commit.snapshot_id for commit in commits) == sorted(snapshots), "each snapshot has one commit"
    appended = [commit for commit in commits if commit.commit_kind == "APPEND"]
    assert len(appended) == 4 * WRITES
    assert {commit.rows_added for commit in appended} == {BATCH}
    for commit in commits:
        assert commit.total_rows == snapshots[commit.snapshot_id].total_record_count
    failed = [event for event in events if isinstance(event, CommitMetrics) and event.error is not None]
    for commit in commits:
        assert commit.attempts == 1 + commit.retries
        assert commit.lost_attempts <= commit.retries
    reads = [event for event in events if isinstance(event, ReadMetrics)]
    assert sum(read.rows for read in reads) == sum(load.returned)
    assert all(
        read.rows_stored == read.rows + read.rows_skipped + read.rows_deleted + read.rows_merged + read.rows_retracted
        for read in reads
    )
    exported = totals(reader)
    assert exported["paimon.commit.duration"] == len(commits) + len(failed)
    assert exported["paimon.commit.rows.added"] == sum(commit.rows_added for commit in commits + failed)
    assert exported["paimon.commit.attempts"] == sum(commit.attempts for commit in commits + failed)
    assert exported["paimon.read.rows"] == sum(load.returned)
    compactions = [event for event in events if isinstance(event, CompactionMetrics)]
    assert exported["paimon.compaction.rows.in"] == sum(one.rows_in for one in compactions)
    assert compactions
    assert load.returned
