"""Schema changes that the rows of a table allow."""

from collections.abc import Iterable, Sequence

from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED
from paimon_core.scan.changelog_rules import why_other_changes
from paimon_core.scan.read_rules import check_types, committed_with, why_other_rows
from paimon_core.schema.change import RemoveOption, SchemaChange, SetOption, UpdateType, apply
from paimon_core.schema.mutability import check_change
from paimon_core.schema.read_rules import changed_rule
from paimon_core.schema.schemas import Changes
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.current_schema import check_same_table
from paimon_core.store.file_store import FileStore


def alter(store: FileStore, changes: Changes) -> FileStore:
    """Apply schema changes, all or none, and return the table with its new schema.

    Raises as `Schemas.apply`; NotFoundError if another table is at the path by now; and InvalidInputError for a change
    after which, in all engines,

    - rows may differ, by an option of `schema.read_rules`: deleted rows return, or values are lost or added twice
    - another row of a key may be the newest, by the type of a column
    - streams read changes twice, or never, by ``changelog-producer``

    A commit of deletion vectors at the same time either sees the new schema (`commit.schema_check.keep_vectors_on`), or
    is seen here, and the option is turned on again. After any other commit at the same time, the next commit is refused
    if its base has other rows (`commit.read_rules.check_rules`).
    """
    turned_off = False

    def checked(schema: TableSchema) -> Sequence[SchemaChange]:
        nonlocal turned_off
        if (schema.id, schema.time_millis) != (store.schema.id, store.schema.time_millis):
            check_same_table(store.schemas, store.schema)
        made = changes(schema) if callable(changes) else changes
        if not isinstance(made, Iterable):
            raise InvalidInputError(f"{made!r} is no schema change: pass a list such as [SetOption(key, value)]")
        after = _with_options(store, schema, made)
        turned_off = changed_rule(schema, after) == DELETION_VECTORS_ENABLED.key and not _has_vectors(after)
        _check(store, schema, after)
        if any(isinstance(change, UpdateType) for change in made) and store.snapshots.latest_id() is not None:
            check_types(store, schema, apply(schema, made, has_snapshots=True))
        return made

    # A function that returns no change publishes nothing, but an empty list publishes a version.
    altered = store.alter(checked if callable(changes) or changes else changes)
    if turned_off:
        try:
            _check(store, altered.schema.copy({DELETION_VECTORS_ENABLED.key: "true"}), altered.schema)
        except Exception:  # also if the store does not answer
            store.alter([SetOption(DELETION_VECTORS_ENABLED.key, "true")])
            raise
    return altered


def _with_options(store: FileStore, schema: TableSchema, changes: Iterable[SchemaChange]) -> TableSchema:
    """Return the schema with the changed options, whose changes the table allows if they change a rule."""
    made = [change for change in changes if isinstance(change, SetOption | RemoveOption)]
    values = {change.key: change.value if isinstance(change, SetOption) else None for change in made}
    after = schema.copy(values)
    if changed_rule(schema, after) is not None and store.snapshots.latest_id() is not None:
        for key, value in values.items():  # the first ones may allow the next ones
            check_change(schema.options, key, value)
            schema = schema.copy({key: value})
    return after


def _has_vectors(schema: TableSchema) -> bool:
    return schema.options.value(DELETION_VECTORS_ENABLED)


def _producer(schema: TableSchema) -> str:
    return schema.options.value(CHANGELOG_PRODUCER)


def _check(store: FileStore, before: TableSchema, after: TableSchema) -> None:
    """Raise InvalidInputError if the newest snapshot may have other rows, or streams other changes, after a change."""
    key = changed_rule(before, after)
    if key is None and _producer(before) == _producer(after):
        return
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return
    then = committed_with(store, snapshot, before)
    reason = why_other_rows(store, snapshot, then, after)
    if reason is None:
        key, reason = CHANGELOG_PRODUCER.key, why_other_changes(store, snapshot, then, after)
    if reason is None:
        return
    change = "turned off" if key == DELETION_VECTORS_ENABLED.key and not _has_vectors(after) else "changed"
    raise InvalidInputError(
        f"option {key!r} cannot be {change}: {reason}. First rewrite the files, with compact(full=True) or CALL "
        "sys.compact"
    )
