"""Batch reads of two branches: a second branch supplies the partitions that the first branch lacks (behaviour 8.7)."""

from collections.abc import Sequence
from dataclasses import replace

from paimon_core.errors import NotFoundError, UnsupportedError, listed_names
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.scan import SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH
from paimon_core.scan.entries import live_entries
from paimon_core.scan.read_rules import with_rules_at
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import BRANCH_OPTIONS, own_branch
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.support import QUERY_AUTH
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

    The filter has no influence on the partitions that the first branch has. Without partitions the second branch is
    read if the first branch has no files. Raises NotFoundError for a branch that does not exist, UnsupportedError if
    its columns or keys differ.
    """
    options = scan.store.options
    store = own_branch(scan.store)
    primary = options.value(SCAN_PRIMARY_BRANCH)
    name = primary if primary is not None else str(options.value(SCAN_FALLBACK_BRANCH))
    named_store = _branch(store, name)
    scan_of_store = replace(scan, store=store, limit=None)
    snapshot = named_store.snapshots.latest()
    scan_of_named = replace(scan, store=with_rules_at(named_store, snapshot), snapshot=snapshot, limit=None)
    first, second = (scan_of_store, scan_of_named) if primary is None else (scan_of_named, scan_of_store)
    present = _partitions(first)
    missing = [split for split in second.plan().splits if split.partition not in present]
    return [(first.store, first.plan().splits), (second.store, missing)]


def _partitions(scan: TableScan) -> set[bytes]:
    """Return all partitions of a scan's snapshot, serialised."""
    if scan.snapshot is None:
        return set()
    with raise_if_expired(scan.store, scan.snapshot):
        live = live_entries(scan.store, scan.snapshot, with_stats=False).live
    return {entry.partition for entry in scan.visible(live)}


def _branch(store: FileStore, name: str) -> FileStore:
    """Return the branch ``name`` of the table, with its own options."""
    schema = Schemas(store.io, branch_directory(store.root, name)).latest()
    if schema is None:
        names = listed_names(name, list_branches(store.io, store.root))
        raise NotFoundError(
            f"{store.root} has no branch {name!r}, which an option names to read from; there are {names}"
        )
    if store.permissions is not None or schema.options.value(ALL_OPTIONS[QUERY_AUTH]):
        raise UnsupportedError(
            f"{store.root} cannot be read with its branch {name!r}: the catalog's server may hide rows and columns of "
            f"each of them. Read one, without the option that names {name!r}"
        )
    branch = own_branch(replace(store, branch=name, schema=schema, in_micros=frozenset()))
    stored_schema = store.schemas.get(store.schema.id) if store.in_micros else store.schema
    if _columns_and_keys(branch.schema) != _columns_and_keys(stored_schema):
        raise UnsupportedError(
            f"branch {name!r} of {store.root} has other columns or keys than {store.branch!r}: their rows cannot be "
            "read as one table"
        )
    for ours, theirs in zip(stored_schema.fields, branch.schema.fields, strict=True):
        if theirs.type.nullable and not ours.type.nullable:
            raise UnsupportedError(
                f"column {ours.name!r} of {store.root} is NOT NULL in branch {store.branch!r}, but may be NULL in "
                f"branch {name!r}: their rows cannot be read as one table"
            )
    return branch.in_microseconds() if store.in_micros else branch


def _columns_and_keys(schema: TableSchema) -> tuple[object, ...]:
    fields = tuple((f.id, f.name, with_nullable(f.type, True)) for f in schema.fields)
    return fields, schema.partition_keys, schema.primary_keys
