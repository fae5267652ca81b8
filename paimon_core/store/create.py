"""Creation of a table at a path."""

from collections.abc import Callable
from dataclasses import replace

from paimon_core.errors import AlreadyExistsError, InvalidInputError
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.schema.iceberg import is_enabled
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.support import check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.store.drop import leftovers
from paimon_core.store.file_store import now_millis
from paimon_core.store.iceberg_location import iceberg_directory


def create_table(io: FileIO, root: str, schema: Schema, now: Callable[[], int] = now_millis) -> TableSchema:
    """Publish the first schema of a new table at ``root`` and return it.

    If several processes create the same table, one wins and the others get AlreadyExistsError. Raises
    InvalidInputError for a schema that breaks a rule, and for a place with files of a dropped table, which would be the
    new table's; UnsupportedError for a schema that this engine cannot write.
    """
    root = join(absolute(root))
    options = dict(schema.options)
    given = options.pop("path", root)
    if join(absolute(given)) != root:
        raise InvalidInputError(f"option 'path' is {given!r}, but the table is to be made at {root}")
    made = create(replace(schema, options=options), now())
    check_writable(made)
    if is_enabled(made.options):
        iceberg_directory(root, made.options)  # which may refuse the place
    schemas = Schemas(io, root)
    if not schemas.ids():
        check_unused(io, root)
        if schemas.commit(made):
            return made
    raise AlreadyExistsError(f"there is a table at {root} already: open it, or choose another place")


def check_unused(io: FileIO, root: str) -> None:
    """Raise InvalidInputError if files at ``root`` would become those of a new table. REQUIRES: there is no table."""
    found = leftovers(io, root)
    if found and not Schemas(io, root).ids():
        raise InvalidInputError(
            f"no table can be created at {root}, which holds a part of a dropped table ({', '.join(found)}): drop the "
            "table once more, which deletes the rest, or choose another place"
        )
