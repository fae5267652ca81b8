"""A catalog of directories: ``<warehouse>/<database>.db/<table>``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paimon_core.catalog.catalog_options import check_catalog_options, table_defaults
from paimon_core.catalog.database_file import read_properties, write_properties
from paimon_core.catalog.identifier import SYSTEM_DATABASE, Identifier
from paimon_core.catalog.staged import StagedTable
from paimon_core.catalog.warehouse_state import CatalogState
from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    PaimonError,
    UnsupportedError,
    hide_secrets,
    listed_names,
)
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.fileio.paths import check_name
from paimon_core.lazy import deferred
from paimon_core.options.file import DATA_FILE_EXTERNAL_PATHS_ALLOWED
from paimon_core.options.iceberg import METADATA_ICEBERG_STORAGE
from paimon_core.schema.change import SchemaChange
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.snapshot.time_travel import TimeTravelArguments
from paimon_core.store.drop import TRASH, drop_directory, empty_trash, is_half_dropped
from paimon_core.store.file_store import FileStore
from paimon_core.store.iceberg_location import catalog_directory
from paimon_core.store.storage_options import check_storage_options
from paimon_core.table import AnyTable, SystemTable, Table, read_only, viewed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paimon_core.catalog.global_tables import global_table, global_table_names
    from paimon_core.iceberg.sync import sync_after_change
    from paimon_core.migration.add_files import check_target
    from paimon_core.migration.clone import clone
    from paimon_core.migration.migrate import PartitionKeys, SourceTable, migration_of
    from paimon_core.store.create import create_table
else:
    global_table = deferred("paimon_core.catalog.global_tables", "global_table")
    global_table_names = deferred("paimon_core.catalog.global_tables", "global_table_names")
    sync_after_change = deferred("paimon_core.iceberg.sync", "sync_after_change")
    check_target = deferred("paimon_core.migration.add_files", "check_target")
    clone = deferred("paimon_core.migration.clone", "clone")
    migration_of = deferred("paimon_core.migration.migrate", "migration_of")
    create_table = deferred("paimon_core.store.create", "create_table")

_SUFFIX = ".db"
_MARKER = ".database"
_KEYS = ("primary-key", "partition")


class FileSystemCatalog(CatalogState):
    """Databases and tables below a warehouse directory, local or on any storage that `FileIO` supports.

    ``options`` may contain ``table-default.<option>``, a default for tables that this catalog creates. They may also
    contain ``data-file.external-paths.allowed``: roots outside of the tables, in which files of the tables may be read
    and deleted. Other options of the Java engine warn or are refused: see `check_catalog_options`. Names are case
    sensitive. A table is named by a text ``"db.table"`` or an `Identifier`.

    Examples:
        >>> from paimon_core import FileSystemCatalog
        >>> FileSystemCatalog("/tmp/warehouse").table("shop.items").to_arrow(filter="id = 2").to_pylist()
        [{'id': 2, 'name': 'blue ink'}]
    """

    def __init__(
        self,
        warehouse: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.warehouse = absolute(warehouse)
        self.storage_options = dict(storage_options or {})
        self.options = dict(options or {})
        self._io = FileIO.of(self.warehouse, self.storage_options)
        check_catalog_options(self.options)
        check_storage_options(self.storage_options)

    def __repr__(self) -> str:
        return f"FileSystemCatalog({hide_secrets(self.warehouse)!r})"

    # ---- databases

    def create_database(
        self, name: str, ignore_if_exists: bool = False, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a database. Raises AlreadyExistsError if it exists, unless ``ignore_if_exists``.

        ``properties``: the properties of the database, including its comment. They are stored in a file that the Java
        engine ignores. `None`: no properties.
        """
        path = self._database_path(name)
        if self._io.exists(path):
            if not ignore_if_exists:
                raise AlreadyExistsError(f"database {name!r} exists already in {self.warehouse}")
            return
        marker, content = join(path, _MARKER), write_properties(properties or {})
        self._io.write(marker, content)
        if not content:
            self._io.delete(marker)
            if not self._io.exists(path):  # storage without directories: the marker must stay for `list_databases`
                self._io.write(marker, content)

    def database_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database. Raises NotFoundError for a missing database, CorruptedError."""
        path = join(self._existing_database(name), _MARKER)
        try:
            return read_properties(self._io.read(path), path)
        except FileNotFoundError:
            return {}

    def alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set properties of a database. A value `None` removes a property. The last of concurrent changes wins."""
        changed = {**self.database_properties(name), **changes}
        retained = {key: value for key, value in changed.items() if value is not None}
        self._io.write(join(self._database_path(name), _MARKER), write_properties(retained))

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        entries = self._io.list(self.warehouse)
        return sorted(
            entry.name.removesuffix(_SUFFIX)
            for entry in entries
            if entry.is_directory and entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX
        )

    def drop_database(self, name: str, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        """Delete a database. ``cascade``: True to delete its tables, too, one after another.

        Repeat an interrupted call to finish it. Raises NotFoundError if the database does not exist, unless
        ``ignore_if_not_exists``; InvalidInputError if it has tables, unless ``cascade``, and for a table that another
        process creates at the same time.
        """
        path = self._database_path(name)
        if not self._io.exists(path):
            if not ignore_if_not_exists:
                raise self._no_database(name)
            return
        tables = self.list_tables(name)
        if tables and not cascade:
            raise InvalidInputError(
                f"database {name!r} is not empty, it has {', '.join(tables[:10])}: drop them, or pass cascade=True"
            )
        for table in tables:
            self.drop_table(Identifier(name, table), ignore_if_not_exists=True)
        self._delete_database(name)

    def _delete_database(self, name: str) -> None:
        """Delete the files of a database without tables: stray files, and parts of tables that a crash has left."""
        path = self._database_path(name)
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

    # ---- tables

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted. Costs one listing per table.

        The database ``sys`` has the system tables of the catalog.
        """
        if database == SYSTEM_DATABASE:
            return global_table_names()
        path = self._existing_database(database)
        names = sorted(entry.name for entry in self._io.list(path) if entry.is_directory)
        ids = parallel_map(lambda name: Schemas(self._io, join(path, name)).ids(), names)
        return [name for name, schema_ids in zip(names, ids, strict=True) if schema_ids]

    def create_table(self, identifier: str | Identifier, schema: Schema, ignore_if_exists: bool = False) -> Table:
        """Create a table with ``schema`` and the catalog's default options, and open it.

        Raises AlreadyExistsError if it exists, unless ``ignore_if_exists``; NotFoundError if its database does not;
        InvalidInputError for a directory with files of a dropped table, which another `drop_table` deletes.
        """
        name = _plain(identifier, "created")
        database = self._existing_database(name.database)
        self._remove_dropped(name.database)
        options = {**_defaults_for(schema, self.options), **schema.options}
        path = self.location(name)
        try:
            io = FileIO.of(path, self.storage_options).inside(database)
            create_table(io, path, replace(schema, options=options))
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise
        return _trusted(Table.open(path, self.storage_options), None, self)

    def stage_table(self, identifier: str | Identifier, schema: Schema, *, replace_existing: bool) -> StagedTable:
        """Return a staged table with ``schema``, which `StagedTable.publish` makes visible.

        ``replace_existing``: True if it may replace a table, which keeps its older snapshots. Raises AlreadyExistsError
        for a table that exists, unless ``replace_existing``; NotFoundError if the database does not exist, and as
        `StagedTable.prepare` does.
        """
        name = _plain(identifier, "created")
        database = self._existing_database(name.database)
        path = self.location(name)
        if not replace_existing and self.table_exists(name):
            raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.warehouse}")
        table_schema = replace(schema, options={**_defaults_for(schema, self.options), **schema.options})
        io = FileIO.of(path, self.storage_options).inside(database)
        main = FileStore(io, join(path), create(table_schema, 0)).within(self.warehouse)
        return StagedTable.prepare(io, main, table_schema)

    def table(self, identifier: str | Identifier, options: Mapping[str, str] | None = None) -> Table:
        """Open and return a table, a branch (``db.t$branch_b``) or the read-optimized view (``db.t$ro``).

        ``options``: dynamic options for this object only. Raises NotFoundError with the existing tables, and
        UnsupportedError for a system table, which `system_table` opens.
        """
        table = self.any_table(identifier, options)
        if isinstance(table, SystemTable):
            raise read_only(table.location)
        return table

    def system_table(self, identifier: str | Identifier, options: Mapping[str, str] | None = None) -> SystemTable:
        """Open and return a system table, of a table (``db.t$files``) or of the catalog (``sys.tables``).

        ``options`` are dynamic options of the table. Raises NotFoundError with the tables that exist,
        InvalidInputError for the name of a table, and with the nearest name for an unknown system table.
        """
        table = self.any_table(identifier, options)
        if isinstance(table, Table):
            raise InvalidInputError(f"{str(identifier)!r} names no system table: append one, such as '$files'")
        return table

    def any_table(self, identifier: str | Identifier, options: Mapping[str, str] | None = None) -> AnyTable:
        """Open and return a table or a system table, for engines. Arguments and errors as for `table`."""
        name = _identifier(identifier)
        if name.database == SYSTEM_DATABASE:
            return global_table(self, self._io, name)
        path = self.location(name)
        if not Schemas(self._io, path).ids():
            self._existing_database(name.database)
            raise NotFoundError(f"no table {str(name)!r} in {self.warehouse}; {self._known_tables(name)}")
        table = _trusted(Table.open(path, self.storage_options, options, name.branch), options, self)
        return viewed(table, name.system_table)

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Return True if the table exists."""
        return bool(Schemas(self._io, self.location(_plain(identifier, "looked for"))).ids())

    def drop_table(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Delete a table with all its data, snapshots and branches, or finish a call that was interrupted.

        The table disappears in one step, then its files are deleted (decision 31). Raises NotFoundError if it does not
        exist and no files of it are left, unless ``ignore_if_not_exists``.
        """
        name = _plain(identifier, "dropped")
        path = self.location(name)
        self._remove_dropped(name.database)
        if self.table_exists(name) or is_half_dropped(self._io, path):
            drop_directory(self._io, path, lambda moved: self._delete_iceberg(name, moved))
        elif not ignore_if_not_exists:
            raise NotFoundError(f"no table {str(name)!r} in {self.warehouse}; {self._known_tables(name)}")

    def is_half_dropped(self, identifier: str | Identifier) -> bool:
        """Return True if the table does not exist, but files of it are left, which `drop_table` deletes."""
        name = _plain(identifier, "looked for")
        return not self.table_exists(name) and is_half_dropped(self._io, self.location(name))

    def remove_dropped(self, database: str) -> list[str]:
        """Delete the files of dropped tables that a crash has left. Return the names of the tables.

        Each `drop_table` and `create_table` in the database does the same.
        """
        path = self._existing_database(database)
        return empty_trash(
            self._io, path, lambda table, moved: self._delete_iceberg(Identifier(database, table), moved)
        )

    def _remove_dropped(self, database: str) -> None:
        if self._io.exists(self._database_path(database)):
            with best_effort("deleting the files of tables dropped before", (OSError, PaimonError)):
                self.remove_dropped(database)

    def _delete_iceberg(self, name: Identifier, moved: str) -> None:
        """Delete the Iceberg metadata of a dropped table outside of its directory, best effort.

        ``moved``: the directory with the table's files.
        """
        with best_effort("deleting the Iceberg metadata of a dropped table", (OSError, PaimonError)):
            schema = Schemas(self._io, moved).latest_stored()
            catalog = self._iceberg_directory(name, schema)
            if catalog is not None and not self.table_exists(name):  # else it belongs to a newer table
                self._io.delete_directory(catalog)

    def rename_table(self, source: str | Identifier, target: str | Identifier) -> None:
        """Move a table to another name or database, in one step.

        Raises NotFoundError if ``source`` does not exist, AlreadyExistsError if ``target`` exists, UnsupportedError for
        a store that cannot rename a directory atomically, such as an object store.
        """
        old, new = _plain(source, "renamed"), _plain(target, "a new name")
        if not self.table_exists(old):
            raise NotFoundError(f"no table {str(old)!r} in {self.warehouse}; {self._known_tables(old)}")
        database = self._existing_database(new.database)
        exists_error = AlreadyExistsError(
            f"{str(old)!r} cannot be renamed: {str(new)!r} exists already in {self.warehouse}"
        )
        if self._io.exists(self.location(new)):
            raise exists_error
        if not self._io.renames_atomically:
            raise UnsupportedError(
                f"{str(old)!r} cannot be renamed to {str(new)!r}: the store of {self.warehouse} cannot rename a "
                "directory atomically, so a reader or a crash could meet half a table; clone the table to the new "
                "name, then drop it"
            )
        iceberg = self._iceberg_directory(old, Schemas(self._io, self.location(old)).latest())
        try:
            self._io.inside(database).rename_directory(self.location(old), self.location(new))
        except FileExistsError:
            raise exists_error from None
        if iceberg is not None:
            with best_effort("deleting the Iceberg metadata of the old name"):
                self._io.delete_directory(iceberg)
        sync_after_change(FileStore.open(self.location(new), self.storage_options))

    def _iceberg_directory(self, name: Identifier, schema: TableSchema | None) -> str | None:
        """Return the directory of a table in the Iceberg catalog of the warehouse. `None`: no directory."""
        if schema is None or METADATA_ICEBERG_STORAGE.key not in schema.options:
            return None
        catalog = catalog_directory(self.location(name))
        return None if catalog is None or not self._io.exists(catalog) else catalog

    def migrate(
        self,
        source: "str | SourceTable",
        identifier: str | Identifier,
        format: str | None = None,
        partition_keys: "PartitionKeys | None" = None,
        *,
        move: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> Table:
        """Create a table of the Parquet, ORC or Avro files below a directory, in one commit, without rewriting them.

        The table has the columns of the files, which must agree, and the columns that directories ``column=value``
        name. Repeat an interrupted call to finish it.

        Args:
            source: the path of the directory, in a storage that the catalog's options reach.
            identifier: the name of the new table, which has no primary key.
            format: "parquet", "orc" or "avro", which all files must have; `None`: each file's own format.
            partition_keys: names of the partition columns, in order, or {name: type}; `None`: the names in the paths,
                with the types INT, BIGINT, DATE or STRING.
            move: True to delete the files of the directory once they are in the table; False to copy them.
            options: the options of the new table.

        Raises AlreadyExistsError for a table with other rows, and as `Table.add_files` does.
        """
        name = _plain(identifier, "created")
        self._existing_database(name.database)
        migration = migration_of(self._io, source, format, partition_keys, options)
        schema = migration.schema
        table_schema = replace(schema, options={**_defaults_for(schema, self.options), **schema.options})
        planned = FileStore(self._io, self.location(name), create(table_schema, 0))
        check_target(planned)
        exists = self.table_exists(name)
        table = self.table(name) if exists else self.create_table(name, table_schema)
        if exists:
            migration.check_existing(table.store, planned.schema)
        try:
            migration.add(table.store, move=move)
        except BaseException as error:
            with best_effort("dropping the table of a failed migration"):
                if not exists and not isinstance(error, CommitUnknownError) and table.snapshot() is None:
                    self.drop_table(name, ignore_if_not_exists=True)
            raise
        return table

    def clone(
        self,
        source: str | Identifier,
        target_catalog: "FileSystemCatalog",
        target: str | Identifier,
        **at: "Unpack[TimeTravelArguments]",
    ) -> Table:
        """Copy a table to another catalog, or within this one, or bring an older copy up to date.

        Files are copied byte by byte, eight at a time; files that the copy already has are skipped. After each call the
        copy has one snapshot of the source, with the schemas, but without tags and branches.

        Args:
            source: the table, or a branch of it.
            target_catalog: the catalog of the copy, which may have other storage options.
            target: the name of the copy, in an existing database.
            at: the snapshot, as for the reads of `Table`; by default the newest.

        Raises AlreadyExistsError if the target is not a copy of the source, or has been changed since;
        InvalidInputError if it is a copy of a newer snapshot.
        """
        return self.clone_table(self.table(source), target_catalog, target, **at)

    def clone_table(
        self,
        source: Table,
        target_catalog: "FileSystemCatalog",
        target: str | Identifier,
        **at: "Unpack[TimeTravelArguments]",
    ) -> Table:
        """Copy an open table, the ``source``, and return the copy. Arguments as for `clone`."""
        return _cloned(source, target_catalog, _plain(target, "a clone"), at)

    def alter_table(self, identifier: str | Identifier, changes: Sequence[SchemaChange]) -> Table:
        """Apply changes to a table's schema or options, all or none, and return the changed table."""
        return self.table(identifier).alter(changes)

    def location(self, identifier: str | Identifier) -> str:
        """Return the directory that a table has or would have. InvalidInputError for a name that no table can have."""
        name = _identifier(identifier)
        if name.table == TRASH:
            raise InvalidInputError(f"{name.table!r} cannot name a table: it is reserved")
        return join(self._database_path(name.database), name.table)

    # ---- inside

    def _database_path(self, name: str) -> str:
        check_name(name, name)
        if not name or name == SYSTEM_DATABASE:
            raise InvalidInputError(f"{name!r} cannot name a database" + (": it is reserved" if name else ""))
        return join(self.warehouse, name + _SUFFIX)

    def _existing_database(self, name: str) -> str:
        path = self._database_path(name)
        if not self._io.exists(path):
            raise self._no_database(name)
        return path

    def _no_database(self, name: str) -> NotFoundError:
        names = listed_names(name, self.list_databases())
        return NotFoundError(f"no database {name!r} in {self.warehouse}; there are: {names}")

    def _known_tables(self, identifier: Identifier) -> str:
        entries = self._io.list(self._database_path(identifier.database))
        tables = [entry.name for entry in entries if entry.is_directory and entry.name != TRASH]
        return f"database {identifier.database!r} has: {listed_names(identifier.table, sorted(tables))}"


def _identifier(identifier: str | Identifier) -> Identifier:
    return Identifier.parse(identifier) if isinstance(identifier, str) else identifier


def _plain(identifier: str | Identifier, use: str) -> Identifier:
    name = _identifier(identifier)
    if name.branch is not None or name.system_table is not None:
        raise InvalidInputError(f"{str(name)!r} is a branch or system table, which cannot be {use}")
    return name


def _defaults_for(schema: Schema, options: Mapping[str, str]) -> dict[str, str]:
    """Return the table defaults among the options of a catalog, without keys that the schema itself has."""
    keys = dict(zip(_KEYS, (schema.primary_keys, schema.partition_keys), strict=True))
    return {key: value for key, value in table_defaults(options).items() if not keys.get(key)}


def _trusted(table: Table, options: Mapping[str, str] | None, catalog: FileSystemCatalog) -> Table:
    """Return the table with the external roots that its catalog allows, unless the ``options`` have some."""
    allowed, store = DATA_FILE_EXTERNAL_PATHS_ALLOWED.key, table.store.within(catalog.warehouse)
    if allowed in catalog.options and allowed not in (options or {}):
        store = store.with_options({allowed: catalog.options[allowed]})
    return table.with_store(store)


def _cloned(source: Table, catalog: FileSystemCatalog, name: Identifier, at: TimeTravelArguments) -> Table:
    """Copy a table into a catalog under a name, at a snapshot, and return the copy."""
    database = catalog._existing_database(name.database)
    snapshot, newest = source.snapshot(**at), all(value is None for value in at.values())
    root = catalog.location(name)
    io = FileIO.of(root, catalog.storage_options).inside(database)
    clone(source.store, snapshot, io, root, newest=newest)
    return catalog.table(name)
