"""The partitions that get no files any more."""

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
    """Return a predicate of the partitions without a file younger than a time; `None`: there are none.

    Args:
        store: of the table.
        idle: the least time since the newest file of the partition was made.
        partitions: the partitions to choose from, each {column: value}; `None`: all.
        filter: a filter on partition columns.

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
    found = {partition for partition, made in newest.items() if made <= until}
    return partitions_predicate(store, found, most=len(found)) if found else None
