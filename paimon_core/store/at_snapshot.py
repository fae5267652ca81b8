"""A table with the options that decide how the rows of a snapshot are read: see `schema.read_rules`."""

from paimon_core.errors import InvalidInputError
from paimon_core.schema.read_rules import changed_rule, may_change_rules, with_rules_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def with_rules_at(store: FileStore, snapshot: Snapshot | None) -> FileStore:
    """Return the table with the `READ_RULES` of a snapshot, or ``store`` itself if it has them.

    Cost: one small read, if the schema has changed since the snapshot, and the rules may have changed with it.
    """
    schema = store.schema
    if snapshot is None or snapshot.schema_id == schema.id or not may_change_rules(schema):
        return store
    then = with_rules_of(schema, store.schemas.get(snapshot.schema_id))
    return store if then is schema else store.with_schema(then)


def check_same_rules(store: FileStore, snapshot: Snapshot) -> None:
    """Raise InvalidInputError if a snapshot has other `READ_RULES` than the table. Cost: as `with_rules_at`."""
    then = with_rules_at(store, snapshot).schema
    key = changed_rule(then, store.schema)
    if key is not None:
        raise InvalidInputError(
            f"option {key!r} of {store.root} was changed after snapshot {snapshot.id}, so that its files are read in "
            "another way: only batch reads return its rows, such as SELECT with VERSION AS OF"
        )
