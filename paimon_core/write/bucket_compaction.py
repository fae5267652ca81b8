"""Bucket compaction: the levels that a bucket's writer compacts, and its compactions since the last commit."""

import time
from collections.abc import Sequence
from contextlib import suppress

from paimon_core.datafile.deletion_vectors import read_entries, write_vectors
from paimon_core.datafile.writer import local_millis
from paimon_core.deletion.vector import DeletionVector
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import CompactUnit, UniversalCompaction, num_levels, stop_trigger
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.schema.continuity import continues
from paimon_core.store.file_store import FileStore
from paimon_core.write.append_compactor import newer_file
from paimon_core.write.bucket_state import BucketState
from paimon_core.write.compactor import Compacted, CompactTask, compact, overlapping_names


class BucketCompaction:
    """The compaction of one bucket by its own writer, between two commits.

    A message reports all compactions as one step: from files in the table, or added by the same commit, to the result.
    Files that were created and replaced in between are deleted at once, because no message names them.

    If the bucket has files of a newer schema than the writer, it is compacted under the newest schema. No column is
    lost, and the writer's rows still leave level 0, which readers of some tables skip.

    Args:
        store: the table to write.
        bucket: the bucket to write to.
        state: the bucket's state at the base snapshot.
        writes_changelog: False: no changelog, even if the table has a changelog producer.
    """

    def __init__(
        self, store: FileStore, bucket: BucketLocation, state: BucketState, *, writes_changelog: bool = True
    ) -> None:
        self._store, self._bucket, self._writes_changelog = store, bucket, writes_changelog
        self._policy = UniversalCompaction.of(store.options)
        self._stop = stop_trigger(store.options)
        self._levels = self._restored(state.files)
        self._entries = state.vectors
        self._vectors: dict[str, DeletionVector] | None = None  # read when first needed
        self._new_indexes: tuple[IndexManifestEntry, ...] = ()
        self._vectors_changed = False  # since the index files were written
        self._changelog: list[DataFileMeta] = []
        self._before: dict[str, DataFileMeta] = {}
        self._after: dict[str, DataFileMeta] = {}
        self._last_full: int | None = None
        self._calls = 0
        self._has_new_files = False  # since the last full compaction
        self._seconds = 0.0  # of compactions since the last release

    def _restored(self, files: Sequence[DataFileMeta]) -> Levels:
        return Levels.of(files, self._store.schema.key_arrow, num_levels(self._store.options))

    @property
    def size(self) -> int:
        """Bytes of all files of the bucket."""
        return sum(run.size for run in self._levels.runs)

    def refresh(self, state: BucketState) -> None:
        """Continue from this state of the bucket. REQUIRES: `release` was called after the last compaction."""
        self._levels = self._restored(state.files)
        self._entries, self._vectors = state.vectors, None

    def add(self, files: Sequence[DataFileMeta]) -> None:
        """Add new level-0 files."""
        self._levels = self._levels.apply((), files, self._store.schema.key_arrow)
        self._has_new_files = self._has_new_files or bool(files)

    def compact_to_stop_trigger(self) -> None:
        """Compact while there are more runs than ``num-sorted-run.stop-trigger``."""
        while len(self._levels.runs) > self._stop and self._step():
            pass

    def compact_if_due(self) -> None:
        """Compact while the policy picks a compaction."""
        while self._step():
            pass

    def full(self) -> None:
        """Compact all files to the highest level, if a file was added since the last full compaction."""
        marked = {r.data_file for entry in self._entries for r in entry.deletion_ranges or ()}
        if self._has_new_files and (unit := self._policy.full(self._levels, marked)):
            self._run(unit)
        self._has_new_files = False

    def _step(self) -> bool:
        self._calls += 1
        clock = local_millis(self._store.now())
        unit = self._policy.pick(self._levels, clock, self._last_full, self._calls)
        if unit is None:
            return False
        if unit.output_level == self._levels.max_level:
            self._last_full = clock
        return self._run(unit)

    def _run(self, unit: CompactUnit) -> bool:
        """Run one compaction. Return True if any file changed. Raises TableChangedError if the table was replaced."""
        if newer_file(self._store, self._levels.all_files) is not None:
            self._store = _at_newest_schema(self._store)
        if self._vectors is None:
            self._vectors = read_entries(self._store, self._entries)
        task = CompactTask.of(self._store, self._bucket, self._levels, unit, writes_changelog=self._writes_changelog)
        started = time.monotonic()
        result = compact(self._store, task, self._vectors)
        self._seconds += time.monotonic() - started
        vectors = result.vectors(self._vectors)
        self._vectors_changed = self._vectors_changed or vectors != self._vectors
        self._vectors = vectors
        self._levels = self._levels.apply(result.before, result.after, self._store.schema.key_arrow)
        self._note(result)
        return bool(result.before)

    def _note(self, result: Compacted) -> None:
        self._changelog += result.changelog
        current = {f.file_name for f in result.after}
        for file in result.before:
            created_here = self._after.pop(file.file_name, None) is not None
            if not created_here:
                self._before[file.file_name] = file
            elif file.file_name not in self._before and file.file_name not in current:
                self._delete(file)
        self._after.update((f.file_name, f) for f in result.after)

    def _delete(self, file: DataFileMeta) -> None:
        with suppress(OSError):  # no message names the file: if it stays, it only takes space
            self._store.delete_file(self._bucket.ref, file)

    def write_deletion_vectors(self) -> None:
        """Write the deletion vectors to an index file for the next `release`, if they changed."""
        if self._vectors is None or not self._vectors_changed:
            return
        self._forget_deletion_vectors()
        self._new_indexes = write_vectors(self._store, self._bucket.ref, self._vectors)

    def release(self) -> CommitMessage:
        """Return a message with the compactions since the last call, and release their files to the caller.

        REQUIRES: `write_deletion_vectors` was called.
        """
        changed = self._vectors_changed
        message = CommitMessage(
            *self._bucket,
            compact_before=tuple(self._before.values()),
            compact_after=tuple(self._after.values()),
            compact_changelog=tuple(self._changelog),
            compact_new_indexes=self._new_indexes if changed else (),
            compact_deleted_indexes=self._entries if changed else (),
            compact_lookup_files=overlapping_names(
                self._store,
                tuple(self._before.values()),
                (f for f in self._levels.all_files if f.file_name not in self._after),
            ),
            compact_seconds=self._seconds,
        )
        if changed:
            self._entries = self._new_indexes
        self._forget()
        return message

    def abort(self) -> None:
        """Delete the created files that were not released. Upgraded files stay: the table has them already."""
        for name, file in self._after.items():
            if name not in self._before:
                self._delete(file)
        for file in self._changelog:
            self._delete(file)
        self._forget_deletion_vectors()
        self._forget()

    def _forget_deletion_vectors(self) -> None:
        for entry in self._new_indexes:
            with suppress(OSError):
                self._store.delete_index(entry)
        self._new_indexes = ()

    def _forget(self) -> None:
        self._before, self._after, self._changelog = {}, {}, []
        self._new_indexes, self._vectors_changed, self._seconds = (), False, 0.0


def _at_newest_schema(store: FileStore) -> FileStore:
    """Return the store at the newest schema, or ``store`` if rows of its schema are not valid rows of the newest."""
    newest = store.at_newest_schema()
    stored = store.schemas.get(store.schema.id), store.schemas.get(newest.schema.id)
    return newest if continues(*stored) else store
