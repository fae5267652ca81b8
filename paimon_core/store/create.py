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
from paimon_core.store.environment import NO_CATALOG, CatalogEnvironment
from paimon_core.store.file_store import now_millis
from paimon_core.store.iceberg_location import iceberg_directory


def create_table(
    io: FileIO,
    root: str,
    schema: Schema,
    now: Callable[[], int] = now_millis,
    environment: CatalogEnvironment = NO_CATALOG,
) -> TableSchema:
    """Publish the first schema of a new table at ``root`` and return it.

    Args:
        io: the store.
        root: the directory of the table.
        schema: columns, keys, partitions and options.
        now: a function that returns the time in epoch ms.
        environment: the part of the table's catalog.

    If several processes create the same table, one wins and the others get AlreadyExistsError. Raises
    InvalidInputError for a schema that breaks a rule, and for a directory with files of a dropped table, which the new
    table would adopt; UnsupportedError for a schema that this engine cannot write.
    """
    root = join(absolute(root))
    options = dict(schema.options)
    path = options.pop("path", root)
    if join(absolute(path)) != root:
        raise InvalidInputError(f"option 'path' is {path!r}, but the table would be created at {root}")
    table_schema = create(replace(schema, options=options), now())
    check_writable(table_schema)
    if is_enabled(table_schema.options):
        iceberg_directory(root, table_schema.options)  # raises if the metadata cannot be stored
    schemas = Schemas(io, root)
    if not schemas.ids():
        check_unused(io, root)
        if environment.publish_schema(schemas, table_schema):
            return table_schema
    raise AlreadyExistsError(f"there is a table at {root} already: open it, or choose another path")


def check_unused(io: FileIO, root: str) -> None:
    """Raise InvalidInputError if files at ``root`` would become files of a new table. REQUIRES: there is no table."""
    directories = leftovers(io, root)
    if directories and not Schemas(io, root).ids():
        raise InvalidInputError(
            f"cannot create a table at {root}, which still has files of a dropped table ({', '.join(directories)}): "
            "drop the table again to delete them, or choose another path"
        )
