"""The part that all catalogs have in common. A subclass stores the names of databases and tables."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from paimon_core.catalog.catalog_options import allowed_paths, check_catalog_options, manifest_cache, table_defaults
from paimon_core.catalog.format_tables import CatalogFormatTables
from paimon_core.catalog.identifier import SYSTEM_DATABASE, Identifier, identifier_of, plain_identifier
from paimon_core.catalog.other_tables import TablesOfCatalog
from paimon_core.catalog.staged import StagedTable
from paimon_core.catalog.views import CatalogViews
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
from paimon_core.lazy import deferred
from paimon_core.options.iceberg import METADATA_ICEBERG_STORAGE
from paimon_core.schema.blob_columns import check_movable
from paimon_core.schema.change import SchemaChange
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.snapshot.time_travel import TimeTravelArguments
from paimon_core.store.drop import TRASH, drop_directory, empty_trash, is_half_dropped
from paimon_core.store.environment import NO_CATALOG, CatalogEnvironment
from paimon_core.store.file_store import FileStore
from paimon_core.store.iceberg_location import catalog_directory
from paimon_core.store.storage_options import check_storage_options
from paimon_core.table import AnyTable, SystemTable, Table, read_only, viewed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paimon_core.catalog.global_tables import global_table, global_table_names
    from paimon_core.format_table.registry import PartitionRegistry
    from paimon_core.iceberg.sync import sync_after_change
    from paimon_core.migration.add_files import check_target
    from paimon_core.migration.clone import clone
    from paimon_core.migration.migrate import PartitionKeys, SourceTable, migration_of
    from paimon_core.store.create import create_table
    from paimon_core.table.format_table import FormatTable, open_format_table
else:
    global_table = deferred("paimon_core.catalog.global_tables", "global_table")
    global_table_names = deferred("paimon_core.catalog.global_tables", "global_table_names")
    sync_after_change = deferred("paimon_core.iceberg.sync", "sync_after_change")
    check_target = deferred("paimon_core.migration.add_files", "check_target")
    clone = deferred("paimon_core.migration.clone", "clone")
    migration_of = deferred("paimon_core.migration.migrate", "migration_of")
    create_table = deferred("paimon_core.store.create", "create_table")
    open_format_table = deferred("paimon_core.table.format_table", "open_format_table")

_KEYS = ("primary-key", "partition")


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The directory of a table of a catalog, and the part of the catalog in its changes.

    ``storage_options``: the options of its file system; `None`: the options of the catalog. The repr hides them.
    ``format_schema``: the columns and options of a format table; `None`: a table of Paimon, whose files have them.
    """

    path: str
    environment: CatalogEnvironment = NO_CATALOG
    storage_options: Mapping[str, object] | None = None
    format_schema: TableSchema | None = None
    is_external: bool = False
    """True if the catalog does not delete the files with the table."""

    def __repr__(self) -> str:
        return f"TableEntry({hide_secrets(self.path)!r})"


class Catalog(CatalogViews, CatalogFormatTables):
    """Databases, tables and views by name. `open_catalog` returns the catalog that its options choose.

    A table is named by a text ``"db.table"`` or an `Identifier`. ``options`` may contain ``table-default.<option>``, a
    default for tables that this catalog creates, and ``data-file.external-paths.allowed``: roots outside of the
    tables, in which files of the tables may be read and deleted; ``blob.external-paths.allowed`` only lets blobs that
    rows describe be read. See `check_catalog_options` for other options.

    All queries of tables that a catalog opens share a cache of manifests: see `manifest_cache`.

    A subclass implements the methods whose names begin with an underscore. The methods that it does not override store
    the tables of a database in one directory: the schema of a table is in its files, and so are its snapshots. What a
    catalog adds to changes of a table, such as a lock, is in the `CatalogEnvironment` of `_entry` and `_locate`.
    """

    has_locations: ClassVar[bool] = False
    """True if the option ``path`` of a new table may be a directory outside of its database."""

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
        check_catalog_options(self.options, self.kind)
        self._manifests = manifest_cache(self.options)
        check_storage_options(self.storage_options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({hide_secrets(self.warehouse)!r})"

    # ---- tables

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        The database ``sys`` has the system tables of the catalog.
        """
        if database == SYSTEM_DATABASE:
            return global_table_names()
        self._existing_database(database)
        return self._table_names(database)

    def create_table(self, identifier: str | Identifier, schema: Schema, ignore_if_exists: bool = False) -> Table:
        """Create a table with ``schema`` and the catalog's default options, and open it.

        Raises AlreadyExistsError if it exists, unless ``ignore_if_exists``; NotFoundError if its database does not;
        InvalidInputError for a directory with files of a dropped table, which another `drop_table` deletes;
        UnsupportedError for the schema of a format table.
        """
        name = plain_identifier(identifier, "created")
        if Schema.require(schema).options.get("type") == "format-table":
            raise UnsupportedError(f"{str(name)!r} would be a format table: call create_format_table")
        self._existing_database(name.database)
        self._check_new(name)
        try:
            entry = self._create_table(name, self._with_defaults(schema))
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise
            return self.table(name)
        return self._open(entry)

    def stage_table(self, identifier: str | Identifier, schema: Schema, *, replace_existing: bool) -> StagedTable:
        """Return a staged table with ``schema``, which `StagedTable.publish` makes visible.

        ``replace_existing``: True if it may replace a table, which keeps its older snapshots. Raises AlreadyExistsError
        for a table that exists, unless ``replace_existing``; NotFoundError if the database does not exist, and as
        `StagedTable.prepare` does.
        """
        name = plain_identifier(identifier, "created")
        self._existing_database(name.database)
        entry = self._entry(name)
        self._check_new(name)
        if not replace_existing and self.table_exists(name):
            raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.warehouse}")
        table_schema = self._with_defaults(schema)
        io = self._new_io(entry, name)
        main = FileStore(io, join(entry.path), create(table_schema, 0), environment=entry.environment)
        return StagedTable.prepare(io, main.within(self.warehouse), table_schema)

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
        table = self.named_table(identifier, options)
        if isinstance(table, (Table, SystemTable)):
            return table
        raise UnsupportedError(f"{table.name} is a format table, without snapshots: open it with Catalog.format_table")

    def named_table(
        self, identifier: str | Identifier, options: Mapping[str, str] | None = None
    ) -> "AnyTable | FormatTable":
        """Open and return a table of any kind, for engines.

        Arguments and errors as for `table`. Raises UnsupportedError for a branch or a system table of a format table,
        and for ``options`` of a format table.
        """
        name = identifier_of(identifier)
        if name.database == SYSTEM_DATABASE:
            return global_table(self, self._io, name)
        entry = self._locate(replace(name, branch=None, system_table=None))
        if entry is None:
            raise self._no_table(name)
        if entry.format_schema is None:
            return viewed(self._open(entry, options, name.branch), name.system_table)
        return _format_table(self._io_of(entry), entry, name, options, self._partitions_of(name))

    def table_at(
        self,
        path: str,
        identifier: str | Identifier,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> Table:
        """Open and return a table of this catalog by its directory, for engines. It may not be registered yet.

        Args:
            path: the directory of the table.
            identifier: its name.
            options: dynamic options for this object only.
            branch: the branch; `None`: the main branch.

        Raises NotFoundError if the directory has no table.
        """
        entry = self._entry(plain_identifier(identifier, "opened by its path"))
        return self._open(replace(entry, path=path), options, branch)

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Return True if the table exists."""
        return self._locate(plain_identifier(identifier, "looked for")) is not None

    def drop_table(self, identifier: str | Identifier, ignore_if_not_exists: bool = False) -> None:
        """Delete a table with all its data, snapshots and branches, or finish a call that was interrupted.

        The table disappears in one step, then its files are deleted (decision 31). Raises NotFoundError if it does not
        exist and no files of it are left, unless ``ignore_if_not_exists``.
        """
        name = plain_identifier(identifier, "dropped")
        if not self._drop_table(name) and not ignore_if_not_exists:
            raise self._no_table(name)

    def is_half_dropped(self, identifier: str | Identifier) -> bool:
        """Return True if the table does not exist, but files of it are left, which `drop_table` deletes."""
        name = plain_identifier(identifier, "looked for")
        return not self.table_exists(name) and is_half_dropped(self._io, self.location(name))

    def remove_dropped(self, database: str) -> list[str]:
        """Delete the files of dropped tables that a crash has left. Return the names of the tables.

        Each `drop_table` and `create_table` in the database does the same.
        """
        path = self._existing_database(database)
        return empty_trash(
            self._io, path, lambda table, moved: self._delete_iceberg(Identifier(database, table), moved)
        )

    def rename_table(self, source: str | Identifier, target: str | Identifier) -> None:
        """Move a table to another name or database, in one step.

        Raises NotFoundError if ``source`` does not exist, AlreadyExistsError if ``target`` exists, UnsupportedError for
        a store that cannot rename a directory atomically, such as an object store.
        """
        old, new = plain_identifier(source, "renamed"), plain_identifier(target, "a new name")
        if not self.table_exists(old):
            raise self._no_table(old)
        self._existing_database(new.database)
        self._rename_table(old, new)

    def alter_table(self, identifier: str | Identifier, changes: Sequence[SchemaChange]) -> Table:
        """Apply changes to a table's schema or options, all or none, and return the changed table."""
        return self.table(identifier).alter(changes)

    def location(self, identifier: str | Identifier) -> str:
        """Return the directory that a table has or would have. InvalidInputError for a name that no table can have."""
        name = identifier_of(identifier)
        if name.table == TRASH:
            raise InvalidInputError(f"{name.table!r} cannot name a table: it is reserved")
        return join(self.database_location(name.database), name.table)

    # ---- copies

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
        name = plain_identifier(identifier, "created")
        self._existing_database(name.database)
        migration = migration_of(self._io, source, format, partition_keys, options)
        schema = migration.schema
        table_schema = self._with_defaults(schema)
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
        target_catalog: "Catalog",
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
        target_catalog: "Catalog",
        target: str | Identifier,
        **at: "Unpack[TimeTravelArguments]",
    ) -> Table:
        """Copy an open table, the ``source``, and return the copy. Arguments as for `clone`."""
        return _cloned(source, target_catalog, plain_identifier(target, "a clone"), at)

    # ---- the tables of a subclass

    @abstractmethod
    def _table_names(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted."""

    @abstractmethod
    def _locate(self, name: Identifier) -> TableEntry | None:
        """Return the entry of a table; `None` if it does not exist. ``name``: has neither branch nor system table."""

    def _entry(self, name: Identifier) -> TableEntry:
        """Return the entry that a new table with this name gets."""
        return TableEntry(self.location(name))

    def _check_new(self, name: Identifier) -> None:
        """Raise InvalidInputError for a name that no new table of this catalog can have."""

    def _create_table(self, name: Identifier, schema: Schema) -> TableEntry:
        """Create a table, and return its entry. Raise AlreadyExistsError if it exists.

        Its first schema is published through its environment, which registers it.
        """
        self._remove_dropped(name.database)
        entry = self._entry(name)
        create_table(self._new_io(entry, name), entry.path, schema, environment=entry.environment)
        return entry

    def _drop_table(self, name: Identifier) -> bool:
        """Delete a table, or the files that are left of it; return False if no file is left."""
        path = self.location(name)
        self._remove_dropped(name.database)
        if not self.table_exists(name) and not is_half_dropped(self._io, path):
            return False
        drop_directory(self._io, path, lambda moved: self._delete_iceberg(name, moved))
        return True

    def _rename_table(self, old: Identifier, new: Identifier) -> None:
        """Move the directory of a table to its new name. Raise as `rename_table` does."""
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
        schema = Schemas(self._io, self.location(old)).latest()
        check_movable(schema, repr(str(old)))
        iceberg = self._iceberg_directory(old, schema)
        try:
            self._new_io(self._entry(new), new).rename_directory(self.location(old), self.location(new))
        except FileExistsError:
            raise exists_error from None
        if iceberg is not None:
            with best_effort("deleting the Iceberg metadata of the old name"):
                self._io.delete_directory(iceberg)
        sync_after_change(FileStore.open(self.location(new), self.storage_options))

    # ---- inside

    def _open(self, entry: TableEntry, options: Mapping[str, str] | None = None, branch: str | None = None) -> Table:
        """Open a table with the external roots that the catalog allows, unless the ``options`` have some."""
        storage = self.storage_options if entry.storage_options is None else entry.storage_options
        table = Table.open(entry.path, storage, options, branch)
        store = table.store.within(self.warehouse).of_catalog(entry.environment)
        store = store.with_options(allowed_paths(self.options, options or {}))
        return table.with_store(replace(store, of_all_queries=self._manifests, others=TablesOfCatalog.of(self)))

    def _new_io(self, entry: TableEntry, name: Identifier) -> FileIO:
        """Return the storage for a new table, which does not bring a dropped database back."""
        return self._io_of(entry).inside(self.database_location(name.database))

    def _io_of(self, entry: TableEntry) -> FileIO:
        storage = self.storage_options if entry.storage_options is None else entry.storage_options
        return FileIO.of(entry.path, storage)

    def _no_table(self, name: Identifier) -> NotFoundError:
        """Return the error for a missing table. Raises NotFoundError if its database is missing."""
        self._existing_database(name.database)
        if self.has_views and self.view_exists(name):
            return NotFoundError(f"{str(name)!r} in {self.warehouse} is a view, which has no files")
        names = listed_names(name.table, self._table_names(name.database))
        return NotFoundError(f"no table {str(name)!r} in {self.warehouse}; database {name.database!r} has: {names}")

    def _with_defaults(self, schema: Schema) -> Schema:
        """Return a schema with the table defaults of the catalog, without keys that the schema itself has."""
        keys = dict(zip(_KEYS, (schema.primary_keys, schema.partition_keys), strict=True))
        defaults = {key: value for key, value in table_defaults(self.options).items() if not keys.get(key)}
        return replace(schema, options={**defaults, **schema.options})

    def _remove_dropped(self, database: str) -> None:
        if self._io.exists(self.database_location(database)):
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

    def _iceberg_directory(self, name: Identifier, schema: TableSchema | None) -> str | None:
        """Return the directory of a table in the Iceberg catalog of the warehouse. `None`: no directory."""
        if schema is None or METADATA_ICEBERG_STORAGE.key not in schema.options:
            return None
        catalog = catalog_directory(self.location(name))
        return None if catalog is None or not self._io.exists(catalog) else catalog


def _cloned(source: Table, catalog: Catalog, name: Identifier, at: TimeTravelArguments) -> Table:
    """Copy a table into a catalog under a name, at a snapshot, and return the copy."""
    catalog._existing_database(name.database)
    catalog._check_new(name)
    snapshot, newest = source.snapshot(**at), all(value is None for value in at.values())
    entry = catalog._entry(name)
    io = catalog._new_io(entry, name)
    clone(source.store, snapshot, io, entry.path, newest=newest, environment=entry.environment)
    return catalog.table(name)


def _format_table(
    io: FileIO,
    entry: TableEntry,
    name: Identifier,
    options: Mapping[str, str] | None,
    partitions: "PartitionRegistry | None",
) -> "FormatTable":
    """Return a format table. Raise UnsupportedError for a branch or a system table of it, and for options."""
    assert entry.format_schema is not None
    plain = str(replace(name, branch=None, system_table=None))
    if str(name) != plain or options:
        raise UnsupportedError(
            f"{plain!r} is a format table: it has no branches, no system tables and no options of a read"
        )
    return open_format_table(io, entry.path, entry.format_schema, plain, partitions, entry.is_external)
