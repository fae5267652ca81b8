"""The schema that a table has for readers: the newest one, unless it waits for the rows that come with it."""

from dataclasses import replace

from paimon_core.errors import NotFoundError
from paimon_core.schema.continuity import is_replaced, replaced_version
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots


def current_schema(schemas: Schemas) -> TableSchema | None:
    """Return the schema in which a table or branch is opened; `None`: there is no table, or no rows of it yet.

    ``REPLACE TABLE ... AS SELECT`` publishes the schema first, then the rows: the snapshot is what replaces the table.
    """
    schema = schemas.latest()
    if schema is None or replaced_version(schema) is None:
        return schema
    snapshot = Snapshots(schemas.io, schemas.table_root).latest()
    newest = -1 if snapshot is None else snapshot.schema_id
    while (version := replaced_version(schema)) is not None and newest <= version:
        if version < 0:
            return None
        older = [number for number in schemas.ids() if number <= version]
        if not older:
            return None
        schema = schemas.get(older[-1])
    return schema


def publish_current_schema(schemas: Schemas) -> None:
    """Publish the schema in which the table is opened once more, if the newest one waits for rows.

    Its columns keep their ids, so rows stay as they were, and the table can be written to again. Nothing happens if
    another process publishes a version at the same time.
    """
    newest, current = schemas.latest(), current_schema(schemas)
    if newest is not None and current is not None and current.id < newest.id:
        highest = max(newest.highest_field_id, current.highest_field_id)
        schemas.commit(replace(current, id=newest.id + 1, highest_field_id=highest))


def check_opened(schemas: Schemas, opened: TableSchema, snapshot: Snapshot | None) -> None:
    """Raise NotFoundError if a table was dropped, renamed or replaced after it was opened.

    Args:
        schemas: the schemas of the table or branch.
        opened: the schema in which it was opened.
        snapshot: the newest snapshot; `None`: none was found.
    """
    if snapshot is None:
        if not schemas.ids():
            raise NotFoundError(
                f"there is no table at {schemas.table_root} any more: it was dropped or renamed after it was opened"
            )
        return
    if snapshot.schema_id <= opened.id:
        return
    try:
        newer = schemas.get(snapshot.schema_id)
    except NotFoundError:  # the table is damaged: the files of the snapshot have schemas of their own
        return
    if is_replaced(opened, newer):
        raise NotFoundError(
            f"the table at {schemas.table_root} was replaced by another one after it was opened (its schema "
            f"{snapshot.schema_id} replaces schema {opened.id}): open it again"
        )
