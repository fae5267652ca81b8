"""The tables of a catalog as a value that goes to other processes: for reads whose rows name tables, such as views."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.paths import check_name
from paimon_core.store.file_store import FileStore
from paimon_core.store.location import split_name
from paimon_core.table import Table


class NamedTables(Protocol):
    """The part of a catalog that this module uses."""

    def table(self, identifier: Identifier, options: Mapping[str, str] | None = None) -> Table:
        """Open and return a table."""


class TablesOfCatalog:
    """The tables of a catalog by the names that rows contain. Each copy that another process gets opens it once.

    The pickled value contains the options of the catalog, and so may contain secrets; its repr does not.

    Args:
        opening: a function that opens the catalog, which can be pickled.
        catalog: the open catalog; `None`: it is opened when the first table is.
    """

    __slots__ = ("_catalog", "_opening")

    def __init__(self, opening: Callable[[], NamedTables], catalog: NamedTables | None = None) -> None:
        self._opening, self._catalog = opening, catalog

    @staticmethod
    def of(catalog: Any) -> "TablesOfCatalog":
        """Return the tables of an open catalog, which another process opens with the same arguments."""
        kind: Callable[..., NamedTables] = type(catalog)
        return TablesOfCatalog(partial(kind, catalog.warehouse, catalog.storage_options, catalog.options), catalog)

    def __reduce__(self) -> tuple[Any, ...]:
        return TablesOfCatalog, (self._opening,)

    def __repr__(self) -> str:
        return "TablesOfCatalog()"

    def store(self, name: str) -> FileStore:
        """Return a table by its name with its database, such as ``db.t`` or ``db.t$branch_b``.

        Names are not quoted, and only the first dot separates the database. Raises NotFoundError for a missing table,
        InvalidInputError for a name that no table can have; UnsupportedError for a format table.
        """
        database, _, rest = name.partition(".")
        check_name(database, name)
        table, branch, view = split_name(rest, name)
        if not database or view is not None:
            raise InvalidInputError(f"{name!r} is no name of a table with its database, such as 'db.t'")
        if self._catalog is None:
            self._catalog = self._opening()
        return self._catalog.table(Identifier(database, table, branch)).store
