"""A catalog in a relational database, with the rows of Java's JDBC catalog."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import ClassVar, Final

from paimon_core.catalog.catalog import Catalog, TableEntry
from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.jdbc.database import VIEWS
from paimon_core.catalog.jdbc.environment import JdbcEnvironment, JdbcSettings
from paimon_core.catalog.view import View
from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.drop import drop_directory, is_half_dropped
from paimon_core.table import Table

_PATIENCE: Final = 2.0
"""Seconds that another process may need between the files of a table and its row in the database."""


class JdbcCatalog(Catalog):
    """Databases, tables and views whose names are in a relational database; the tables are below the warehouse.

    A table is at ``<warehouse>/<database>.db/<table>``, and exists if the database lists it. Java's JDBC catalog with
    the same ``uri`` and ``catalog-key`` has the same tables. On object stores each publication holds Java's lock.

    Names of new databases and tables are in lower case.
    """

    kind: ClassVar[str] = "jdbc"
    has_views: ClassVar[bool] = True

    def __init__(
        self,
        warehouse: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(warehouse, storage_options, options)
        self._settings = JdbcSettings(self.warehouse, self.options)
        self._settings.create_tables()

    # ---- databases

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return self._settings.database.databases()

    def _create_database(self, name: str, properties: dict[str, str]) -> None:
        _check_lower(name)
        self._settings.database.create_database(name, self.database_location(name), properties)

    def _database_exists(self, name: str) -> bool:
        return self._settings.database.has_database(name)

    def _database_properties(self, name: str) -> dict[str, str]:
        return self._settings.database.database_properties(name)

    def _alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        self._settings.database.alter_database(name, changes)

    def _drop_database(self, name: str) -> None:
        left = self._settings.database.drop_database(name)
        if left:
            raise InvalidInputError(
                f"database {name!r} was not dropped: another process creates tables in it ({', '.join(left[:10])}); "
                "drop it again"
            )
        with best_effort("deleting the directory of a dropped database", (OSError, PaimonError)):
            self._io.delete_empty_directory(self.database_location(name))

    # ---- tables

    def _table_names(self, database: str) -> list[str]:
        return self._settings.database.table_names(database)

    def _locate(self, name: Identifier) -> TableEntry | None:
        self.location(name)  # raises for a name that no table can have
        listed = self._settings.database.has_table(name.database, name.table)
        return self._entry(name) if listed else None

    def _entry(self, name: Identifier) -> TableEntry:
        path = self.location(name)
        return TableEntry(path, JdbcEnvironment(self._settings, (name.database, name.table), path))

    def _new_io(self, entry: TableEntry, name: Identifier) -> FileIO:
        return self._io_of(entry)  # the first table of a database makes its directory

    def _open(self, entry: TableEntry, options: Mapping[str, str] | None = None, branch: str | None = None) -> Table:
        try:
            return super()._open(entry, options, branch)
        except NotFoundError as error:
            if branch is None and isinstance(entry.environment, JdbcEnvironment) and not self._has_files(entry.path):
                name = ".".join(entry.environment.name)
                raise NotFoundError(
                    f"{error}; the catalog lists {name!r}, but its directory has no table: a rename or a drop was "
                    "interrupted. Rename the table again, or drop it to remove the name"
                ) from None
            raise

    def _create_table(self, name: Identifier, schema: Schema) -> TableEntry:
        try:
            return super()._create_table(name, schema)
        except AlreadyExistsError:
            self._is_left_over(name)  # waits for the row of a table that another process is creating
            raise

    def _check_new(self, name: Identifier) -> None:
        """Raise InvalidInputError for a name that a new table cannot have, or whose directory has other files."""
        _check_lower(name.database)
        _check_lower(name.table)
        if self.view_exists(name):
            raise AlreadyExistsError(f"{str(name)!r} exists already in {self.warehouse}, as a view")
        if self._is_left_over(name):
            raise InvalidInputError(
                f"{str(name)!r} is not in the catalog, but {self.location(name)} has a table: a creation or a drop was "
                "interrupted, or another catalog owns it. Drop the table to delete these files, or choose another name"
            )

    def _is_left_over(self, name: Identifier) -> bool:
        """Return True if the directory of a table that the catalog does not list has a table, and keeps it."""
        deadline, path = time.monotonic() + _PATIENCE, self.location(name)
        while self._has_files(path) and not self.table_exists(name):
            if time.monotonic() > deadline:
                return True
            time.sleep(_PATIENCE / 20)  # another process creates or drops the table
        return False

    def _has_files(self, path: str) -> bool:
        return bool(Schemas(self._io, path).ids()) or is_half_dropped(self._io, path)

    def _drop_table(self, name: Identifier) -> bool:
        path = self.location(name)
        self._remove_dropped(name.database)
        if not self._settings.database.delete_table(name.database, name.table) and not self._is_left_over(name):
            return False
        drop_directory(self._io, path, lambda moved: self._delete_iceberg(name, moved))
        return True

    def _rename_table(self, old: Identifier, new: Identifier) -> None:
        _check_lower(new.database)
        _check_lower(new.table)
        if old == new or self.table_exists(new):
            raise AlreadyExistsError(f"{str(old)!r} cannot be renamed: {str(new)!r} exists already in {self.warehouse}")
        names = sorted((one.database, one.table) for one in (old, new))
        with ExitStack() as locks:
            for one in names:
                locks.enter_context(self._settings.lock(*one))
            moved = not self._has_files(self.location(old)) and self._has_files(self.location(new))
            with self._settings.database.renaming((old.database, old.table), (new.database, new.table)):
                if not moved:  # else the files are there since an interrupted rename
                    super()._rename_table(old, new)

    # ---- views

    def _view_names(self, database: str) -> list[str]:
        return self._settings.database.view_names(database)

    def _find_view(self, name: Identifier) -> View | None:
        stored = self._settings.database.view(name.database, name.table)
        return None if stored is None else View.parse(stored, str(name))

    def _create_view(self, name: Identifier, view: View, *, replace: bool) -> None:
        _check_lower(name.table)
        self.location(name)  # raises for a name that no table can have
        text, database = json.dumps(view.to_json(), ensure_ascii=False), self._settings.database
        if not database.has_views:
            database.create_tables(VIEWS)
        with self._settings.lock(name.database, name.table):
            database.put_view(name.database, name.table, text, replace=replace)

    def _drop_view(self, name: Identifier) -> bool:
        with self._settings.lock(name.database, name.table):
            return self._settings.database.delete_view(name.database, name.table)

    def _rename_view(self, old: Identifier, new: Identifier) -> None:
        _check_lower(new.table)
        self.location(new)
        names = sorted((one.database, one.table) for one in {old, new})
        with ExitStack() as locks:
            for one in names:
                locks.enter_context(self._settings.lock(*one))
            self._settings.database.rename_view((old.database, old.table), (new.database, new.table))

    def _alter_view(self, name: Identifier, change: Callable[[View], View]) -> bool:
        database = self._settings.database
        while (stored := database.view(name.database, name.table)) is not None:
            changed = json.dumps(change(View.parse(stored, str(name))).to_json(), ensure_ascii=False)
            with self._settings.lock(name.database, name.table):
                if database.update_view(name.database, name.table, stored, changed):
                    return True
        return False


def _check_lower(name: str) -> None:
    """Raise InvalidInputError for a name that is not in lower case, which Java's JDBC catalog refuses."""
    if name != name.lower():
        raise InvalidInputError(
            f"{name!r} cannot name a database, a table or a view of a JDBC catalog: write {name.lower()!r}"
        )
