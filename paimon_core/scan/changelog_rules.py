"""Find out if a change of ``changelog-producer`` loses changes, or repeats them.

The producer decides when a row that was written becomes a change that streams and `Table.changes` read:

| producer | the changes of a row |
|---|---|
| ``none``, ``input`` | at its commit |
| ``lookup`` | when a compaction takes it from level 0 |
| ``full-compaction`` | when a compaction takes it to the highest level |

So if rows wait for a compaction while the producer changes, they are changes twice, or never. Java changes the producer
regardless.
"""

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.lsm.universal import num_levels
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.options.scan import INCREMENTAL_BETWEEN_SCAN_MODE
from paimon_core.scan.entries import live_entries
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.traits import TableTraits

_AT_COMMIT = frozenset({"none", "input"})
_AT_TOP = "full-compaction"


def why_other_changes(store: FileStore, snapshot: Snapshot | None, old: TableSchema, new: TableSchema) -> str | None:
    """Return the reason why a new ``changelog-producer`` loses or repeats changes. `None`: it does not.

    Cost: nothing if the producers make changes at the same time, else the manifests of the snapshot.

    Args:
        store: the table.
        snapshot: the newest snapshot; `None`: no data.
        old: the schema of the snapshot.
        new: the schema after the change.
    """
    producers = {TableTraits(schema).changelog_producer for schema in (old, new)}
    if snapshot is None or not new.primary_keys or len(producers) == 1 or producers <= _AT_COMMIT:
        return None
    top = num_levels(new.options) - 1 if _AT_TOP in producers else 1
    live = live_entries(store, snapshot, with_stats=False).live
    waiting = sum(entry.bucket < 0 or entry.file.level < top for entry in live)
    if not waiting:
        return None
    return (
        f"snapshot {snapshot.id} of {store.root} has files that are not compacted ({waiting}), and streams would read "
        "their rows twice, or never"
    )


def check_has_changelog(store: FileStore, snapshot: Snapshot) -> None:
    """Raise InvalidInputError if a snapshot has changes, but no changelog, because ``changelog-producer`` was ``none``.

    REQUIRES: the table, or the read, has a changelog producer now. Cost: one small read for each version of the schema.
    """
    if snapshot.commit_kind != CommitKind.APPEND or snapshot.changelog_manifest_list is not None:
        return
    try:
        then = TableTraits(store.schemas.get(snapshot.schema_id)).changelog_producer
    except NotFoundError:  # a damaged table: `verify` reports it
        return
    if then == "none":
        raise InvalidInputError(
            f"snapshot {snapshot.id} of {store.root} has no changelog: {CHANGELOG_PRODUCER.key!r} was 'none', and is "
            f"{store.traits.changelog_producer!r} now. Start after it, or read in mode 'delta', for written rows, or "
            f"'diff', for the difference of two snapshots ({INCREMENTAL_BETWEEN_SCAN_MODE.key!r} or argument 'mode')"
        )
