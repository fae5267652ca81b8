"""A catalog whose databases and tables are in a Hive metastore, shared with Java's HiveCatalog and with Hive."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Final

from paimon_core.catalog.catalog import Catalog, TableEntry
from paimon_core.catalog.hive.client import LostAnswerError, MetastoreClient, MetastoreError, client_of
from paimon_core.catalog.hive.environment import HiveEnvironment
from paimon_core.catalog.hive.format_tables import format_schema_of, is_format_table, is_listed, register_format_table
from paimon_core.catalog.hive.metastore_table import (
    database_location_of,
    described,
    engine_path,
    has_partitions,
    is_external,
    is_view,
    location_of,
    new_view,
    set_database_location,
    set_location,
    view_of,
    without_location,
)
from paimon_core.catalog.hive.settings import hive_settings
from paimon_core.catalog.identifier import Identifier, plain_identifier
from paimon_core.catalog.view import View
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
    hide_secrets,
    listed_names,
)
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.fileio.stores import store_of
from paimon_core.scan.entries import live_partitions
from paimon_core.schema.blob_columns import check_movable
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.store.create import create_table
from paimon_core.store.drop import drop_directory, is_half_dropped
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table

_COMMENT: Final = "comment"
_OWNER: Final = "owner"
_LOCATION: Final = "location"
_PATH: Final = "path"
_SUFFIX: Final = ".db"
_MARKER: Final = ".database"
_SHOWN: Final = 10


class HiveCatalog(Catalog):
    """Databases and tables in a Hive metastore, by the option ``metastore`` = ``hive``; version 2.3 to 4.

    Tables that are not Paimon's are left alone. Names are in lower case, as Hive stores them; a lookup ignores case.
    The files of a table with the option ``path``, and of every table with ``table.type`` = ``external``, outlive it.
    """

    kind: ClassVar[str] = "hive"
    has_views: ClassVar[bool] = True
    has_locations: ClassVar[bool] = True
    has_format_tables: ClassVar[bool] = True

    def __init__(
        self,
        warehouse: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(engine_path(warehouse), storage_options, options)
        self.settings = hive_settings(self.options, self.warehouse)
        self._client.types  # noqa: B018  raises now if the client is not installed

    # ---- databases

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return sorted(self._client.databases())

    def database_location(self, name: str) -> str:
        """Return the directory of the tables that a database has or would have.

        Raises InvalidInputError for a name that no database can have.
        """
        usual = super().database_location(name)
        found = self._client.database(name.lower())
        return (found and database_location_of(found)) or usual

    def _create_database(self, name: str, properties: dict[str, str]) -> None:
        _check_lower_case(name, "database")
        if self._client.database(name) is not None:
            raise AlreadyExistsError(f"database {name!r} exists already in {self.settings.shown}")
        path = engine_path(absolute(properties.pop(_LOCATION, join(self.warehouse, name + _SUFFIX))))
        types = self._client.types
        database = types.Database(
            name=name,
            description=properties.pop(_COMMENT, None),
            ownerName=properties.pop(_OWNER, self.settings.user),
            ownerType=types.PrincipalType.USER,
            parameters=properties,
        )
        set_database_location(database, path, self.settings)
        if self.settings.location_in_properties:
            self._make_directory(path)
        try:
            self._client.call("create_database", database, repeat=False)
        except MetastoreError as error:
            found = self._client.database(name)
            if found is None:
                raise
            if not isinstance(error, LostAnswerError) or found.parameters != database.parameters:
                raise AlreadyExistsError(f"database {name!r} exists already in {self.settings.shown}") from error

    def _make_directory(self, path: str) -> None:
        io, marker = FileIO.of(path, self.storage_options), join(path, _MARKER)
        if not io.exists(path):
            io.write(marker, b"")
            io.delete(marker)

    def _database_exists(self, name: str) -> bool:
        return self._client.database(name.lower()) is not None

    def _database_properties(self, name: str) -> dict[str, str]:
        found = self._found_database(name)
        stated = {_COMMENT: found.description, _OWNER: found.ownerName}
        return {**without_location(found.parameters or {}), **{key: text for key, text in stated.items() if text}}

    def _alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        found = self._found_database(name)
        if _LOCATION in changes:
            raise UnsupportedError(f"the location of database {name!r} cannot change")
        parameters = {**(found.parameters or {}), **changes}
        for key, attribute in ((_COMMENT, "description"), (_OWNER, "ownerName")):
            if key in changes:
                setattr(found, attribute, parameters.pop(key))
        found.parameters = {key: value for key, value in parameters.items() if value is not None}
        self._client.call("alter_database", found.name, found)  # a second time changes nothing more

    def _drop_database(self, name: str) -> None:
        """Remove a database from the metastore, and its directory if it is empty."""
        path, others = self.database_location(name), self._client.tables(name.lower())
        if others:
            shown = ", ".join(f"{table.tableName} ({described(table)})" for table in others[:_SHOWN])
            raise InvalidInputError(
                f"database {name!r} was not dropped: it has tables that are not Paimon's, {shown}; drop them in Hive"
            )
        io = FileIO.of(path, self.storage_options)
        try:
            self._client.call("drop_database", name.lower(), False, False, repeat=False)
        except LostAnswerError:
            if self._database_exists(name):
                raise
        except MetastoreError as error:
            if error.kind == "InvalidOperationException":
                raise InvalidInputError(
                    f"database {name!r} was not dropped: another process creates tables in it; drop it again"
                ) from error
            raise
        with suppress(OSError):
            io.delete_empty_directory(path)

    def _found_database(self, name: str) -> Any:
        found = self._client.database(name.lower())
        if found is None:
            raise self._no_database(name)
        return found

    # ---- tables

    def location(self, identifier: str | Identifier) -> str:
        """Return the directory that a table has or would have. InvalidInputError for a name that no table can have."""
        usual = super().location(identifier)
        name = Identifier.parse(identifier) if isinstance(identifier, str) else identifier
        found = self._found_table(name)
        return (found and is_listed(found) and location_of(found)) or usual

    def _table_names(self, database: str) -> list[str]:
        return sorted(table.tableName for table in self._client.tables(database.lower()) if is_listed(table))

    def _locate(self, name: Identifier) -> TableEntry | None:
        found = self._found_table(name)
        if found is None or is_view(found):
            return None
        entry = self._entry_at(name, self._path_of(name, found), external=is_external(found))
        schema = format_schema_of(found) if is_format_table(found) else None
        return replace(entry, format_schema=schema, is_external=is_external(found))

    def _path_of(self, name: Identifier, found: Any) -> str:
        """Return the directory of a table of the metastore. Raises UnsupportedError if it is not a Paimon table."""
        path = location_of(found) if is_listed(found) else None
        if path is None:
            raise UnsupportedError(
                f"{name.database}.{name.table} in {self.settings.shown} is {described(found)}, not a Paimon table: "
                "this catalog leaves it alone"
            )
        return path

    def _check_new(self, name: Identifier) -> None:
        _check_lower_case(name.table, "table")

    def table_at(
        self,
        path: str,
        identifier: str | Identifier,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> Table:
        """Open and return a table by its directory, without a request to the metastore; as `Catalog.table_at`."""
        name = plain_identifier(identifier, "opened by its path")
        return self._open(self._entry_at(name, path, external=self.settings.external), options, branch)

    def _entry(self, name: Identifier) -> TableEntry:
        return self._entry_at(name, self.location(name), external=self.settings.external)

    def _entry_at(self, name: Identifier, path: str, *, external: bool) -> TableEntry:
        locks = self.settings.lock_enabled
        if locks is None:  # as in Java: where a rename does not decide between two writers
            locks = store_of(path).object_store
        settings, database, table = self.settings, name.database.lower(), name.table.lower()
        return TableEntry(path, HiveEnvironment(settings, database, table, path, locks=locks, external=external))

    def _create_table(self, name: Identifier, schema: Schema) -> TableEntry:
        """Create a table; with the option ``path``, create or register an external one there."""
        path = schema.options.get(_PATH)
        if path is None:
            self._remove_dropped(name.database)
            entry = self._entry(name)
            io = self._new_io(entry, name)
            if self._found_table(name) is None and Schemas(io, entry.path).ids():
                raise AlreadyExistsError(
                    f"there is a table at {hide_secrets(entry.path)} that the metastore does not list: run "
                    f"CALL sys.repair(database_or_table => '{name}')"
                )
            create_table(io, entry.path, schema, environment=entry.environment)
            return entry
        entry = self._entry_at(name, engine_path(absolute(path)), external=True)
        io = self._io_of(entry)
        existing = Schemas(io, entry.path).latest()
        options = {key: value for key, value in schema.options.items() if key != _PATH}
        planned = create(replace(schema, options=options), 0)
        if existing is None:
            create_table(io, entry.path, replace(schema, options=options), environment=entry.environment)
        else:
            if self._found_table(name) is not None:
                raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.settings.shown}")
            asked, there = (
                ([(f.name, f.type) for f in s.fields], s.partition_keys, s.primary_keys) for s in (planned, existing)
            )
            if planned.fields and asked != there:
                raise InvalidInputError(
                    f"there is a table with other columns or keys at {hide_secrets(entry.path)}: {existing}"
                )
            environment = entry.environment
            if isinstance(environment, HiveEnvironment):
                environment.register(existing)
        return entry

    def _create_format_table(self, name: Identifier, schema: TableSchema) -> None:
        register_format_table(self.settings, name.database.lower(), name.table, schema, super().location(name))

    def _drop_table(self, name: Identifier) -> bool:
        """Remove a table from the metastore, then delete its files unless it is external."""
        found = self._found_table(name)
        if found is None:
            left = self.location(name)
            io = FileIO.of(left, self.storage_options)
            if Schemas(io, left).ids() or not is_half_dropped(io, left):
                return False
            drop_directory(io, left)
            return True
        path = self._path_of(name, found)
        self._client.drop_table(name.database.lower(), name.table.lower())
        if not is_external(found):
            io = FileIO.of(path, self.storage_options)
            drop_directory(io, path, lambda moved: self._delete_iceberg(name, moved))
        return True

    def _rename_table(self, old: Identifier, new: Identifier) -> None:
        """Rename a table in the metastore, then move its directory to the new name, if nothing else has moved it."""
        _check_lower_case(new.table, "table")
        client = self._client
        exists_error = AlreadyExistsError(f"{str(old)!r} cannot be renamed: {str(new)!r} exists already")
        found, target = self._found_table(old), join(self.database_location(new.database), new.table)
        if found is None:
            raise self._no_table(old)
        if self._found_table(new) is not None:
            raise exists_error
        path = self._path_of(old, found)
        io = FileIO.of(path, self.storage_options)
        is_managed = not is_external(found)
        if is_managed and io.exists(target):
            raise exists_error
        if is_managed and not io.renames_atomically:
            raise UnsupportedError(
                f"{str(old)!r} cannot be renamed to {str(new)!r}: the store of {hide_secrets(path)} cannot rename a "
                "directory atomically, so a reader or a crash could meet half a table; clone the table to the new "
                "name, then drop it"
            )
        if is_managed and not is_format_table(found):
            check_movable(Schemas(io, path).latest(), repr(str(old)))
        found.dbName, found.tableName = new.database.lower(), new.table
        try:
            client.alter_table(old.database.lower(), old.table.lower(), found, renames=True)
        except MetastoreError as error:
            if self._found_table(old) is not None:
                if self._found_table(new) is not None:
                    raise exists_error from error
                raise
        renamed = self._found_table(new)
        if is_managed and renamed is not None and path != target and io.exists(path):  # some metastores move it
            io.rename_directory(path, target)
            set_location(renamed, target, self.settings)
            client.alter_table(new.database.lower(), new.table, renamed)

    def _no_table(self, name: Identifier) -> NotFoundError:
        self._existing_database(name.database)
        names = listed_names(name.table, self._table_names(name.database))
        if self.view_exists(name):
            return NotFoundError(f"{str(name)!r} in {self.settings.shown} is a view, which has no files")
        text = f"no table {str(name)!r} in {self.settings.shown}; database {name.database!r} has: {names}"
        path = super().location(name)
        if Schemas(FileIO.of(path, self.storage_options), path).ids():
            text += (
                f"; there is a table at {hide_secrets(path)} that the metastore does not list: "
                f"CALL sys.repair(database_or_table => '{name.database}.{name.table}') lists it"
            )
        return NotFoundError(text)

    # ---- views

    def _view_names(self, database: str) -> list[str]:
        return [table.tableName for table in self._client.tables(database.lower()) if is_view(table)]

    def _find_view(self, name: Identifier) -> View | None:
        found = self._found_table(name)
        return view_of(found) if found is not None and is_view(found) else None

    def _create_view(self, name: Identifier, view: View, *, replace: bool) -> None:
        _check_lower_case(name.table, "view")
        client = self._client
        new = new_view(client.types, name.database.lower(), name.table, view, self.settings)
        found = self._found_table(name)
        if found is not None:
            if not replace or not is_view(found):
                what = "view" if is_view(found) else "table"
                raise AlreadyExistsError(f"{str(name)!r} exists already in {self.settings.shown}, as a {what}")
            client.alter_table(new.dbName, new.tableName, new)
            return
        try:
            client.call("create_table", new, repeat=False)
        except MetastoreError as error:
            stored = self._found_table(name)
            if stored is None:
                raise
            if not isinstance(error, LostAnswerError) or stored.viewExpandedText != view.query:
                raise AlreadyExistsError(f"{str(name)!r} exists already in {self.settings.shown}") from error

    def _drop_view(self, name: Identifier) -> bool:
        found = self._found_table(name)
        if found is None or not is_view(found):
            return False
        return self._client.drop_table(name.database.lower(), name.table.lower())

    def _rename_view(self, old: Identifier, new: Identifier) -> None:
        _check_lower_case(new.table, "view")
        found = self._found_table(old)
        taken = AlreadyExistsError(f"{str(old)!r} cannot be renamed: {str(new)!r} exists already")
        if found is None or not is_view(found):
            raise self._no_view(old)
        if self._found_table(new) is not None:
            raise taken
        found.dbName, found.tableName = new.database.lower(), new.table
        try:
            self._client.alter_table(old.database.lower(), old.table.lower(), found, renames=True)
        except MetastoreError as error:
            if self._found_table(old) is None and self._found_table(new) is not None:
                return  # the answer was lost
            if self._found_table(new) is not None:
                raise taken from error
            raise

    def _alter_view(self, name: Identifier, change: Callable[[View], View]) -> bool:
        old = self._find_view(name)
        if old is None:
            return False
        database, table = name.database.lower(), name.table.lower()
        new = new_view(self._client.types, database, table, change(old), self.settings)
        self._client.alter_table(database, table, new)
        return True

    # ---- repair

    def repair(self, names: Sequence[str] = ()) -> list[str]:
        """List in the metastore the databases and tables that are in the warehouse, and describe each table again.

        Nothing is removed, and no file changes. The partitions of tables with ``metastore.partitioned-table`` are
        registered as well.

        Args:
            names: names of databases, or of tables as ``db.table``; none: all databases of the warehouse.

        Returns the names of the tables. Raises NotFoundError for a table without files,
        AlreadyExistsError for a name that belongs to a table in another directory, or of another engine.
        """
        if not names:
            entries = self._io.list(self.warehouse)
            names = sorted(e.name.removesuffix(_SUFFIX) for e in entries if e.is_directory and e.name.endswith(_SUFFIX))
        repaired = []
        for name in names:
            if "." in name:
                repaired.append(self._repair_table(plain_identifier(name, "repaired")))
                continue
            if not self._database_exists(name):
                self.create_database(name, ignore_if_exists=True)
            path = self.database_location(name)
            io = FileIO.of(path, self.storage_options)
            tables = sorted(entry.name for entry in io.list(path) if entry.is_directory)
            repaired += [
                self._repair_table(Identifier(name, table)) for table in tables if Schemas(io, join(path, table)).ids()
            ]
        return repaired

    def _repair_table(self, name: Identifier) -> str:
        _check_lower_case(name.table, "table")
        found = self._found_table(name)
        external = self.settings.external if found is None else is_external(found)
        entry = self._entry_at(name, self.location(name), external=external)
        schema = Schemas(self._io_of(entry), entry.path).latest()
        if schema is None:
            raise NotFoundError(f"there is no table at {hide_secrets(entry.path)}, so {name} cannot be repaired")
        environment = entry.environment
        if isinstance(environment, HiveEnvironment):
            environment.register(schema)
            if has_partitions(schema):
                self._register_partitions(environment, self._open(entry).store)
        return str(name)

    def _register_partitions(self, environment: HiveEnvironment, store: FileStore) -> None:
        snapshot = store.snapshots.latest()
        if snapshot is not None:
            partitions = sorted(live_partitions(store, snapshot))
            environment.add_partitions(store, partitions)

    # ---- inside

    @property
    def _client(self) -> MetastoreClient:
        return client_of(self.settings)

    def _found_table(self, name: Identifier) -> Any | None:
        return self._client.table(name.database.lower(), name.table.lower())


def _check_lower_case(name: str, what: str) -> None:
    """Raise InvalidInputError for a name that a metastore would store as another one."""
    if name != name.lower():
        raise InvalidInputError(
            f"{name!r} cannot name a {what}: a Hive metastore stores names in lower case; write {name.lower()!r}"
        )
