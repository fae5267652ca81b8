"""Read a snapshot by the options of its commit, and find out if other options return the same rows.

See `schema.read_rules`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS
from paimon_core.scan.entries import live_entries
from paimon_core.schema.continuity import is_replaced
from paimon_core.schema.merge_options import changed_merge, column_merged_otherwise
from paimon_core.schema.read_rules import ReadRules, changed_rule, rules_of, with_rules_of
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def with_rules_at(store: FileStore, snapshot: Snapshot | None) -> FileStore:
    """Return the table with the rules of a snapshot, or ``store`` itself if it has them.

    Cost: one small read, if the schema has changed since the snapshot.
    """
    schema = store.schema
    if snapshot is None or snapshot.schema_id == schema.id:
        return store
    if not schema.primary_keys and snapshot.index_manifest is None:  # no row is merged, and none has a mark
        return store
    ruled = with_rules_of(schema, committed_with(store, snapshot, schema))
    return store if ruled is schema else store.with_schema(ruled)


def check_not_replaced(store: FileStore, snapshot: Snapshot) -> None:
    """Raise InvalidInputError if a snapshot is of a table that was replaced: its columns are others.

    Cost: one small read, if the schema has changed since the snapshot.
    """
    if snapshot.schema_id == store.schema.id:
        return
    try:
        schemas = store.schema, store.schemas.get(snapshot.schema_id)
    except NotFoundError:  # a damaged table: `verify` reports it
        return
    if is_replaced(*sorted(schemas, key=lambda schema: schema.id)):
        raise InvalidInputError(
            f"{store.root} was replaced: snapshot {snapshot.id} has schema {snapshot.schema_id}, and the columns of "
            f"schema {store.schema.id} are others. Read the snapshot with VERSION AS OF, or roll the table back"
        )


def check_same_rules(store: FileStore, snapshot: Snapshot) -> None:
    """Raise InvalidInputError if a snapshot may have other rows under the rules of the table, or was replaced.

    Cost: as `check_not_replaced`, and as `why_other_rows` if the rules differ.
    """
    check_not_replaced(store, snapshot)
    then = with_rules_at(store, snapshot).schema
    reason = None if then is store.schema else why_other_rows(store, snapshot, then, store.schema)
    if reason is not None:
        raise InvalidInputError(
            f"option {changed_rule(then, store.schema)!r} was changed later, but {reason}: only batch reads return the "
            "rows of this snapshot, such as SELECT with VERSION AS OF"
        )


def why_other_rows(store: FileStore, snapshot: Snapshot | None, old: TableSchema, new: TableSchema) -> str | None:
    """Return the reason why a snapshot of ``old`` may have other rows under ``new``. `None`: it has the same rows.

    Cost: nothing if both have the same rules, else the manifests of the snapshot.

    Args:
        store: the table.
        snapshot: the newest snapshot; `None`: no data.
        old: the schema before the change.
        new: the schema after it.
    """
    if snapshot is None or changed_rule(old, new) is None:
        return None
    shown = f"snapshot {snapshot.id} of {store.root}"
    had, has = rules_of(old), rules_of(new)
    marked = _marked_files(store, snapshot) if had.vectors and not has.vectors else 0
    if marked:
        return f"{shown} has deletion vectors (data files: {marked}), and without the option their rows would return"
    if not store.schema.primary_keys:
        return None
    live = [entry for entry in live_entries(store, snapshot, with_stats=False).live if entry.bucket >= 0]
    if has.vectors and not had.vectors and any(entry.file.level == 0 for entry in live):
        return f"{shown} has files of level 0, whose rows batch reads would no longer show"
    if has.ignores_deletes and not had.ignores_deletes and any(entry.file.may_delete for entry in live):
        return f"{shown} has rows of kind -D, which would no longer delete other rows"
    levels = {"files of several levels": had[:-1] != has[:-1] and _in_several_levels(live)}
    levels["several files that are merged"] = changed_merge(old, new) is not None and _are_merged(live, has)
    found = next((name for name, is_found in levels.items() if is_found), None)
    return found and f"{shown} has {found}, and the rows of a key in them would be merged in another way"


def check_types(store: FileStore, old: TableSchema, new: TableSchema) -> None:
    """Raise InvalidInputError if a new type of a column changes how rows of the newest snapshot are merged.

    Cost: nothing if no type does, else the manifests of the snapshot.
    """
    column = column_merged_otherwise(old, new)
    snapshot = None if column is None else store.snapshots.latest()
    if snapshot is not None and _is_merged(store, snapshot, new):
        raise InvalidInputError(
            f"the type of column {column!r} cannot be changed: snapshot {snapshot.id} of {store.root} has several "
            "files that are merged, and the rows of a key in them would be merged in another way. First rewrite the "
            "files, with compact(full=True) or CALL sys.compact"
        )


def check_types_since(store: FileStore, snapshot: Snapshot) -> None:
    """Raise InvalidInputError if rows of a snapshot are merged in another way since a column got another type.

    The type may have changed after the table was opened. Cost: one listing and one small read; if the schema has
    changed since the snapshot, one more read, and the manifests of the snapshot as `check_types`.
    """
    newest = store.schemas.latest() or store.schema
    if snapshot.schema_id == newest.id:
        return
    column = column_merged_otherwise(committed_with(store, snapshot, newest), newest)
    if column is not None and _is_merged(store, snapshot, newest):
        raise InvalidInputError(
            f"{store.root} cannot be rolled back to snapshot {snapshot.id}: the type of column {column!r} was changed "
            "since, and the rows of a key in several files would be merged in another way. First change the type back"
        )


def _is_merged(store: FileStore, snapshot: Snapshot, schema: TableSchema) -> bool:
    live = [e for e in live_entries(store, snapshot, with_stats=False).live if e.bucket >= 0]
    return _are_merged(live, rules_of(schema))


def committed_with(store: FileStore, snapshot: Snapshot, schema: TableSchema) -> TableSchema:
    """Return the schema of a snapshot, or ``schema`` if it is lost or ``schema`` replaces its table."""
    try:
        found = store.schemas.get(snapshot.schema_id)
    except NotFoundError:  # a damaged table: `verify` reports it
        return schema
    return schema if is_replaced(found, schema) else found


def _marked_files(store: FileStore, snapshot: Snapshot) -> int:
    """Return the number of data files of a snapshot that have a deletion vector."""
    if snapshot.index_manifest is None:
        return 0
    entries = store.manifests.read_index(snapshot.index_manifest)
    return sum(len(entry.deletion_ranges or ()) for entry in entries if entry.index_type == DELETION_VECTORS)


def _are_merged(live: Sequence[ManifestEntry], rules: ReadRules) -> bool:
    """Return True if a batch read or the next compaction merges files of a bucket."""
    if rules.vectors:
        return any(entry.file.level == 0 for entry in live)
    files = Counter(entry.bucket_ref for entry in live)
    return _in_several_levels(live) or any(e.file.level == 0 and files[e.bucket_ref] > 1 for e in live)


def _in_several_levels(live: Iterable[ManifestEntry]) -> bool:
    """Return True if a bucket has files of several levels above 0."""
    levels: dict[object, int] = {}
    return any(levels.setdefault(e.bucket_ref, e.file.level) != e.file.level for e in live if e.file.level)
