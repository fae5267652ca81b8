"""Batch reads of two branches: rows of one, and of the partitions that it lacks the rows of another (behaviour 8.7)."""

from collections.abc import Sequence
from dataclasses import replace

from paimon_core.errors import NotFoundError, UnsupportedError, listed_names
from paimon_core.options.scan import SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH
from paimon_core.scan.entries import live_entries
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import BRANCH_OPTIONS, own_branch
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.branches import list_branches
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import branch_directory
from paimon_core.types.datatype import with_nullable


def reads_branches(store: FileStore) -> bool:
    """Return True if an option names a second branch to read."""
    return any(key in store.options for key in BRANCH_OPTIONS)


def branch_splits(scan: TableScan) -> list[tuple[FileStore, Sequence[DataSplit]]]:
    """Return the splits of a scan of the newest rows, by the branch that reads them.

    All partitions of the first branch count, whatever the filter. Without partitions the second branch is read if the
    first one has no files. Raises NotFoundError for a branch that does not exist, UnsupportedError if its columns or
    keys are others.
    """
    given = scan.store
    own = own_branch(given)
    primary = given.options.value(SCAN_PRIMARY_BRANCH)
    name = primary if primary is not None else str(given.options.value(SCAN_FALLBACK_BRANCH))
    other = _branch(own, name)
    mine = replace(scan, store=own, limit=None)
    theirs = replace(scan, store=other, snapshot=other.snapshots.latest(), limit=None)
    first, second = (mine, theirs) if primary is None else (theirs, mine)
    present = _partitions(first)
    left = [split for split in second.plan().splits if split.partition not in present]
    return [(first.store, first.plan().splits), (second.store, left)]


def _partitions(scan: TableScan) -> set[bytes]:
    """Return all partitions of a scan's snapshot, serialised."""
    if scan.snapshot is None:
        return set()
    with raise_if_expired(scan.store, scan.snapshot):
        live = live_entries(scan.store, scan.snapshot, with_stats=False).live
    return {entry.partition for entry in scan.visible(live)}


def _branch(own: FileStore, name: str) -> FileStore:
    """Return another branch of the table, with its own options."""
    schema = Schemas(own.io, branch_directory(own.root, name)).latest()
    if schema is None:
        known = listed_names(name, list_branches(own.io, own.root))
        raise NotFoundError(
            f"{own.root} has no branch {name!r}, which an option names as one to read from; there are {known}"
        )
    store = own_branch(replace(own, branch=name, schema=schema, in_micros=frozenset()))
    if _shape(store.schema) != _shape(own.schema if not own.in_micros else own.schemas.get(own.schema.id)):
        raise UnsupportedError(
            f"branch {name!r} of {own.root} has other columns or keys than {own.branch!r}: their rows cannot be read "
            "as one table"
        )
    return store.in_microseconds() if own.in_micros else store


def _shape(schema: TableSchema) -> tuple[object, ...]:
    fields = tuple((f.id, f.name, with_nullable(f.type, True)) for f in schema.fields)
    return fields, schema.partition_keys, schema.primary_keys
