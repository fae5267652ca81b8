"""Merge branches: add the files that one branch of a table has added to another branch."""

from collections.abc import Sequence

from paimon_core.commit.add_existing import add_existing
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.scan.entries import live_entries
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore

_ADDING = (CommitKind.APPEND, CommitKind.ANALYZE)


def merge_branch(source: FileStore, target: FileStore, *, dry_run: bool = False) -> int:
    """Add the files that only ``source`` has to ``target`` in one commit; return their number.

    Both are branches of one table without a primary key, which share the files afterwards. Both must have only added
    rows since the newest snapshot that they share, or since their first one. Thus a file that the target lacks was
    never in it, and no row is added twice. ``dry_run``: True to only check and return the number.

    Raises UnsupportedError for a table with a primary key or with row ids, and for a branch that has replaced files;
    InvalidInputError for different columns, buckets or partitions, and for a partly expired history. After an error
    nothing has changed.
    """
    source, target = _at_newest_schema(source), _at_newest_schema(target)
    check_writable(target.schema)
    _check_tables(source, target)
    newest = source.snapshots.latest()
    if newest is None:
        return 0
    found: Sequence[ManifestEntry] = ()

    def missing(base: Snapshot | None) -> Sequence[ManifestEntry]:
        """Return the entries to add to a snapshot of the target."""
        nonlocal found
        _check_history(source, newest, target, base)
        present = set() if base is None else {entry.file.file_name for entry in live_entries(target, base).live}
        live = live_entries(source, newest).live
        found = [ManifestEntry(ADD, *e.location, e.file) for e in live if e.file.file_name not in present]
        _check_schemas(source, target, {entry.file.schema_id for entry in found})
        return found

    if dry_run:
        return len(missing(target.snapshots.latest()))
    if add_existing(Publisher(target), missing) is not None:
        expire_after_commit(target)
    return len(found)


def _at_newest_schema(store: FileStore) -> FileStore:
    """Return the branch with its own newest schema, regardless of the schema that the table was opened with."""
    schema = store.schemas.latest()
    return store if schema is None else store.with_schema(schema)


def _check_tables(source: FileStore, target: FileStore) -> None:
    """Raise UnsupportedError for an unsupported kind of table, InvalidInputError for branches with different rows."""
    for store in (source, target):
        if bool(store.schema.primary_keys) or store.options.value(ROW_TRACKING_ENABLED):
            feature = "a primary key" if store.schema.primary_keys else "row ids"
            raise UnsupportedError(
                f"branch {store.branch!r} of {store.root} has {feature}, so a merge cannot share its files: read the "
                "rows of the branch and write them to the other one"
            )
    source_schema, target_schema = source.schema, target.schema
    same = (source_schema.fields, source_schema.partition_keys, source_schema.bucket, source_schema.bucket_keys) == (
        *(target_schema.fields, target_schema.partition_keys, target_schema.bucket, target_schema.bucket_keys),
    )
    if not same:
        raise InvalidInputError(
            f"branches {source.branch!r} and {target.branch!r} of {source.root} differ in columns, partitions or "
            "buckets: alter one of them to the schema of the other"
        )


def _check_schemas(source: FileStore, target: FileStore, ids: set[int]) -> None:
    """Raise InvalidInputError if a schema id of the files has different columns in the target."""
    target_ids = set(target.schemas.ids())
    for number in sorted(ids):
        if number not in target_ids or source.schemas.get(number).fields != target.schemas.get(number).fields:
            raise InvalidInputError(
                f"files of branch {source.branch!r} of {source.root} have schema {number}, which branch "
                f"{target.branch!r} lacks or has with other columns: the branches were altered independently"
            )


def _check_history(source: FileStore, newest: Snapshot, target: FileStore, base: Snapshot | None) -> None:
    """Raise an error if a branch has changed more than adding rows since the snapshot that both share."""
    shared = _shared(source, target)
    for store, end in ((source, newest), (target, base)):
        indexes = None if shared is None else shared.index_manifest
        for number in range(1 if shared is None else shared.id + 1, 1 if end is None else end.id + 1):
            snapshot = store.snapshots.find(number)
            if snapshot is None:
                raise InvalidInputError(
                    f"snapshot {number} of branch {store.branch!r} of {store.root} has expired, so the common files "
                    "of the branches are unknown: read the rows of the branch and write them to the other one"
                )
            if snapshot.commit_kind not in _ADDING or snapshot.index_manifest != indexes:
                raise UnsupportedError(
                    f"snapshot {number} of branch {store.branch!r} of {store.root} is {snapshot.commit_kind}: branches "
                    "that have replaced or deleted rows or files cannot be merged; read the rows of the branch and "
                    "write them to the other one"
                )


def _shared(source: FileStore, target: FileStore) -> Snapshot | None:
    """Return the newest snapshot that is the first of one branch and that the other one has; `None` without one."""
    shared = []
    for first, second in ((source, target), (target, source)):
        oldest = first.snapshots.earliest()
        same = None if oldest is None else second.snapshots.find(oldest.id)
        if oldest is not None and same is not None and same.fingerprint == oldest.fingerprint:
            shared.append(oldest)
    return max(shared, key=lambda snapshot: snapshot.id, default=None)
