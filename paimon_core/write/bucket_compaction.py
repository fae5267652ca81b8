"""A writer that compacts the bucket it writes to: the levels as it knows them, and what it did to them so far."""

from collections.abc import Sequence
from contextlib import suppress

from paimon_core.datafile.deletion_vectors import read_entries, write_vectors
from paimon_core.datafile.writer import local_millis
from paimon_core.deletion.vector import DeletionVector
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import CompactUnit, UniversalCompaction, num_levels, stop_trigger
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.store.file_store import FileStore
from paimon_core.write.compactor import Compacted, CompactTask, beside_names, compact
from paimon_core.write.restore import BucketState


class BucketCompaction:
    """The levels of one bucket between two commits of its writer.

    What was compacted is told as one step from the files the table has (or gets by the same commit) to those it is to
    have: files made and replaced in between are deleted at once, for no message names them. ``writes_changelog``:
    changes are told where the table has a changelog producer for it.
    """

    def __init__(
        self, store: FileStore, place: tuple[bytes, int, int], state: BucketState, *, writes_changelog: bool = True
    ) -> None:
        self._store, self._place, self._tells = store, place, writes_changelog
        self._policy = UniversalCompaction.of(store.options)
        self._stop = stop_trigger(store.options)
        self._levels = self._restored(state.files)
        self._entries = state.vectors
        self._vectors: dict[str, DeletionVector] | None = None  # read when first needed
        self._sealed: tuple[IndexManifestEntry, ...] = ()
        self._remarked = False  # other rows are deleted than the index files say
        self._changelog: list[DataFileMeta] = []
        self._before: dict[str, DataFileMeta] = {}
        self._after: dict[str, DataFileMeta] = {}
        self._last_full: int | None = None
        self._calls = 0
        self._grown = False  # since the last full compaction

    def _restored(self, files: Sequence[DataFileMeta]) -> Levels:
        return Levels.of(files, self._store.schema.key_arrow, num_levels(self._store.options))

    @property
    def size(self) -> int:
        """Bytes of all files of the bucket."""
        return sum(run.size for run in self._levels.runs)

    def refresh(self, state: BucketState) -> None:
        """Go on from this state. REQUIRES: what was done before was handed over."""
        self._levels = self._restored(state.files)
        self._entries, self._vectors = state.vectors, None

    def add(self, files: Sequence[DataFileMeta]) -> None:
        """New files of level 0."""
        self._levels = self._levels.apply((), files, self._store.schema.key_arrow)
        self._grown = self._grown or bool(files)

    def compact_to_stop_trigger(self) -> None:
        """Compact while there are more runs than writing may go on with."""
        while len(self._levels.runs) > self._stop and self._step():
            pass

    def compact_if_due(self) -> None:
        """Compact while the policy asks for it."""
        while self._step():
            pass

    def full(self) -> None:
        """Bring all files to the highest level, if any was added since that was done last."""
        marked = {r.data_file for entry in self._entries for r in entry.deletion_ranges or ()}
        if self._grown and (unit := self._policy.full(self._levels, marked)):
            self._carry_out(unit)
        self._grown = False

    def _step(self) -> bool:
        self._calls += 1
        clock = local_millis(self._store.now())
        unit = self._policy.pick(self._levels, clock, self._last_full, self._calls)
        if unit is None:
            return False
        if unit.output_level == self._levels.max_level:
            self._last_full = clock
        return self._carry_out(unit)

    def _carry_out(self, unit: CompactUnit) -> bool:
        """Whether anything changed. Files of a newer schema are left to writers that know it."""
        if any(f.schema_id > self._store.schema.id for f in unit.files):
            return False
        if self._vectors is None:
            self._vectors = read_entries(self._store, self._entries)
        task = CompactTask.of(self._store, self._place, self._levels, unit, writes_changelog=self._tells)
        done = compact(self._store, task, self._vectors)
        left = done.vectors(self._vectors)
        self._remarked = self._remarked or left != self._vectors
        self._vectors = left
        self._levels = self._levels.apply(done.before, done.after, self._store.schema.key_arrow)
        self._note(done)
        return bool(done.before)

    def _note(self, done: Compacted) -> None:
        self._changelog += done.changelog
        still_there = {f.file_name for f in done.after}
        for file in done.before:
            made_here = self._after.pop(file.file_name, None) is not None
            if not made_here:
                self._before[file.file_name] = file
            elif file.file_name not in self._before and file.file_name not in still_there:
                self._delete(file)
        self._after.update((f.file_name, f) for f in done.after)

    def _delete(self, file: DataFileMeta) -> None:
        with suppress(OSError):  # no message names it: it does not matter but for its space
            partition, bucket, _ = self._place
            self._store.delete_file(partition, bucket, file)

    def write_deletion_vectors(self) -> None:
        """Write an index file where other rows are deleted than before, as `release` is to tell."""
        if self._vectors is None or not self._remarked:
            return
        self._forget_deletion_vectors()
        self._sealed = write_vectors(self._store, *self._place[:2], self._vectors)

    def release(self) -> CommitMessage:
        """What was compacted since the last call, as a message that tells of nothing else; its files are the caller's
        now. REQUIRES: sealed."""
        marked = self._remarked
        message = CommitMessage(
            *self._place,
            compact_before=tuple(self._before.values()),
            compact_after=tuple(self._after.values()),
            compact_changelog=tuple(self._changelog),
            compact_new_indexes=self._sealed if marked else (),
            compact_deleted_indexes=self._entries if marked else (),
            compact_beside=beside_names(
                self._store,
                tuple(self._before.values()),
                (f for f in self._levels.all_files if f.file_name not in self._after),
            ),
        )
        if marked:
            self._entries = self._sealed
        self._forget()
        return message

    def abort(self) -> None:
        """Delete what was made and not handed over; files that only changed their level are not ours to delete."""
        for name, file in self._after.items():
            if name not in self._before:
                self._delete(file)
        for file in self._changelog:
            self._delete(file)
        self._forget_deletion_vectors()
        self._forget()

    def _forget_deletion_vectors(self) -> None:
        for entry in self._sealed:
            with suppress(OSError):
                self._store.delete_index(entry)
        self._sealed = ()

    def _forget(self) -> None:
        self._before, self._after, self._changelog = {}, {}, []
        self._sealed, self._remarked = (), False
