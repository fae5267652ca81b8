"""The directory of a table's Iceberg metadata."""

from paimon_core.errors import UnsupportedError
from paimon_core.fileio.fileio import join
from paimon_core.options.iceberg import (
    HADOOP_CATALOG,
    METADATA_ICEBERG_STORAGE,
    METADATA_ICEBERG_STORAGE_LOCATION,
    TABLE_LOCATION,
)
from paimon_core.options.option import Options

_DATABASE_SUFFIX = ".db"


def iceberg_directory(root: str, options: Options) -> str:
    """Return the directory of the Iceberg metadata of the table at ``root``.

    The directory is ``metadata`` in the table's directory; or, as an Iceberg Hadoop catalog in ``<warehouse>/iceberg``
    expects it, ``<warehouse>/iceberg/<database>/<table>/metadata``. Raises UnsupportedError for the second form if the
    table is not in a directory ``<warehouse>/<database>.db``.
    """
    storage = options.value(METADATA_ICEBERG_STORAGE)
    location = options.value(METADATA_ICEBERG_STORAGE_LOCATION)
    if (location or storage) == TABLE_LOCATION:
        return join(root, "metadata")
    catalog = catalog_directory(root)
    if catalog is None:
        key = METADATA_ICEBERG_STORAGE.key if location is None else METADATA_ICEBERG_STORAGE_LOCATION.key
        raise UnsupportedError(
            f"option {key!r} = {location or HADOOP_CATALOG!r} needs a table in <warehouse>/<database>.db, but "
            f"this one is at {root}: move it there, or set the option to {TABLE_LOCATION!r}"
        )
    return join(catalog, "metadata")


def catalog_directory(root: str) -> str | None:
    """Return the directory of a table in the Hadoop catalog next to its database. `None`: it is not in a database."""
    parent, _, table = root.rpartition("/")
    warehouse, _, database = parent.rpartition("/")
    if not warehouse or not database.endswith(_DATABASE_SUFFIX) or database == _DATABASE_SUFFIX:
        return None
    return join(warehouse, "iceberg", database.removesuffix(_DATABASE_SUFFIX), table)
