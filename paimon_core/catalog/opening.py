"""Open the catalog that its options choose."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from paimon_core.catalog.catalog import Catalog
from paimon_core.catalog.catalog_options import HIVE, kind_of
from paimon_core.catalog.other_tables import TablesOfCatalog
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.stores import is_storage_option
from paimon_core.lazy import deferred
from paimon_core.table import Table

if TYPE_CHECKING:
    from paimon_core.catalog.filesystem import FileSystemCatalog
    from paimon_core.catalog.hive.catalog import HiveCatalog
    from paimon_core.catalog.hive.settings import site_warehouse
    from paimon_core.catalog.jdbc.catalog import JdbcCatalog
    from paimon_core.catalog.rest.catalog import RestCatalog
else:
    FileSystemCatalog = deferred("paimon_core.catalog.filesystem", "FileSystemCatalog")
    HiveCatalog = deferred("paimon_core.catalog.hive.catalog", "HiveCatalog")
    site_warehouse = deferred("paimon_core.catalog.hive.settings", "site_warehouse")
    JdbcCatalog = deferred("paimon_core.catalog.jdbc.catalog", "JdbcCatalog")
    RestCatalog = deferred("paimon_core.catalog.rest.catalog", "RestCatalog")

_KINDS: Mapping[str, Callable[..., Catalog]] = {
    "filesystem": FileSystemCatalog,
    "hive": HiveCatalog,
    "jdbc": JdbcCatalog,
    "rest": RestCatalog,
}
"""The catalogs by the value of the option ``metastore``. The module of a catalog is imported when one is opened."""

_SPARK = re.compile(r"spark\.sql\.catalog\.[^.]+(?:\.(.+))?", re.DOTALL)
_IGNORED = {"type"}
"""Options of Spark that name the class of a catalog, not its kind."""


def open_catalog(
    warehouse: str | None = None,
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
) -> Catalog:
    """Return the catalog that its options choose; by default, a catalog of directories.

    Args:
        warehouse: the directory of the databases, local or on an object store; `None`: the option ``warehouse``.
        storage_options: options of the file system.
        options: the options of the catalog, such as ``metastore``, and of the file system. Names may have the prefix
            ``spark.sql.catalog.<name>.`` of Spark's configuration.

    Raises InvalidInputError without a warehouse and for an unknown option, UnsupportedError for an unknown kind and for
    an option of another kind.
    """
    named, storage = _catalog_options(options or {}), dict(storage_options or {})
    for key in [key for key in named if "." in key and is_storage_option(key.lower())]:
        if key in storage and storage[key] != named[key]:
            raise InvalidInputError(f"option {key!r} of the file system is given twice, with different values")
        storage[key] = named.pop(key)
    stated = named.pop("warehouse", None)
    if warehouse is None:
        warehouse = stated
    elif stated is not None and stated.rstrip("/") != warehouse.rstrip("/"):
        raise InvalidInputError("the warehouse is given twice, as an argument and as an option, and they differ")
    if warehouse is None and kind_of(named) == HIVE:
        warehouse = site_warehouse(named)
    if warehouse is None:
        raise InvalidInputError("a catalog needs a warehouse: the directory of its databases")
    return _KINDS[kind_of(named)](warehouse, storage, named)


def open_at(
    address: Mapping[str, str],
    path: str,
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
) -> Table:
    """Open and return a table by the `CatalogEnvironment.address` that another process got; see `Catalog.table_at`."""
    others = dict(address)
    name = others.pop("table")
    return open_catalog(None, storage_options, others).table_at(path, name, options, branch)


def in_directories(table: Table, storage_options: Mapping[str, object]) -> Table:
    """Return a table that was opened by its path as one of a catalog of directories, so that its rows may name others.

    Args:
        table: the table, whose `FileStore.trust` has the warehouse; without a warehouse, it is returned as it is.
        storage_options: the options of the file system.
    """
    warehouse = table.store.trust.warehouse
    if warehouse is None:
        return table
    others = TablesOfCatalog(partial(open_catalog, warehouse, dict(storage_options)))
    return table.with_store(replace(table.store, others=others))


def _catalog_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return options without the prefix of Spark's configuration. Raises InvalidInputError for a name given twice."""
    named: dict[str, str] = {}
    for key, value in options.items():
        found = _SPARK.fullmatch(key)
        name = key if found is None else found[1]
        if name is None or name in _IGNORED:
            continue  # the class of the catalog
        if named.get(name, value) != value:
            raise InvalidInputError(f"option {name!r} of the catalog is given twice, with different values")
        named[name] = value
    return named
