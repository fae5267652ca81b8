"""Compaction after a write whose writers met in buckets: each bucket is brought into shape as a writer of its own would
have done, in a snapshot that follows the rows."""

from collections.abc import Collection
from functools import partial

from paimon_core.datafile.deletions import by_bucket, vector_entries
from paimon_core.maintenance.carry_out import carry_out
from paimon_core.maintenance.task import BucketFiles, Buckets, files_by_bucket
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.options.lsm import FULL_COMPACTION_DELTA_COMMITS, WRITE_ONLY
from paimon_core.scan.entries import partitions_predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import InlineAppend
from paimon_core.write.inline import InlineCompaction
from paimon_core.write.restore import BucketState
from paimon_core.write.routing import BucketMode, bucket_mode

__all__ = ["compact_touched"]


def compact_touched(
    store: FileStore, touched: Collection[tuple[bytes, int]], *, tells: bool = True, number: int | None = None
) -> Snapshot | None:
    """Compact what is due in these buckets of the newest snapshot, in one COMPACT snapshot; None if nothing is.

    ``tells``: changes are told, where the table has a changelog producer for it; not after an overwrite. ``number`` is
    that of the commit, where commits are numbered: with ``full-compaction.delta-commits`` = n every n-th one ends with
    a full compaction, of all buckets, for those of the commits before are due too.
    Nothing is done to a table that is ``write-only`` or has no buckets. Memory: that of two compactions, however
    large the buckets are. Raises what the commit raises; no row is at stake.
    """
    touched = {(partition, bucket) for partition, bucket in touched if bucket >= 0}  # others wait to be dealt out
    if not touched or store.options.value(WRITE_ONLY) or bucket_mode(store.schema) is BucketMode.BUCKET_UNAWARE:
        return None
    full = _full(store, number)
    due = None if full and number is not None else touched

    def plan(newest: Snapshot, late: Buckets | None) -> list[BucketFiles]:
        return _found(store, newest, due if late is None else late)

    return carry_out(store, plan, partial(_shaped, full=full, tells=tells))[0]


def _found(store: FileStore, snapshot: Snapshot, buckets: Buckets | None) -> list[BucketFiles]:
    where = None if buckets is None else partitions_predicate(store, {partition for partition, _ in buckets})
    keyed = bool(store.schema.primary_keys)  # only files with keys move as they are
    found = files_by_bucket(store, snapshot, partition=where, buckets=buckets, with_stats=keyed)
    vectors = by_bucket(vector_entries(store, snapshot)) if keyed else {}
    return [BucketFiles(*at, tuple(files), vectors.get(at[:2], ())) for at, files in found.items()]


def _shaped(store: FileStore, task: BucketFiles, *, full: bool, tells: bool) -> CommitMessage:
    if store.schema.primary_keys:
        return _keyed(store, task, full=full, tells=tells)
    return _appended(store, task, full=full)


def _keyed(store: FileStore, task: BucketFiles, *, full: bool, tells: bool) -> CommitMessage:
    place = task.partition, task.bucket, task.total_buckets
    inline = InlineCompaction(store, place, BucketState(vectors=task.vectors), tells=tells)
    inline.add(task.files)
    try:
        if full:
            inline.full()
        else:
            inline.keep_in_shape()
        inline.seal()
    except BaseException:
        inline.abort()
        raise
    return inline.hand_over()


def _appended(store: FileStore, task: BucketFiles, *, full: bool) -> CommitMessage:
    inline = InlineAppend(store, (task.partition, task.bucket, task.total_buckets), task.files)
    try:
        joined = inline.run((), full=full)
    except BaseException:
        inline.abort()
        raise
    inline.hand_over()
    return CommitMessage(
        task.partition,
        task.bucket,
        task.total_buckets,
        compact_before=joined.before,
        compact_after=joined.after,
        compact_deleted_indexes=joined.vectors,
    )


def _full(store: FileStore, number: int | None) -> bool:
    """Where full compactions are due every n commits, one without a number, which cannot be counted, ends with one."""
    every = store.options.value(FULL_COMPACTION_DELTA_COMMITS)
    return every is not None and (number is None or number % every == 0)
