"""Compactions that run concurrently with other commits: check which are still valid, and list their files."""

from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.commit.changes import Changes, compact_changes
from paimon_core.commit.conflict import Conflict, order_conflict, position_conflict, replacement_conflict
from paimon_core.commit.index_changes import apply_indexes, vector_conflict
from paimon_core.datafile.deletion_vectors import single_index_per_bucket, vector_entries
from paimon_core.manifest.bucket import BucketRef, group_by_bucket
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.bucket import POSTPONED
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class RejectedCompaction:
    """A compaction that can no longer be committed, and the conflict that prevents it."""

    message: CommitMessage
    conflict: Conflict


def has_compaction(message: CommitMessage) -> bool:
    """Return True if the message has a compaction, even one that only marked rows of higher levels as deleted."""
    files = (message.compact_before, message.compact_after, message.compact_changelog)
    return any((*files, message.compact_new_indexes, message.compact_deleted_indexes))


def written_files(message: CommitMessage) -> list[DataFileMeta]:
    """Return the files that the compaction of the message wrote.

    Files that were only upgraded to another level are left out: the table may refer to them. For files that got new
    indexes, only the index files are returned, as separate files.
    """
    inputs = (*message.compact_before, *message.new_files)
    input_names = {f.file_name for f in inputs}
    named = {name for f in inputs for name in f.extra_files}
    moved = [f for f in message.compact_after if f.file_name in input_names]
    indexes = [f.extra_file(name) for f in moved for name in f.extra_files if name not in named]
    return [f for f in (*message.compact_after, *message.compact_changelog) if f.file_name not in input_names] + indexes


def _keeps_levels(message: CommitMessage) -> bool:
    """Return True if the compaction changes only metadata: all files keep their names and levels."""
    before, after = (
        {(f.file_name, f.level) for f in files} for files in (message.compact_before, message.compact_after)
    )
    return before == after


def still_valid(
    store: FileStore, base: Snapshot | None, messages: Sequence[CommitMessage]
) -> tuple[list[CommitMessage], list[RejectedCompaction]]:
    """Split the messages into compactions that can be committed on ``base``, and rejected compactions.

    A compaction is valid if every input file is live, the deletion vectors it used are unchanged, and its output
    overlaps no other file of its level. The messages are checked in order, each on ``base`` plus the earlier valid
    ones.
    """
    live = _live(store, base, {m.bucket_ref for m in messages})
    key_schema = store.schema.key_arrow if store.schema.primary_keys else None
    vectors = vector_entries(store, base)
    valid: list[CommitMessage] = []
    rejected: list[RejectedCompaction] = []
    for message in messages:
        at = message.bucket_ref
        files = live.get(at, [])
        changes = compact_changes([message])
        names = {e.file.file_name for e in files}
        conflict = (
            replacement_conflict(changes, files, key_schema)
            or vector_conflict(changes, vectors, names, single_index=single_index_per_bucket(store))
            or _reorders_rows(store, changes, files, message)
        )
        if conflict is not None:
            rejected.append(RejectedCompaction(message, conflict))
            continue
        valid.append(message)
        removed = {e.identity for e in changes.entries if e.kind == DELETE}
        added = [e for e in changes.entries if e.kind == ADD]
        live[at] = [*(e for e in files if e.identity not in removed), *added]
        vectors = apply_indexes(
            vectors,
            added=changes.new_indexes,
            deleted=changes.deleted_indexes,
            removed_files=changes.removed_files,
            single_index=single_index_per_bucket(store),
        )
    return _whole_partitions_only(store, base, valid, rejected)


def _reorders_rows(
    store: FileStore, changes: Changes, live: Sequence[ManifestEntry], message: CommitMessage
) -> Conflict | None:
    """Return a conflict if a compaction by primary key would change rows, because it has not read some files."""
    if not store.schema.primary_keys:
        return None
    if _keeps_levels(message):
        return position_conflict(changes, live, store.schema.key_arrow)
    return order_conflict(
        changes,
        live,
        store.schema.key_arrow,
        {f.file_name for f in message.new_files},
        lookup_files=message.compact_lookup_files if store.traits.needs_lookup else None,
        mixes=not store.traits.keeps_rows,
    )


def _whole_partitions_only(
    store: FileStore, base: Snapshot | None, valid: list[CommitMessage], rejected: list[RejectedCompaction]
) -> tuple[list[CommitMessage], list[RejectedCompaction]]:
    """Reject all compactions that route a partition's postponed rows, if one of them was rejected.

    The rows of a postponed bucket must be routed to all their buckets, or to none of them. The compactions are also
    rejected if the partition has another number of buckets by now.
    """
    totals = {m.partition: 0 for m in (*valid, *(r.message for r in rejected)) if m.bucket == POSTPONED}
    if not totals or base is None:
        return valid, rejected
    totals.update((m.partition, m.total_buckets) for m in valid if m.bucket >= 0 and m.partition in totals)
    broken = {r.message.partition: r.conflict for r in rejected if r.message.partition in totals}
    for entry in live_entries(store, base, partition=partitions_predicate(store, set(totals)), with_stats=False).live:
        total = totals.get(entry.partition, 0)
        if entry.bucket >= 0 and total not in (0, entry.total_buckets):
            broken[entry.partition] = Conflict(f"the partition has {entry.total_buckets} buckets now, not {total}")
    torn = [RejectedCompaction(m, broken[m.partition]) for m in valid if m.partition in broken]
    return [m for m in valid if m.partition not in broken], [*rejected, *torn]


def _live(store: FileStore, base: Snapshot | None, buckets: set[BucketRef]) -> dict[BucketRef, list[ManifestEntry]]:
    if base is None:
        return {}
    return group_by_bucket(live_entries(store, base, buckets=buckets, with_stats=False).live)
