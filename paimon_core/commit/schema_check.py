"""Check that the table at a path is still the table that a writer opened, and that the writer's rows fit it."""

import logging

from paimon_core.errors import (
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    PaimonError,
    TableChangedError,
    hide_secrets,
)
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED
from paimon_core.schema.change import SchemaChange, SetOption
from paimon_core.schema.continuity import is_replaced, why_not_continued
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)


def current_schema_id(store: FileStore) -> int:
    """Return the id of the newest schema of the table, which rows written with ``store.schema`` must fit.

    Cost: one listing and one or two small reads. Raises TableChangedError if the table was dropped, renamed,
    created again or replaced since the writer opened it, or altered so that the rows no longer fit; InvalidInputError
    for another ``changelog-producer`` than the table's.
    """
    latest, ours = store.schemas.latest(), store.schema
    if latest is None or latest.id < ours.id:
        raise _another_table(store)
    stored = latest if latest.id == ours.id else _stored(store)
    if stored is None or stored.time_millis != ours.time_millis:
        raise _another_table(store)
    _check_producer(stored, ours)
    reason = None if latest.id == ours.id else why_not_continued(stored, latest)
    if reason is not None:
        raise TableChangedError(
            f"rows written with schema {ours.id} of {store.root} do not fit schema {latest.id}: {reason}; open the "
            "table and write again"
        )
    return latest.id


def _check_producer(stored: TableSchema, given: TableSchema) -> None:
    """Raise InvalidInputError for a write with another producer, whose changes streams would not find."""
    table_has, write_has = (schema.options.value(CHANGELOG_PRODUCER) for schema in (stored, given))
    if given.primary_keys and table_has != write_has:
        raise InvalidInputError(
            f"option {CHANGELOG_PRODUCER.key!r} cannot be changed from {table_has!r} to {write_has!r} for one write: "
            "streams read changes by the option of the table. Leave the option out, or alter the table"
        )


def check_knows_columns(store: FileStore, snapshot: Snapshot | None) -> None:
    """Raise TableChangedError if rows of ``snapshot`` may have columns that ``store.schema`` does not have.

    A commit that rewrites rows, as an UPDATE does, would lose the values of these columns.
    """
    if snapshot is not None and snapshot.schema_id > store.schema.id:
        raise TableChangedError(
            f"{store.root} has schema {snapshot.schema_id} since snapshot {snapshot.id}, but this statement was "
            f"planned with schema {store.schema.id}, and would lose the values of columns added since: run it again"
        )


def keep_vectors_on(store: FileStore, snapshot: Snapshot) -> None:
    """Turn ``deletion-vectors.enabled`` on again if it was turned off while a snapshot with vectors was published.

    Without the option, readers of every engine would show the deleted rows. `operations.alter` looks for vectors after
    it has published a schema, and this function for a schema after the commit has published its vectors. So at least
    one of both sees the other. Cost: one request if the schema did not change; if it fails, a warning is logged,
    because the commit is done.

    Raises CommitUnknownError if the option cannot be turned on.
    """
    try:
        if not store.io.exists(store.schemas.path(snapshot.schema_id + 1)):
            return
    except OSError as error:
        _log.warning(
            "snapshot %d of %s is committed, but the store did not say if %r was turned off at the same time: %s",
            snapshot.id,
            hide_secrets(store.root),
            DELETION_VECTORS_ENABLED.key,
            hide_secrets(str(error)),
        )
        return
    committed = store.schemas.get(snapshot.schema_id)

    def turned_on(newest: TableSchema) -> list[SchemaChange]:
        is_on = newest.options.value(DELETION_VECTORS_ENABLED)
        return [] if is_on or is_replaced(committed, newest) else [SetOption(DELETION_VECTORS_ENABLED.key, "true")]

    try:
        store.alter(turned_on)
    except (OSError, PaimonError) as error:
        raise CommitUnknownError(
            f"snapshot {snapshot.id} of {store.root} is committed, but {DELETION_VECTORS_ENABLED.key!r} was turned off "
            f"at the same time, and the rows that it deleted are visible: turn the option on again ({error})"
        ) from error


def _stored(store: FileStore) -> TableSchema | None:
    """Return the version of the schema that the writer opened, as it is stored now. `None`: it no longer exists."""
    try:
        return store.schemas.read(store.schema.id)
    except NotFoundError:
        return None


def _another_table(store: FileStore) -> TableChangedError:
    return TableChangedError(
        f"the table at {store.root} was dropped, renamed or created again since it was opened: open it and write again"
    )
