"""A catalog of directories: ``<warehouse>/<database>.db/<table>``."""

from collections.abc import Mapping
from typing import ClassVar

from paimon_core.catalog.catalog import Catalog, TableEntry
from paimon_core.catalog.database_file import read_properties, write_properties
from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, listed_names
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.schema.schemas import Schemas
from paimon_core.store.drop import TRASH, drop_directory

_SUFFIX = ".db"
_MARKER = ".database"


class FileSystemCatalog(Catalog):
    """Databases and tables below a warehouse directory, local or on any storage that `FileIO` supports.

    The properties of a database are stored in a file that the Java engine ignores. Names are case sensitive.

    Examples:
        >>> from paimon_core import FileSystemCatalog
        >>> FileSystemCatalog("/tmp/warehouse").table("shop.items").to_arrow(filter="id = 2").to_pylist()
        [{'id': 2, 'name': 'blue ink'}]
    """

    kind: ClassVar[str] = "filesystem"

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        entries = self._io.list(self.warehouse)
        return sorted(
            entry.name.removesuffix(_SUFFIX)
            for entry in entries
            if entry.is_directory and entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX
        )

    def _create_database(self, name: str, properties: dict[str, str]) -> None:
        path = self.database_location(name)
        if self._io.exists(path):
            raise AlreadyExistsError(f"database {name!r} exists already in {self.warehouse}")
        marker, content = join(path, _MARKER), write_properties(properties)
        self._io.write(marker, content)
        if not content:
            self._io.delete(marker)
            if not self._io.exists(path):  # storage without directories: the marker must stay for `list_databases`
                self._io.write(marker, content)

    def _database_exists(self, name: str) -> bool:
        return self._io.exists(self.database_location(name))

    def _database_properties(self, name: str) -> dict[str, str]:
        path = join(self.database_location(name), _MARKER)
        try:
            return read_properties(self._io.read(path), path)
        except FileNotFoundError:
            return {}

    def _alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        changed = {**self._database_properties(name), **changes}
        retained = {key: value for key, value in changed.items() if value is not None}
        self._io.write(join(self.database_location(name), _MARKER), write_properties(retained))

    def _drop_database(self, name: str) -> None:
        """Delete the files of a database without tables: stray files, and parts of tables that a crash has left."""
        path = self.database_location(name)
        self.remove_dropped(name)
        entries = sorted(
            self._io.list(path), key=lambda entry: entry.name == _MARKER
        )  # the marker last: the database exists until then
        for entry in entries:
            if not entry.is_directory:
                self._io.delete(entry.path)
            elif entry.name == TRASH:
                self._io.delete_directory(entry.path)
            elif not Schemas(self._io, entry.path).ids():
                drop_directory(self._io, entry.path)
        if not self._io.delete_empty_directory(path) and self._io.list(path):
            raise InvalidInputError(
                f"database {name!r} was not dropped: another process creates tables in it "
                f"({listed_names('', self.list_tables(name))}); drop it again"
            )

    def _table_names(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted. Costs one listing per table."""
        path = self.database_location(database)
        names = sorted(entry.name for entry in self._io.list(path) if entry.is_directory)
        ids = parallel_map(lambda name: Schemas(self._io, join(path, name)).ids(), names)
        return [name for name, schema_ids in zip(names, ids, strict=True) if schema_ids]

    def _locate(self, name: Identifier) -> TableEntry | None:
        path = self.location(name)
        return TableEntry(path) if Schemas(self._io, path).ids() else None

    def _no_table(self, name: Identifier) -> NotFoundError:
        entries = self._io.list(self._existing_database(name.database))
        tables = [entry.name for entry in entries if entry.is_directory and entry.name != TRASH]
        names = listed_names(name.table, sorted(tables))
        return NotFoundError(f"no table {str(name)!r} in {self.warehouse}; database {name.database!r} has: {names}")
