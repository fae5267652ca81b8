"""Repair the faults of a table that a verification finds and that can be corrected without guessing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from paimon_core.commit.publisher import ORPHAN_SECONDS
from paimon_core.datafile.indexes import INDEX_SUFFIX
from paimon_core.datafile.rebuild_index import index_bodies
from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.fileindex.index_file import pack
from paimon_core.fileio.directory import Hint, NumberedDirectory
from paimon_core.fileio.fileio import join
from paimon_core.inspect.verify.branch_metadata import BranchMetadata
from paimon_core.inspect.verify.correction import (
    CORRECTED,
    find_correction,
    known_live,
    newest_faults,
    publish_correction,
)
from paimon_core.inspect.verify.verify import Progress, branch_names, check_branch
from paimon_core.inspect.verify.verify_report import Fault
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.operations.analyze import TableStatistics
from paimon_core.operations.history.purge import remove_missing_files
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.human_text import count

_FROM_ROWS: Final = "measured again from the rows of the file, if everything else agrees with them"
_MANIFESTS: Final = "the live files are written to new manifests"
_RESTORE: Final = "restore the file from a backup, or roll back to a snapshot or tag that does not need it"
_REWRITE: Final = "overwrite the partition with its own rows, after looking at them"

MENDS: Final[Mapping[str, str]] = {
    "added-twice": f"{_MANIFESTS}, if both entries are equal",
    "deleted-without-add": _MANIFESTS,
    "missing-data-file": "a data file's index file is rebuilt; `missing_files`: data files are removed from the table",
    "missing-index-file": "a hash index is rebuilt from the keys",
    "missing-index-manifest": "hash indexes are rebuilt, if the table has dynamic buckets and no deletion vectors",
    "missing-statistics": "an empty file takes its place: run ANALYZE again",
    "stray-vector": "the other vectors are written to a new file",
    "unreadable-file-index": "rebuilt from the rows of the file",
    "unreadable-index-manifest": "same as missing-index-manifest",
    "unreadable-key": _FROM_ROWS,
    "unreadable-statistics": "an empty file takes its place: run ANALYZE again",
    "wrong-delete-count": _FROM_ROWS,
    "wrong-file-index": "rebuilt from the rows of the file",
    "wrong-file-metadata": _FROM_ROWS,
    "wrong-hint": "written again",
    "wrong-index": "a hash index is rebuilt from the keys",
    "wrong-key-range": _FROM_ROWS,
    "wrong-manifest-counts": _MANIFESTS,
    "wrong-manifest-ranges": _MANIFESTS,
    "wrong-record-count": "counted again",
    "wrong-parent": "deleted after ten seconds, if it is the newest snapshot",
    "wrong-row-ids": "`nextRowId` is raised above all rows",
    "wrong-sequences": _FROM_ROWS,
    "wrong-size": "an index file is written again, if its entire content is known",
    "wrong-statistics": _FROM_ROWS,
}
"""Kinds of faults that can be repaired, and how."""
ADVICE: Final[Mapping[str, str]] = {
    "missing-data-file": "restore the file from a backup, or repair with `missing_files`, which loses its rows",
    "missing-index-file": _RESTORE,
    "missing-index-manifest": _RESTORE,
    "missing-manifest": _RESTORE,
    "missing-manifest-list": _RESTORE,
    "missing-schema": "restore the file from a backup",
    "missing-snapshot": "restore the file, or expire the snapshots before it",
    "overlapping-files": _REWRITE,
    "several-bucket-numbers": "rescale the partition, or overwrite it with its own rows",
    "unreadable-changelog": "restore the file from a backup, or delete it; then no stream can start there",
    "unreadable-consumer": "reset the consumer to the snapshot that its stream needs, or delete it",
    "unreadable-data-file": "restore the file; or delete it, then repair with `missing_files`, which loses its rows",
    "unreadable-index-manifest": _RESTORE,
    "unreadable-manifest": _RESTORE,
    "unreadable-manifest-list": _RESTORE,
    "unreadable-schema": "restore the file from a backup",
    "unreadable-snapshot": "restore the file; or delete it, and expire the snapshots before it",
    "unreadable-tag": "restore the file from a backup, or delete it; then files that only the tag needs are orphans",
    "unreadable-vector": _RESTORE,
    "wrong-bucket": _REWRITE,
    "wrong-key-order": _REWRITE,
    "wrong-parent": "roll back to the snapshot before it, or keep it if its rows are right",
    "wrong-size": "restore the file; or delete it, then repair with `missing_files`, which loses its rows",
    "wrong-vector": _RESTORE,
}
"""Advice for faults that cannot be repaired automatically."""
_OLDER: Final = "the newest snapshot does not have it: it disappears when the older snapshots expire"
_CONTRADICTS: Final = f"the correct value is unknown; {_RESTORE}"


@dataclass(frozen=True, slots=True)
class Left:
    """A fault that remains, and the advice for it."""

    fault: Fault
    advice: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.advice}"


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The faults that were repaired (with ``dry_run``: would be repaired), and the faults that remain."""

    repaired: tuple[Fault, ...]
    left: tuple[Left, ...]
    dry_run: bool = False

    def __repr__(self) -> str:
        dry = ", dry run" if self.dry_run else ""
        return f"RepairReport(repaired: {len(self.repaired)}, left: {len(self.left)}{dry})"

    @property
    def sound(self) -> bool:
        """True if no fault remains."""
        return not self.left

    def __str__(self) -> str:
        verb = "would be repaired" if self.dry_run else "repaired"
        lines = [f"{count(len(self.repaired), 'fault')} {verb}, {len(self.left):,} left"]
        lines += [f"{verb}: {fault}" for fault in self.repaired]
        return "\n".join([*lines, *(f"left: {remaining}" for remaining in self.left)])


def repair(
    store: FileStore,
    *,
    deep: bool = False,
    missing_files: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RepairReport:
    """Verify all branches, and repair the faults that need no guess: `MENDS` lists them.

    Existing snapshots never change. A corrected snapshot of kind COMPACT, with the same rows, follows the newest one;
    older snapshots keep their faults until they expire. No row is lost, unless ``missing_files`` removes the entries of
    data files that do not exist. A second call finishes an interrupted repair. Safe while readers and writers are
    active. Cost: two verifications, and reading the rows of files whose metadata is measured again.

    Args:
        store: the table to repair, in any of its branches.
        deep: True to read all rows and also repair faults that only rows reveal.
        missing_files: True to remove missing data files from the newest snapshot, which loses their rows.
        dry_run: True to change nothing and report the repairs that would be made.
        progress: called for each branch with the data-file bytes read so far and in total; `None`: no reports.
    """
    store.io.check_can_commit()
    check_writable(store.schema)
    repaired: dict[Fault, None] = {}
    left: dict[Fault, str] = {}
    for name in branch_names(store):
        branch = check_branch(store, name, deep=deep, progress=progress)
        faults = dict.fromkeys(branch.faults)
        if branch.store is not None and branch.metadata is not None and faults:
            work = _BranchRepair(branch.store, branch.metadata, branch.faults, dry_run)
            repaired_here = dict.fromkeys(work.run(missing_files=missing_files))
            repaired |= repaired_here
            faults = {fault: None for fault in faults if fault not in repaired_here}
            older = work.only_in_older(faults)
        else:
            older = set()
        left |= {fault: _advice(fault, older=fault in older) for fault in faults}
    return RepairReport(
        tuple(repaired), tuple(Left(*item) for item in left.items() if item[0] not in repaired), dry_run
    )


def _advice(fault: Fault, *, older: bool) -> str:
    return _OLDER if older else ADVICE.get(fault.kind, _CONTRADICTS)


def _position(fault: Fault) -> tuple[str, str]:
    """Return the part of a fault that is equal in all snapshots that have it."""
    return fault.kind, fault.path if fault.data_file is None else fault.data_file


@dataclass(frozen=True, slots=True)
class _BranchRepair:
    """The repair of one branch. ``faults``: the faults that the verification found in the branch."""

    store: FileStore
    metadata: BranchMetadata
    faults: tuple[Fault, ...]
    dry_run: bool

    def run(self, *, missing_files: bool) -> Iterator[Fault]:
        """Repair the branch; yield each repaired fault of ``faults``."""
        yield from self._orphans()
        yield from self._hints()
        yield from self._statistics()
        yield from self._file_indexes()
        yield from self._snapshot()
        if missing_files:
            removed = self._missing_files()
            yield from removed
            if removed and not self.dry_run:
                yield from self._snapshot()

    def only_in_older(self, faults: Mapping[Fault, None]) -> set[Fault]:
        """Return the faults that only snapshots before the newest one have."""
        snapshot = self._newest()
        corrected = [fault for fault in faults if fault.kind in CORRECTED]
        if snapshot is None or not corrected:
            return set()
        newest = newest_faults(self.store, snapshot, known_live(self.store, snapshot), self.faults)
        present = {_position(fault) for fault in newest}
        return {fault for fault in corrected if _position(fault) not in present}

    def _orphans(self) -> Iterator[Fault]:
        """Delete a newest snapshot built on another history, once its committer has had time to delete it."""
        snapshots = self.store.snapshots
        for fault in self._of("wrong-parent"):
            orphan = snapshots.find(snapshots.ids()[-1])
            if orphan is None or fault.path != snapshots.path(orphan.id):
                continue
            if self.store.now() - orphan.time_millis >= ORPHAN_SECONDS * 1000:
                if not self.dry_run:
                    self.store.io.delete(fault.path)
                yield fault

    def _hints(self) -> Iterator[Fault]:
        directory = NumberedDirectory(self.store.io, join(self.store.branch_root, "snapshot"), "snapshot-")
        hints: tuple[Hint, ...] = ("LATEST", "EARLIEST")
        for fault in self._of("wrong-hint"):
            for hint in hints:
                if fault.path.endswith(f"/{hint}") and (self.dry_run or self._hint(directory, hint)):
                    yield fault

    def _hint(self, directory: NumberedDirectory, hint: Hint) -> bool:
        ids = directory.ids()
        if ids:
            return directory.write_hint(hint, ids[-1] if hint == "LATEST" else ids[0])
        self.store.io.delete(join(directory.directory, hint))
        return True

    def _statistics(self) -> Iterator[Fault]:
        """Replace missing or unreadable statistics by a file without statistics, which optimisers can read."""
        for fault in self._of("missing-statistics", "unreadable-statistics"):
            name = fault.path.rpartition("/")[2]
            first = next(snapshot for snapshot in self.metadata.read if snapshot.statistics == name)
            if not self.dry_run:
                self.store.io.write(fault.path, TableStatistics(first.id, first.schema_id).to_json())
                self.store.sync([fault.path])
            yield fault

    def _file_indexes(self) -> Iterator[Fault]:
        """Write index files of data files again under the same names, so that no snapshot changes."""
        lost = {fault.path for fault in self._of("missing-data-file")}
        for fault in self._of("missing-data-file", "unreadable-file-index", "wrong-file-index"):
            if not fault.path.endswith(INDEX_SUFFIX):
                continue
            data_file = self._data_file(fault.path)
            if data_file is None or self.store.file_path(*data_file) in lost:
                continue
            try:
                data = pack(index_bodies(self.store, *data_file))
            except (PaimonError, OSError, ValueError):
                continue
            if not self.dry_run:
                self.store.io.write(fault.path, data)
                self.store.sync([fault.path])
            yield fault

    def _data_file(self, path: str) -> tuple[BucketRef, DataFileMeta] | None:
        """Return the data file that an index file belongs to."""
        entries = (entry for state in self.metadata.states for entry in state.live)
        for entry in (*entries, *self.metadata.added):
            if path in self.store.file_paths(entry.bucket_ref, entry.file):
                return entry.bucket_ref, entry.file
        return None

    def _snapshot(self) -> Iterator[Fault]:
        """Publish a corrected copy of the newest snapshot."""
        snapshot = self._newest()
        if snapshot is None:
            return
        if self.dry_run:
            correction = find_correction(self.store, snapshot, self.faults)
            repaired = () if correction is None else correction.repaired
        else:
            _, repaired = publish_correction(self.store, self.faults)
        old_positions, positions = set(map(_position, self.faults)), set(map(_position, repaired))
        inherited = {kind for kind, path in positions if (kind, path) not in old_positions}  # by a concurrent snapshot
        yield from (fault for fault in self.faults if _position(fault) in positions or fault.kind in inherited)

    def _newest(self) -> Snapshot | None:
        """Return the newest snapshot; `None` if none is readable."""
        try:
            return self.store.snapshots.latest()
        except CorruptedError:
            return None

    def _missing_files(self) -> list[Fault]:
        try:
            names = set(remove_missing_files(self.store, dry_run=self.dry_run))
        except CorruptedError:
            return []  # metadata is also missing
        return [fault for fault in self._of("missing-data-file") if fault.path.rpartition("/")[2] in names]

    def _of(self, *kinds: str) -> list[Fault]:
        return [fault for fault in self.faults if fault.kind in kinds]
