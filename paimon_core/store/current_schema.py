"""The schema that readers of a table use: the newest one, unless it waits for its rows to be committed."""

from dataclasses import replace

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.schema.continuity import is_replaced, replaced_version, why_unreadable
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.store.environment import CatalogEnvironment


def current_schema(schemas: Schemas) -> TableSchema | None:
    """Return the schema that a table or branch is opened with. `None`: no table, or one that waits for its first rows.

    ``REPLACE TABLE ... AS SELECT`` publishes the schema first, then the rows. The snapshot of the rows replaces the
    table.
    """
    schema = schemas.latest()
    if schema is None or replaced_version(schema) is None:
        return schema
    snapshot = Snapshots(schemas.io, schemas.table_root).latest()
    newest = -1 if snapshot is None else snapshot.schema_id
    while (version := replaced_version(schema)) is not None and newest <= version:
        if version < 0:
            return None
        ids = [number for number in schemas.ids() if number <= version]
        if not ids:
            return None
        schema = schemas.get(ids[-1])
    return schema


def publish_current_schema(schemas: Schemas, environment: CatalogEnvironment) -> None:
    """Publish the schema that the table is opened with again, if the newest one waits for rows.

    Its columns keep their ids, so rows do not change, and the table can be written to again. Does nothing if another
    process publishes a version at the same time. ``environment``: the part of the table's catalog.
    """
    newest, current = schemas.latest(), current_schema(schemas)
    if newest is not None and current is not None and current.id < newest.id:
        highest = max(newest.highest_field_id, current.highest_field_id)
        environment.publish_schema(schemas, replace(current, id=newest.id + 1, highest_field_id=highest))


def check_opened(schemas: Schemas, opened: TableSchema, snapshot: Snapshot | None) -> None:
    """Raise NotFoundError if a table was dropped, renamed, created again or replaced after it was opened.

    Cost: one small read; if `snapshot` is `None`, also a listing.

    Args:
        schemas: the schemas of the table or branch.
        opened: the schema that the table was opened with.
        snapshot: the snapshot that was read; `None`: no snapshot was found.
    """
    if snapshot is None and not schemas.ids():
        raise NotFoundError(
            f"there is no table at {schemas.table_root} any more: it was dropped or renamed after it was opened"
        )
    check_same_table(schemas, opened)
    if snapshot is None or snapshot.schema_id <= opened.id:
        return
    try:
        newest = schemas.get(snapshot.schema_id)
    except NotFoundError:  # the table is damaged, but the files of the snapshot have their own schemas
        return
    if is_replaced(opened, newest):
        raise NotFoundError(
            f"the table at {schemas.table_root} was replaced by another one after it was opened (its schema "
            f"{snapshot.schema_id} replaces schema {opened.id}): open it again"
        )


def check_columns(schemas: Schemas, opened: TableSchema, snapshot: Snapshot | None) -> None:
    """Raise InvalidInputError if a table was altered since it was opened, and the opened columns cannot hold its rows.

    Cost: nothing, or one or two small reads if the snapshot has a later schema. Arguments as for `check_opened`.
    """
    if snapshot is None or snapshot.schema_id <= opened.id:
        return
    try:
        stored, newest = schemas.get(opened.id), schemas.get(snapshot.schema_id)
    except NotFoundError:  # the table is damaged: `verify` reports it
        return
    reason = why_unreadable(stored, newest)
    if reason is not None:
        raise InvalidInputError(
            f"the table at {schemas.table_root} was altered after it was opened, and rows may have been written since: "
            f"{reason}. To read them, open it again"
        )


def check_same_table(schemas: Schemas, opened: TableSchema) -> None:
    """Raise NotFoundError if another table is at the path of a table that was opened, or none.

    The snapshots and schemas of the other table may have the same ids, and its columns other types. Call it after the
    snapshot has been read. Cost: one small read.
    """
    if not is_same_table(schemas, opened):
        raise NotFoundError(
            f"the table at {schemas.table_root} was dropped or renamed after it was opened, and another one may be "
            "there now: open it again"
        )


def is_same_table(schemas: Schemas, opened: TableSchema) -> bool:
    """Return True if the schema that a table was opened with is still at its path: it was not dropped or moved."""
    try:
        return schemas.read(opened.id).time_millis == opened.time_millis
    except NotFoundError:
        return False
