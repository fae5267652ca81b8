"""The conflict check of a commit: read what other commits have changed, and decide with `commit.conflict`.

The decisions are pure functions; this module only fetches the snapshots and manifest entries that they need.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from paimon_core.commit.changes import Changes
from paimon_core.commit.conflict import (
    Conflict,
    bucket_conflict,
    column_conflict,
    deleted_row_conflict,
    marked_range_conflict,
    replacement_conflict,
    row_conflict,
    statement_conflict,
)
from paimon_core.commit.index_changes import deleted_counts, grown_vectors, vector_conflict
from paimon_core.commit.key_overlap import no_key_in_common
from paimon_core.datafile.deletion_vectors import single_index_per_bucket, vector_entries
from paimon_core.errors import InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.entry import DELETE, ManifestEntry
from paimon_core.options.bucket import POSTPONED
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.store.expired import ignore_if_expired
from paimon_core.store.file_store import FileStore


class ConflictCheck:
    """A check of changes against the snapshot that they would follow (behaviour 7.5)."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def find(self, changes: Changes, base: Snapshot | None) -> Conflict | None:
        """Return the conflict of ``changes`` with ``base``. ``None``: they can follow it.

        ``base``: the newest snapshot. ``None``: the table has no snapshot.
        """
        started = changes.started_from
        conflict = None if started is None else self._history_conflict(started, base)
        if conflict is not None:
            return conflict
        if base is None:
            deletes = any(e.kind == DELETE for e in changes.entries)
            return Conflict("it deletes files of an empty table") if deletes else None
        conflict = None if started is None else self._guarded_conflict(changes, started, base)
        if conflict is not None:
            return conflict
        snapshot_id = started.snapshot_id if started is not None and Guard.LAYOUT in started.guards else None
        if self._store.schema.is_cross_partition and changes.kind == CommitKind.APPEND and changes.entries:
            return self._cross_partition_conflict(base, snapshot_id)
        if snapshot_id is not None:
            conflict = bucket_conflict(changes, self._added_since(snapshot_id, base))
            if conflict is not None:
                return conflict
        marked = grown_vectors(changes) if self._store.traits.data_evolution and not changes.built_on_base else ()
        if changes.replaces_columns or (marked and changes.kind != CommitKind.COMPACT):
            read_at = None if started is None else started.snapshot_id
            conflict = self._row_range_conflict(changes, marked, base, read_at)
            if conflict is not None:
                return conflict
        return self._replacement_conflict(changes, base) if changes.needs_check else None

    def _history_conflict(self, started: StartedFrom, base: Snapshot | None) -> Conflict | None:
        """Check that the snapshots that the work read are in the history of ``base``, or have expired from it."""
        for number, fingerprint in started.snapshots:
            if base is None or number > base.id:
                return Conflict(f"the table was rolled back past snapshot {number}, which was read: write again")
            if fingerprint is None:
                continue
            now = base if number == base.id else self._snapshot(number)
            if now is not None and now.fingerprint != fingerprint:
                return Conflict(
                    f"snapshot {number}, which was read, was rolled back and its id was used again: write again"
                )
        return None

    def _guarded_conflict(self, changes: Changes, started: StartedFrom, base: Snapshot) -> Conflict | None:
        """Check that other commits have not changed what the guards of ``started`` protect."""
        if Guard.ROWS in started.guards:
            conflict = self._read_conflict(changes, started.snapshot_id, base, by_key=Guard.KEYS in started.guards)
            if conflict is not None:
                return conflict
        return self._statement_conflict(started.snapshot_id, base) if Guard.STATEMENT in started.guards else None

    def _row_range_conflict(
        self, changes: Changes, marked: Collection[str], base: Snapshot, read_at: int | None
    ) -> Conflict | None:
        """Check row ranges whose columns are replaced or whose rows are deleted against other commits.

        Args:
            changes: the changes to check.
            marked: the data files that get more deleted rows.
            base: the newest snapshot.
            read_at: the id of the snapshot that was read; `None`: later commits do not matter.
        """
        partitions = {e.partition for e in (*changes.entries, *changes.new_indexes)}
        chosen = partitions_predicate(self._store, partitions)
        current = live_entries(self._store, base, partition=chosen, with_stats=False)
        live = [e for e in current.live if e.partition in partitions]
        conflict = None
        if changes.replaces_columns:
            conflict = column_conflict(changes, live, read_at)
            if conflict is None and read_at is not None:
                conflict = marked_range_conflict(changes, live, self._marked_since(read_at, base))
        if conflict is None and read_at is not None:
            conflict = deleted_row_conflict(marked, live, read_at)
        return conflict

    def _marked_since(self, snapshot_id: int, base: Snapshot) -> set[str]:
        """Return the data files of `base` whose rows were deleted after a snapshot; all, if the snapshot expired."""
        before = self._snapshot(snapshot_id) if snapshot_id else None
        if before is not None and before.index_manifest == base.index_manifest:
            return set()
        old, new = (deleted_counts(vector_entries(self._store, snapshot)) for snapshot in (before, base))
        return {name for name, count in new.items() if old.get(name) != count}

    def _replacement_conflict(self, changes: Changes, base: Snapshot) -> Conflict | None:
        """Check replaced data files and deletion vectors against the live files of their buckets."""
        touched = {e.bucket_ref for e in (*changes.entries, *changes.new_indexes)}
        live = live_entries(self._store, base, buckets=touched, with_stats=False).live
        return replacement_conflict(
            changes, live, self._store.schema.key_arrow if self._store.schema.primary_keys else None
        ) or vector_conflict(
            changes,
            vector_entries(self._store, base),
            {e.file.file_name for e in live},
            single_index=single_index_per_bucket(self._store),
        )

    def _read_conflict(self, changes: Changes, read_at: int, base: Snapshot, *, by_key: bool) -> Conflict | None:
        """Check that the rows read at snapshot ``read_at`` are unchanged in the buckets that the changes write to.

        ``by_key``: True to ignore changes of other keys.

        Raises UnsupportedError if postponed rows wait in these buckets, because the reader has not seen them.
        """
        waiting = {e.bucket_ref for e in changes.entries if e.bucket == POSTPONED}
        if waiting and live_entries(self._store, base, buckets=waiting, with_stats=False).live:
            raise UnsupportedError(
                f"rows of {self._store.root} that wait in bucket {POSTPONED} were not read: compact() first"
            )
        for snapshot, entries in self._deltas(range(read_at + 1, base.id + 1), lambda _: True):
            if snapshot is None:
                return Conflict(f"commits since snapshot {read_at} have expired: read again")
            conflict = row_conflict(changes, snapshot, entries)
            if conflict is not None and not (by_key and no_key_in_common(self._store, changes, entries)):
                return conflict
        return None

    def _statement_conflict(self, read_at: int, base: Snapshot) -> Conflict | None:
        """Check that no other statement has changed rows since snapshot ``read_at``."""
        for snapshot in map(self._snapshot, range(read_at + 1, base.id + 1)):
            if snapshot is None:
                return Conflict(f"commits since snapshot {read_at} have expired: read again")
            conflict = statement_conflict(snapshot)
            if conflict is not None:
                return conflict
        return None

    def _cross_partition_conflict(self, base: Snapshot, snapshot_id: int | None) -> Conflict | None:
        """Check that no rows were written since this snapshot: keys of this table may move between partitions."""
        if snapshot_id is None:
            raise InvalidInputError(
                f"keys of {self._store.root} may move between partitions: a commit must name the snapshot that its "
                "writer read (started_from=writer.started_from)"
            )
        for snapshot in map(self._snapshot, range(snapshot_id + 1, base.id + 1)):
            if snapshot is None or snapshot.commit_kind != CommitKind.COMPACT:
                return Conflict("another commit wrote rows, which may have moved the same keys: write again")
        return None

    def _added_since(self, snapshot_id: int, base: Snapshot) -> list[ManifestEntry]:
        """Return the entries added after this snapshot by commits that can change a partition's bucket count.

        If one of these commits has expired, return all live entries instead.
        """
        store = self._store
        by_partition = store.schema.bucket == POSTPONED  # the first writer of a partition decides
        entries = []
        for snapshot, added in self._deltas(
            range(snapshot_id + 1, base.id + 1), lambda s: s.commit_kind == CommitKind.OVERWRITE or by_partition
        ):
            if snapshot is None:
                return live_entries(store, base, with_stats=False).live
            entries += added
        return entries

    def _deltas(
        self, ids: Iterable[int], reads_delta: Callable[[Snapshot], bool]
    ) -> Iterator[tuple[Snapshot | None, list[ManifestEntry]]]:
        """Yield each snapshot with its delta entries, if ``reads_delta`` is True for it. ``None``: it has expired."""
        manifests = self._store.manifests

        def read(number: int) -> tuple[Snapshot | None, list[ManifestEntry]]:
            snapshot = self._snapshot(number)
            if snapshot is not None:
                with ignore_if_expired(self._store, snapshot):
                    metas = manifests.read_list(snapshot.delta_manifest_list) if reads_delta(snapshot) else []
                    return snapshot, [e for m in metas for e in manifests.read(m.file_name, with_stats=False)]
            return None, []

        return parallel_map(read, ids)

    def _snapshot(self, snapshot_id: int) -> Snapshot | None:
        try:
            return self._store.snapshots.get(snapshot_id)
        except OutOfRangeError:  # expired since it was listed
            return None
