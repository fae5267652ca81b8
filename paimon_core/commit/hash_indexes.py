"""Hash indexes of dynamic buckets in a commit: merge the indexes of several writers, and keep each key in one bucket.

The deleted index of a message is the index of its bucket that routed its rows. The new index is either the whole index
that replaces it (HASH), or the hashes to add to the index that the bucket has at the commit (HASH_PART).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.changes import Changes
from paimon_core.datafile.hash_index import read_hashes, write_hashes
from paimon_core.errors import CommitConflictError, CorruptedError, OutOfRangeError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.index_entry import HASH, HASH_PART, IndexManifestEntry
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.sorted_values import distinct

_Entries = Mapping[int, IndexManifestEntry]  # of one partition, by bucket


def routes_by_hash(messages: Sequence[CommitMessage]) -> bool:
    """Return True if the rows of any message were routed by hash indexes."""
    return any(e.index_type in (HASH, HASH_PART) for m in messages for e in (*m.new_indexes, *m.deleted_indexes))


def with_hash_indexes(
    store: FileStore,
    base: Snapshot | None,
    changes: Changes,
    messages: Sequence[CommitMessage],
    snapshot_id: int | None,
) -> Changes:
    """Return ``changes`` with one whole hash index for each bucket that got new keys, to follow ``base``.

    Index files that this function writes are listed in ``written_indexes``.

    Args:
        store: the table to commit to.
        base: the snapshot that the changes will follow. ``None``: the table is empty.
        changes: the changes of the messages.
        messages: the messages of all writers of the job.
        snapshot_id: the id of the snapshot that the writers read. 0: an empty table; ``None``: unknown.

    Raises CommitConflictError if the routing of rows is no longer valid: another writer put one of their keys into
    another bucket, or the bucket was overwritten.
    """
    merge = _IndexMerge(store, messages)
    present, read = hash_entries(store, base), _read_indexes(store, base, snapshot_id)
    try:
        for partition in merge.partitions:
            current = present.get(partition, {})
            changed = read is None or read.get(partition, {}) != current
            merge.merge_partition(partition, current, changed=changed)
    except BaseException:
        delete_indexes(store, merge.written)
        raise
    other_indexes = tuple(e for e in changes.new_indexes if e.index_type not in (HASH, HASH_PART))
    return replace(changes, new_indexes=(*other_indexes, *merge.entries), written_indexes=tuple(merge.written))


def delete_merged(store: FileStore, messages: Sequence[CommitMessage], snapshot: Snapshot) -> None:
    """Delete the index files of the messages that the committed snapshot does not name.

    A failure is only logged: the commit itself succeeded, and a file that remains only takes space.
    """
    merged = [e for m in messages for e in m.new_indexes if e.index_type in (HASH, HASH_PART)]
    with best_effort("deleting merged hash indexes", Exception):
        current = [] if snapshot.index_manifest is None else store.manifests.read_index(snapshot.index_manifest)
        named = {e.file_name for e in current}
        delete_indexes(store, [e for e in merged if e.file_name not in named])


def delete_indexes(store: FileStore, entries: Sequence[IndexManifestEntry]) -> None:
    """Delete index files. REQUIRES: no snapshot names them."""
    for entry in entries:
        with best_effort(f"deleting {entry.file_name}"):  # a file that remains only takes space
            store.delete_index(entry)


class _IndexMerge:
    """The merge of the hash indexes of messages, per bucket, into the entries that the table gets."""

    def __init__(self, store: FileStore, messages: Sequence[CommitMessage]) -> None:
        self._store = store
        self.entries: list[IndexManifestEntry] = []
        self.written: list[IndexManifestEntry] = []
        self._new: dict[bytes, dict[int, list[IndexManifestEntry]]] = {}
        self._routed_by: dict[bytes, dict[int, dict[str, IndexManifestEntry]]] = {}
        for message in messages:
            new = self._new.setdefault(message.partition, {}).setdefault(message.bucket, [])
            new += [e for e in message.new_indexes if e.index_type in (HASH, HASH_PART)]
            routed = self._routed_by.setdefault(message.partition, {}).setdefault(message.bucket, {})
            routed.update((e.file_name, e) for e in message.deleted_indexes if e.index_type == HASH)

    @property
    def partitions(self) -> list[bytes]:
        return list(self._new)

    def merge_partition(self, partition: bytes, current: _Entries, *, changed: bool) -> None:
        """Merge the indexes of one partition with its ``current`` ones.

        ``changed``: True if the current indexes may differ from the indexes that the writers read.
        """
        sets: dict[int, np.ndarray] = {}
        shared = False
        for bucket, new in self._new[partition].items():
            index, routed = current.get(bucket), self._routed_by[partition][bucket]
            self._check_superset(routed, index, partition)
            if not new:
                continue
            whole = index is None or (new[0].index_type == HASH and index.file_name in routed)
            if len(new) == 1 and whole:
                self.entries.append(replace(new[0], index_type=HASH))
                continue
            shared = shared or len(new) > 1
            parts = [*new, *([] if index is None else [index])]
            sets[bucket] = distinct(np.sort(np.concatenate([read_hashes(self._store, e) for e in parts])))
        if changed or shared:
            self._check_disjoint(partition, sets, current)
        for bucket, hashes in sets.items():
            entry = write_hashes(self._store, BucketRef(partition, bucket), hashes)
            self.written.append(entry)
            self.entries.append(entry)

    def _check_superset(
        self, routed: Mapping[str, IndexManifestEntry], index: IndexManifestEntry | None, partition: bytes
    ) -> None:
        """Raise CommitConflictError unless the current index has all keys of the indexes that routed rows."""
        for name, entry in routed.items():
            if index is not None and index.file_name == name:
                continue
            try:
                lost = index is None or len(
                    np.setdiff1d(read_hashes(self._store, entry), read_hashes(self._store, index))
                )
            except CorruptedError:  # the index that routed the rows has expired with its snapshot
                lost = True
            if lost:
                raise self._conflict(partition, f"bucket {entry.bucket} was overwritten")

    def _check_disjoint(self, partition: bytes, sets: Mapping[int, np.ndarray], current: _Entries) -> None:
        """Raise CommitConflictError if a key would be in two buckets."""
        merged = {e.bucket: e for e in self.entries if e.partition == partition}
        final = {**current, **merged}
        all_sets = [
            *sets.values(),
            *(distinct(np.sort(read_hashes(self._store, e))) for b, e in final.items() if b not in sets),
        ]
        hashes = np.sort(np.concatenate(all_sets)) if all_sets else np.empty(0, np.int32)
        if (hashes[1:] == hashes[:-1]).any():
            raise self._conflict(partition, "another writer put the same new keys into another bucket")

    def _conflict(self, partition: bytes, problem: str) -> CommitConflictError:
        path = self._store.partition_path(partition)
        return CommitConflictError(
            f"commit to {self._store.root} conflicts with another one: {problem} {f'in {path} ' if path else ''}"
            "since the rows were routed to buckets: write them again"
        )


def hash_entries(store: FileStore, snapshot: Snapshot | None) -> dict[bytes, dict[int, IndexManifestEntry]]:
    """Return the hash indexes of a snapshot, by partition and bucket."""
    indexes: dict[bytes, dict[int, IndexManifestEntry]] = {}
    if snapshot is not None and snapshot.index_manifest is not None:
        for entry in store.manifests.read_index(snapshot.index_manifest):
            if entry.index_type == HASH:
                indexes.setdefault(entry.partition, {})[entry.bucket] = entry
    return indexes


def _read_indexes(
    store: FileStore, base: Snapshot | None, snapshot_id: int | None
) -> dict[bytes, dict[int, IndexManifestEntry]] | None:
    """Return the hash indexes that the writers read; ``None``: unknown, or expired by now."""
    if not snapshot_id:
        return None if snapshot_id is None else {}
    try:
        return hash_entries(
            store, base if base is not None and base.id == snapshot_id else store.snapshots.get(snapshot_id)
        )
    except (OutOfRangeError, FileNotFoundError, CorruptedError):  # it has expired
        return None
