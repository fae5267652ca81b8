"""Find partitions that no longer receive files."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from paimon_core.datafile.writer import local_millis
from paimon_core.errors import InvalidInputError
from paimon_core.operations.jobs.task import partition_choice
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.store.file_store import FileStore


def idle_partitions(
    store: FileStore,
    idle: timedelta,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Filter = None,
) -> Predicate | None:
    """Return a predicate for the partitions whose newest file is at least ``idle`` old; `None`: no partition is.

    Args:
        store: the table to search.
        idle: the smallest age of a partition's newest file.
        partitions: the partitions to choose from, each {column: value}; `None`: all.
        filter: a filter on partition columns; `None`: all partitions.

    Raises InvalidInputError for a table without partitions.
    """
    if not store.schema.partition_keys:
        raise InvalidInputError(f"{store.root} has no partitions that can be idle")
    where = partition_choice(store, partitions, bound_filter(filter, store.schema.fields))
    snapshot, newest = store.snapshots.latest(), dict[bytes, int]()
    live = () if snapshot is None else live_entries(store, snapshot, partition=where, with_stats=False).live
    for entry in live:
        newest[entry.partition] = max(newest.get(entry.partition, 0), entry.file.creation_time or 0)
    until = local_millis(store.now()) - idle / timedelta(milliseconds=1)
    idle_keys = {partition for partition, created in newest.items() if created <= until}
    return partitions_predicate(store, idle_keys, most=len(idle_keys)) if idle_keys else None
