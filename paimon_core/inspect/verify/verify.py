"""Verify a table: follow every reference of every branch and, in deep mode, read every row."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from paimon_core.errors import PaimonError
from paimon_core.inspect.verify.branch_metadata import BranchMetadata
from paimon_core.inspect.verify.content import FileContent
from paimon_core.inspect.verify.stored_files import StoredFiles
from paimon_core.inspect.verify.verify_report import Fault, VerifyReport, distinct_faults
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.store.drop import STAGED
from paimon_core.store.file_store import FileStore

Progress = Callable[[int, int], None]


def verify(store: FileStore, *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
    """Find everything in a table that violates the format, without changing the table.

    All branches are verified. Schemas, snapshots, tags, changelogs and consumers are read; every manifest list,
    manifest, index and data file that they name must exist with its recorded size and counts. The files of a bucket
    must be consistent in keys, levels, numbers of buckets, row ids and deletion vectors.

    Deep mode reads all live rows of the first and the newest snapshot, and of tags whose snapshots have expired. Their
    keys must ascend, belong to the bucket, and agree with bounds, counts and statistics; the checksums of deletion
    vectors must match.

    A table that is written at the same time is verified as of the start. Files that expire during the verification may
    be reported as missing: verify again. Memory: all live entries, and a path for each file.

    Args:
        store: the table to verify, in any of its branches.
        deep: True to read all rows.
        progress: called with the data-file bytes read so far and the bytes in total; `None`: no progress reports.
    """
    names, snapshots, files, rows = branch_names(store), 0, 0, 0
    faults: list[Fault] = []
    for name in names:
        check = check_branch(store, name, deep=deep, progress=progress)
        faults += check.faults
        snapshots, files, rows = snapshots + check.snapshots, files + check.files, rows + check.rows
    return VerifyReport(distinct_faults(faults), len(names), snapshots, files, rows)


@dataclass(frozen=True, slots=True)
class BranchCheck:
    """The faults of a branch, and the numbers of objects that were checked.

    ``store``: `None` if the branch has no readable schema. ``metadata``: the snapshots and entries of the branch.
    """

    store: FileStore | None
    faults: tuple[Fault, ...]
    metadata: BranchMetadata | None = None
    snapshots: int = 0
    files: int = 0
    rows: int = 0


def branch_names(store: FileStore) -> list[str]:
    """Return the names of all branches, main first, without leftovers of a staged table after a crash."""
    names = list_branches(store.io, store.root)
    return [MAIN, *(name for name in names if not name.startswith(STAGED) or replace(store, branch=name).schemas.ids())]


def check_branch(store: FileStore, branch: str, *, deep: bool, progress: Progress | None = None) -> BranchCheck:
    """Find everything in one branch that contradicts the format; ``deep`` and ``progress``: see `verify`."""
    opened = _branch(store, branch)
    if isinstance(opened, Fault):
        return BranchCheck(None, (opened,))
    metadata, stored, rows = BranchMetadata(opened), StoredFiles(opened), 0
    metadata.check()
    states = metadata.states
    stored.check_existence([*(entry for state in states for entry in state.live), *metadata.added])
    for state in states:
        stored.check_state(state)
    if deep:
        for state in states:
            stored.check_vectors(state)
        rows = _read(opened, metadata, stored, progress)
    faults = distinct_faults([*metadata.faults, *stored.faults])
    return BranchCheck(opened, faults, metadata, metadata.snapshots, stored.files, rows)


def _branch(store: FileStore, branch: str) -> FileStore | Fault:
    """Return the store of a branch, or a fault if its newest schema cannot be read."""
    branch_store = replace(store.forgetting(), branch=branch)
    path = branch_root(store.root, branch)
    try:
        schema = branch_store.schemas.latest()
    except PaimonError as error:
        return Fault("unreadable-schema", path, f"branch {branch!r}: {error}")
    if schema is None:
        return Fault("missing-schema", path, f"branch {branch!r} has no schema")
    return branch_store.with_schema(schema)


def _read(store: FileStore, metadata: BranchMetadata, stored: StoredFiles, progress: Progress | None) -> int:
    """Read the rows of all live files once; return their number."""
    entries = {}
    missing = {fault.path for fault in stored.faults if fault.kind == "missing-data-file"}
    for state in metadata.states:
        for entry in state.live:
            path = store.file_path(entry.bucket_ref, entry.file)
            if path not in missing:
                entries[path] = entry
    total, bytes_read, rows = sum(entry.file.file_size for entry in entries.values()), 0, 0
    for entry in entries.values():
        content = FileContent(store, entry)
        stored.faults += content.check()
        rows, bytes_read = rows + content.rows, bytes_read + entry.file.file_size
        if progress is not None:
            progress(bytes_read, total)
    return rows
