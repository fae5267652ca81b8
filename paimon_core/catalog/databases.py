"""The databases of a catalog."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from paimon_core.catalog.identifier import SYSTEM_DATABASE, Identifier
from paimon_core.catalog.warehouse_state import CatalogState
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError, listed_names
from paimon_core.fileio.fileio import join
from paimon_core.fileio.paths import check_name

_SUFFIX = ".db"


class CatalogDatabases(CatalogState):
    """The databases of a catalog. A subclass implements the methods whose names begin with an underscore."""

    @abstractmethod
    def drop_table(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Delete a table: ``identifier``; with ``ignore_if_not_exists``, a missing one is no error."""

    @abstractmethod
    def list_views(self, database: str) -> list[str]:
        """Return the names of the views of a database, sorted."""

    @abstractmethod
    def drop_view(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Drop a view: ``identifier``; with ``ignore_if_not_exists``, a missing one is no error."""

    def create_database(
        self, name: str, ignore_if_exists: bool = False, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database. Raises AlreadyExistsError if it exists, unless ``ignore_if_exists``.

        ``properties``: the properties of the database, including its comment. `None`: no properties.
        """
        self.database_location(name)  # raises for a name that no database can have
        try:
            self._create_database(name, dict(properties or {}))
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database. Raises NotFoundError for a missing database, CorruptedError."""
        self._existing_database(name)
        return self._database_properties(name)

    def alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set properties of a database. A value `None` removes a property. The last of concurrent changes wins."""
        self._existing_database(name)
        self._alter_database(name, changes)

    def drop_database(self, name: str, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Delete a database. ``cascade``: True to delete its tables and views, too, one after another.

        Repeat an interrupted call to finish it. Raises NotFoundError if the database does not exist, unless
        ``ignore_if_not_exists``; InvalidInputError if it has tables or views, unless ``cascade``, and for a table that
        another process creates at the same time.
        """
        self.database_location(name)
        if not self._database_exists(name):
            if not ignore_if_not_exists:
                raise self._no_database(name)
            return
        tables, views = self.list_tables(name), self.list_views(name)
        if (tables or views) and not cascade:
            shown = ", ".join([*tables, *views][:10])
            raise InvalidInputError(f"database {name!r} is not empty, it has {shown}: drop them, or pass cascade=True")
        for table in tables:
            self.drop_table(Identifier(name, table), ignore_if_not_exists=True)
        for view in views:
            self.drop_view(Identifier(name, view), ignore_if_not_exists=True)
        self._drop_database(name)

    def repair(self, names: Sequence[str] = ()) -> list[str]:
        """List the tables of the warehouse in the metastore, and return their names: see `HiveCatalog.repair`.

        ``names``: databases or tables; empty: all of them.

        Raises UnsupportedError for a catalog without a metastore that could have lost them.
        """
        raise UnsupportedError(
            "repair lists the tables of a warehouse in a Hive metastore, which this catalog does not have; "
            "repair_table repairs a table"
        )

    def database_location(self, name: str) -> str:
        """Return the directory of the tables that a database has or would have.

        Raises InvalidInputError for a name that no database can have.
        """
        check_name(name, name)
        if not name or name == SYSTEM_DATABASE:
            raise InvalidInputError(f"{name!r} cannot name a database" + (": it is reserved" if name else ""))
        return join(self.warehouse, name + _SUFFIX)

    @abstractmethod
    def _create_database(self, name: str, properties: dict[str, str]) -> None:
        """Create a database; raise AlreadyExistsError if it exists."""

    @abstractmethod
    def _database_exists(self, name: str) -> bool:
        """Return True if the database exists."""

    @abstractmethod
    def _database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database, which existed a moment ago."""

    @abstractmethod
    def _alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set and remove properties of a database, which existed a moment ago."""

    @abstractmethod
    def _drop_database(self, name: str) -> None:
        """Delete a database whose tables are deleted."""

    def _existing_database(self, name: str) -> str:
        """Return the directory of a database. Raises NotFoundError if it does not exist."""
        path = self.database_location(name)
        if not self._database_exists(name):
            raise self._no_database(name)
        return path

    def _no_database(self, name: str) -> NotFoundError:
        names = listed_names(name, self.list_databases())
        return NotFoundError(f"no database {name!r} in {self.warehouse}; there are: {names}")
