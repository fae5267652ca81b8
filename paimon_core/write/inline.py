"""A writer that compacts the bucket it writes to: the levels as it knows them, and what it did to them so far."""

from collections.abc import Sequence
from contextlib import suppress

from paimon_core.datafile.writer import local_millis
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import CompactUnit, UniversalCompaction, num_levels, stop_trigger
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.store.file_store import FileStore
from paimon_core.write.compactor import Compacted, CompactTask, compact

Files = tuple[DataFileMeta, ...]


class InlineCompaction:
    """The levels of one bucket between two commits of its writer.

    What was compacted is told as one step from the files the table has (or gets by the same commit) to those it is to
    have: files made and replaced in between are deleted at once, for no message names them.
    """

    def __init__(self, store: FileStore, place: tuple[bytes, int, int], files: Sequence[DataFileMeta]) -> None:
        self._store, self._place = store, place
        self._policy = UniversalCompaction.of(store.options)
        self._stop = stop_trigger(store.options)
        self._levels = self._restored(files)
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

    def renew(self, files: Sequence[DataFileMeta]) -> None:
        """Go on from these files. REQUIRES: what was done before was handed over."""
        self._levels = self._restored(files)

    def add(self, files: Sequence[DataFileMeta]) -> None:
        """New files of level 0."""
        self._levels = self._levels.apply((), files, self._store.schema.key_arrow)
        self._grown = self._grown or bool(files)

    def keep_bounded(self) -> None:
        """Compact while there are more runs than writing may go on with."""
        while len(self._levels.runs) > self._stop and self._step():
            pass

    def keep_in_shape(self) -> None:
        """Compact while the policy asks for it."""
        while self._step():
            pass

    def full(self) -> None:
        """Bring all files to the highest level, if any was added since that was done last."""
        if self._grown and (unit := self._policy.full(self._levels)):
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
        done = compact(self._store, CompactTask.of(self._store, self._place, self._levels, unit))
        self._levels = self._levels.apply(done.before, done.after, self._store.schema.key_arrow)
        self._note(done)
        return bool(done.before)

    def _note(self, done: Compacted) -> None:
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

    def hand_over(self) -> tuple[Files, Files]:
        """Files replaced, and those in their place, since the last call; they are the caller's now."""
        before, after = tuple(self._before.values()), tuple(self._after.values())
        self._before, self._after = {}, {}
        return before, after

    def abort(self) -> None:
        """Delete what was made and not handed over; files that only changed their level are not ours to delete."""
        for name, file in self._after.items():
            if name not in self._before:
                self._delete(file)
        self._before, self._after = {}, {}
