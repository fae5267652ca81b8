"""The result of a compaction or a rescale: the data files and bytes before and after it."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from paimon_core.errors import PaimonError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.metrics.listeners import collect
from paimon_core.metrics.values import CommitMetrics
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """The data files that the commits of an operation replaced, and the data files that took their place.

    A file that one commit of the operation adds and a later one deletes counts on neither side.

    Args:
        files_before: the number of replaced files.
        bytes_before: the bytes of these files.
        rows_before: the rows in these files, before merging.
        files_after: the number of new files.
        bytes_after: the bytes of these files.
        rows_after: the rows in these files.
    """

    files_before: int = 0
    bytes_before: int = 0
    rows_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    rows_after: int = 0


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of a compaction or a rescale.

    Args:
        snapshot: the last new snapshot; `None`: there was nothing to do.
        rewritten: the replaced and the new files; `None`: unknown, because the metadata of one of several new snapshots
            could not be read afterwards: it has expired, or the table was renamed or dropped.
        seconds: the time of the operation, with its commits.
    """

    snapshot: Snapshot | None
    rewritten: RewrittenFiles | None
    seconds: float

    def __repr__(self) -> str:
        snapshot = "nothing to do" if self.snapshot is None else f"snapshot {self.snapshot.id}"
        files = self.rewritten
        counts = ""
        if files is not None and self.snapshot is not None:
            before, after = f"{files.files_before} files, {files.bytes_before} bytes", f"{files.files_after} files"
            counts = f", {before} -> {after}, {files.bytes_after} bytes"
        return f"RewriteResult({snapshot}{counts}, {self.seconds:.1f} s)"


def measure_rewrite(store: FileStore, run: Callable[[], Snapshot | None]) -> RewriteResult:
    """Run an operation in this thread, and return its snapshot with the files that its commits replaced.

    Cost: if the operation commits more than once, reads the delta manifests of its commits.

    Args:
        store: the table to rewrite.
        run: the operation; returns its last new snapshot, `None` if there was nothing to do.
    """
    started = time.monotonic()
    with collect(only=CommitMetrics) as metrics:
        snapshot = run()
    seconds = time.monotonic() - started
    commits = [commit for commit in metrics.commits if commit.snapshot_id is not None]
    return RewriteResult(snapshot, _sum(commits) if len(commits) < 2 else _net(store, commits), seconds)


def _sum(commits: Sequence[CommitMetrics]) -> RewrittenFiles:
    return RewrittenFiles(
        files_before=sum(commit.files_deleted for commit in commits),
        bytes_before=sum(commit.bytes_deleted for commit in commits),
        rows_before=sum(commit.rows_deleted for commit in commits),
        files_after=sum(commit.files_added for commit in commits),
        bytes_after=sum(commit.bytes_added for commit in commits),
        rows_after=sum(commit.rows_added for commit in commits),
    )


def _net(store: FileStore, commits: Sequence[CommitMetrics]) -> RewrittenFiles | None:
    """Return the net change of consecutive commits; `None` if the metadata of one of them cannot be read.

    No error of this reading may hide that the commits are done.
    """
    before: dict[tuple[BucketRef, str], DataFileMeta] = {}
    after: dict[tuple[BucketRef, str], DataFileMeta] = {}
    try:
        for commit in commits:
            assert commit.snapshot_id is not None
            entries = _entries(store, store.snapshots.get(commit.snapshot_id))
            added = {(e.bucket_ref, e.file.file_name): e.file for e in entries if e.kind == ADD}
            deleted = {(e.bucket_ref, e.file.file_name): e.file for e in entries if e.kind != ADD}
            moved = added.keys() & deleted.keys()  # to another level
            for key in deleted.keys() - moved:
                if after.pop(key, None) is None:
                    before[key] = deleted[key]
            after |= {key: added[key] for key in added.keys() - moved}
    except (PaimonError, OSError):
        return None
    return RewrittenFiles(*_totals(before.values()), *_totals(after.values()))


def _entries(store: FileStore, snapshot: Snapshot) -> list[ManifestEntry]:
    """Return the entries that a snapshot added. Raises OutOfRangeError if the snapshot has expired."""
    with raise_if_expired(store, snapshot):
        metas = store.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        return [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False)]


def _totals(files: Collection[DataFileMeta]) -> tuple[int, int, int]:
    """Return the number of files, their bytes and their rows."""
    return len(files), sum(file.file_size for file in files), sum(file.row_count for file in files)
