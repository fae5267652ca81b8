"""The verification of a table: every reference of every branch followed, and in deep mode every row read."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from paimon_core.errors import PaimonError
from paimon_core.inspect.verify.branch_metadata import BranchMetadata
from paimon_core.inspect.verify.content import FileContent
from paimon_core.inspect.verify.stored_files import StoredFiles
from paimon_core.inspect.verify.verify_report import Fault, VerifyReport, sorted_out
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.store.drop import STAGED
from paimon_core.store.file_store import FileStore

Progress = Callable[[int, int], None]


def verify(store: FileStore, *, deep: bool = False, progress: Progress | None = None) -> VerifyReport:
    """Look for everything in a table that contradicts the format; nothing is changed.

    All branches are verified: schemas, snapshots, tags, changelogs and consumers are read, and every manifest list,
    manifest, index and data file that they name must exist, with the size and the numbers that are said of it. Files of
    a bucket must go together: keys, levels, numbers of buckets, row ids, deletion vectors.

    Deep: all live rows of the first and the newest snapshot, and of tags of expired ones, are read. Their keys must
    ascend, belong to the bucket, and agree with bounds, counts and statistics; deletion vectors must have their
    checksums.

    A table that others write meanwhile is verified as it was at the beginning. What expires meanwhile may be reported
    as missing: run it again. Memory: all live entries, and a path for each file.

    Args:
        store: of the table, in any of its branches.
        deep: read all rows.
        progress: called with the bytes of data files that were read, and the bytes of all.
    """
    names, snapshots, files, rows = branch_names(store), 0, 0, 0
    faults: list[Fault] = []
    for name in names:
        found = check_branch(store, name, deep=deep, progress=progress)
        faults += found.faults
        snapshots, files, rows = snapshots + found.snapshots, files + found.files, rows + found.rows
    return VerifyReport(sorted_out(faults), len(names), snapshots, files, rows)


@dataclass(frozen=True, slots=True)
class BranchCheck:
    """The faults of a branch, and how much was looked through.

    ``store``: `None` if the branch has no schema that can be read. ``metadata``: its snapshots and entries.
    """

    store: FileStore | None
    faults: tuple[Fault, ...]
    metadata: BranchMetadata | None = None
    snapshots: int = 0
    files: int = 0
    rows: int = 0


def branch_names(store: FileStore) -> list[str]:
    """Return the names of all branches, the main one first, without what a crash left of a staged table."""
    names = list_branches(store.io, store.root)
    return [MAIN, *(name for name in names if not name.startswith(STAGED) or replace(store, branch=name).schemas.ids())]


def check_branch(store: FileStore, branch: str, *, deep: bool, progress: Progress | None = None) -> BranchCheck:
    """Look for everything in one branch that contradicts the format; other arguments are those of `verify`."""
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
    faults = sorted_out([*metadata.faults, *stored.faults])
    return BranchCheck(opened, faults, metadata, metadata.snapshots, stored.files, rows)


def _branch(store: FileStore, branch: str) -> FileStore | Fault:
    """Return the store of a branch, or the fault that its newest schema cannot be read."""
    found = replace(store, branch=branch)
    path = branch_root(store.root, branch)
    try:
        schema = found.schemas.latest()
    except PaimonError as error:
        return Fault("unreadable-schema", path, f"branch {branch!r}: {error}")
    if schema is None:
        return Fault("missing-schema", path, f"branch {branch!r} has no schema")
    return found.with_schema(schema)


def _read(store: FileStore, metadata: BranchMetadata, stored: StoredFiles, progress: Progress | None) -> int:
    """Read the rows of all live files once; return their number."""
    entries = {}
    missing = {fault.path for fault in stored.faults if fault.kind == "missing-data-file"}
    for state in metadata.states:
        for entry in state.live:
            path = store.file_path(entry.bucket_ref, entry.file)
            if path not in missing:
                entries[path] = entry
    total, done, rows = sum(entry.file.file_size for entry in entries.values()), 0, 0
    for entry in entries.values():
        content = FileContent(store, entry)
        stored.faults += content.check()
        rows, done = rows + content.rows, done + entry.file.file_size
        if progress is not None:
            progress(done, total)
    return rows
