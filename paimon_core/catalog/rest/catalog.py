"""`RestCatalog`: databases and tables that a server of Paimon's REST interface holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final, TypeVar

from paimon_core.catalog.catalog import Catalog, TableEntry
from paimon_core.catalog.catalog_options import REST, allowed_paths, check_catalog_options, manifest_cache
from paimon_core.catalog.identifier import Identifier, identifier_of, plain_identifier
from paimon_core.catalog.other_tables import TablesOfCatalog
from paimon_core.catalog.rest.api import RestApi, merged_options
from paimon_core.catalog.rest.client import RestClient, RestNotFoundError
from paimon_core.catalog.rest.data_tokens import DataToken, DataTokenIO, TokenSource
from paimon_core.catalog.rest.environment import ExternalEnvironment, RestEnvironment
from paimon_core.catalog.rest.models import RestPartition, RestTable, view_changes_to_json
from paimon_core.catalog.rest.partitions import RestPartitions
from paimon_core.catalog.staged import StagedTable
from paimon_core.catalog.view import CatalogFunction, View
from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    PaimonError,
    TableChangedError,
    UnsupportedError,
)
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.fileio.stores import is_storage_option
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.families import DEFAULTS_PREFIX
from paimon_core.options.option import Options
from paimon_core.schema.change import SchemaChange
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.support import QUERY_AUTH, check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.store.create import create_table
from paimon_core.store.environment import CatalogEnvironment
from paimon_core.store.file_store import now_millis
from paimon_core.store.storage_options import check_storage_options
from paimon_core.table import Table

_Object = TypeVar("_Object", View, CatalogFunction)
_DATA_TOKENS: Final = "data-token.enabled"


@dataclass(frozen=True, slots=True)
class RestEntry(TableEntry):
    """A table of a REST catalog. ``described``: as the server describes it."""

    name: Identifier | None = None
    described: RestTable | None = None

    def __repr__(self) -> str:
        return f"RestEntry({str(self.name)!r})"


@dataclass(frozen=True)
class RestStagedTable(StagedTable):
    """A new table of a REST catalog, which is visible, without rows, from the beginning."""

    catalog: "RestCatalog | None" = None
    identifier: Identifier | None = None

    def publish(self, operation: str | None = None) -> Table:
        """Return the table, whose rows are committed already."""
        return Table(self.store)

    def discard(self) -> None:
        """Drop the table."""
        if self.catalog is not None and self.identifier is not None:
            self.catalog.drop_table(self.identifier, ignore_if_not_exists=True)


class RestCatalog(Catalog):
    """Databases and tables that a server holds. The server creates, alters and drops tables, and publishes snapshots.

    All other files are read and written by this engine, in the storage of each table. Tables that the server calls
    external are committed to without it, as by the Java engine.

    Args:
        warehouse: the name of the catalog on the server.
        storage_options: options of the file systems of the tables.
        options: the options of the catalog: ``uri``, ``token.provider``, ``token``, ``dlf.*``, ``header.*``, and the
            options of every catalog. The server's overrides replace them, and they replace the server's defaults.

    Raises InvalidInputError for an option that is missing or unknown, PermissionDeniedError, and OSError if the server
    cannot be reached.
    """

    kind: ClassVar[str] = REST
    has_views: ClassVar[bool] = True
    has_functions: ClassVar[bool] = True
    in_directory: ClassVar[bool] = False
    has_format_tables: ClassVar[bool] = True

    def __init__(
        self,
        warehouse: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        given = dict(options or {})
        check_catalog_options(given, self.kind)
        check_storage_options(storage_options or {})
        client = RestClient(given.get("uri", ""), given)
        merged = merged_options(client, warehouse, given)
        storage = {key: value for key, value in merged.items() if "." in key and is_storage_option(key.lower())}
        self.warehouse = warehouse
        self.storage_options = {**storage, **(storage_options or {})}
        defaults = {key: value for key, value in merged.items() if key.startswith(DEFAULTS_PREFIX)}
        self.options = {**given, **defaults}
        self._manifests = manifest_cache(self.options)
        self._address = {**given, "metastore": REST, "warehouse": warehouse}
        self.api = RestApi(RestClient(given.get("uri", ""), merged), merged.get("prefix"))
        self._data_tokens = merged.get(_DATA_TOKENS, "false").strip().lower() == "true"
        self._oss_endpoint = merged.get("dlf.oss-endpoint")
        self._io = FileIO.of(absolute(warehouse), self.storage_options)

    # ---- databases

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return sorted(self.api.databases())

    def database_location(self, name: str) -> str:
        """Return the directory of the tables of a database, or a text that names it if the server does not say."""
        location = super().database_location(name)
        try:
            return str(self.api.database(name).get("location") or location)
        except RestNotFoundError:
            return location

    def _existing_database(self, name: str) -> str:
        location = super().database_location(name)
        try:
            return str(self.api.database(name).get("location") or location)
        except RestNotFoundError:
            raise self._no_database(name) from None

    def _create_database(self, name: str, properties: dict[str, str]) -> None:
        try:
            self.api.create_database(name, properties)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"database {name!r} exists already in {self.warehouse}") from error

    def _database_exists(self, name: str) -> bool:
        try:
            self.api.database(name)
        except RestNotFoundError:
            return False
        return True

    def _database_properties(self, name: str) -> dict[str, str]:
        return {str(key): str(value) for key, value in (self.api.database(name).get("options") or {}).items()}

    def _alter_database(self, name: str, changes: Mapping[str, str | None]) -> None:
        removals = [key for key, value in changes.items() if value is None]
        self.api.alter_database(name, removals, {key: value for key, value in changes.items() if value is not None})

    def _drop_database(self, name: str) -> None:
        self.api.drop_database(name)

    # ---- tables

    def location(self, identifier: str | Identifier) -> str:
        """Return the directory of a table. For a table that does not exist, a text that names it."""
        name = identifier_of(identifier)
        checked = join(super().database_location(name.database), name.table)
        entry = self._locate(replace(name, branch=None, system_table=None))
        return checked if entry is None else entry.path

    def stage_table(self, identifier: str | Identifier, schema: Schema, *, replace_existing: bool) -> StagedTable:
        """Create a table for the rows of ``CREATE TABLE ... AS SELECT``: it is visible, without rows, from now on.

        ``replace_existing``: True if it may replace a table. Raises UnsupportedError if there is one to replace,
        because the server cannot replace schema and rows in one step; otherwise as `create_table`.
        """
        name = plain_identifier(identifier, "created")
        if replace_existing and self.table_exists(name):
            raise UnsupportedError(
                f"table {str(name)!r} cannot be replaced: a REST catalog cannot replace schema and rows in one step. "
                "Use INSERT OVERWRITE for the rows and ALTER TABLE for the columns, or drop the table first"
            )
        table = self.create_table(name, schema)
        return RestStagedTable(table.store, None, None, self, name)

    def table_at(
        self,
        path: str,
        identifier: str | Identifier,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> Table:
        """Open and return a table by name, which must still be in ``path``. Arguments: `Catalog.table_at`.

        Raises TableChangedError if another table has the name, NotFoundError if no table has it.
        """
        name = plain_identifier(identifier, "opened by its path")
        entry = self._locate(name)
        if entry is None:
            raise self._no_table(name)
        if join(absolute(entry.path)) != join(absolute(path)):
            raise TableChangedError(f"table {str(name)!r} was dropped, and another table has its name: run it again")
        return self._open(entry, options, branch)

    def is_half_dropped(self, identifier: str | Identifier) -> bool:
        """Return False: the server deletes the files of dropped tables."""
        plain_identifier(identifier, "looked for")
        return False

    def remove_dropped(self, database: str) -> list[str]:
        """Return an empty list: the server deletes the files of dropped tables."""
        self._existing_database(database)
        return []

    def list_partitions(self, identifier: str | Identifier) -> list[RestPartition] | None:
        """Return the partitions of a table as the server counts them; `None`: it does not count them."""
        return self.api.partitions(plain_identifier(identifier, "looked for"))

    def _table_names(self, database: str) -> list[str]:
        return sorted(self.api.tables(database))

    def _locate(self, name: Identifier) -> RestEntry | None:
        try:
            table = self.api.table(name)
        except RestNotFoundError:
            return None
        environment: CatalogEnvironment = RestEnvironment(self.api, name, table.table_id, self._address)
        if table.is_external:  # committed to without the server, as by the Java engine
            environment = ExternalEnvironment(self.api, name, self._address)
        path, schema = _plain_path(table.path), table.format_schema(name)
        return RestEntry(path, environment, None, schema, table.is_external, name, table)

    def _entry(self, name: Identifier) -> TableEntry:
        raise UnsupportedError(
            f"table {str(name)!r} cannot be cloned into a REST catalog, whose server chooses the directories of new "
            "tables: create the table, and insert the rows"
        )

    def _create_table(self, name: Identifier, schema: Schema) -> RestEntry:
        options = dict(schema.options)
        path = options.pop("path", None)
        plain = create(replace(schema, options=options), now_millis())
        check_writable(plain)
        if path is not None:
            plain = self._external_schema(name, path, plain)
        if self.view_exists(name):  # a server may not look
            raise AlreadyExistsError(f"{str(name)!r} exists already in {self.warehouse}, as a view")
        try:
            self.api.create_table(name, plain, path)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.warehouse}") from error
        entry = self._locate(name)
        if entry is None:
            raise NotFoundError(f"table {str(name)!r} was dropped by another process as soon as it was created")
        return entry

    def _external_schema(self, name: Identifier, path: str, plain: TableSchema) -> TableSchema:
        """Return the schema of a table at a path, where the table is created first if it is missing.

        A path that this call uses, and that the server then refuses, can be used again.
        """
        if self.table_exists(name):
            raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.warehouse}")
        io = FileIO.of(path, self.storage_options)
        stored = Schemas(io, join(absolute(path))).latest()
        if stored is None:
            options = dict(plain.options)
            return create_table(io, path, Schema(plain.fields, plain.primary_keys, plain.partition_keys, options))
        if [(f.name, f.type) for f in stored.fields] != [(f.name, f.type) for f in plain.fields]:
            raise InvalidInputError(
                f"table {str(name)!r} cannot be created at {path}, where a table with other columns is: name its "
                "columns, or another path"
            )
        return stored

    def _drop_table(self, name: Identifier) -> bool:
        try:
            self.api.drop_table(name)
        except RestNotFoundError:
            return False
        return True

    def _rename_table(self, old: Identifier, new: Identifier) -> None:
        exists = AlreadyExistsError(f"{str(old)!r} cannot be renamed: {str(new)!r} exists already in {self.warehouse}")
        if self.table_exists(new) or self.view_exists(new):
            raise exists
        try:
            self.api.rename_table(old, new)
        except AlreadyExistsError as error:
            raise exists from error
        except RestNotFoundError as error:
            raise self._no_table(old) from error

    def _open(self, entry: TableEntry, options: Mapping[str, str] | None = None, branch: str | None = None) -> Table:
        """Open a table with the credentials that the server gives for its files, if it gives any."""
        assert isinstance(entry, RestEntry)
        assert entry.described is not None
        assert entry.name is not None
        entry.described.check_kind(entry.name)
        token_io = self._token_io(entry)
        storage, io = self.storage_options, None
        if token_io is not None:
            token, io = token_io
            storage = dict(token.options)
        table = Table.open(entry.path, storage, options, branch)
        store = table.store.of_catalog(entry.environment)
        if io is not None:
            store = replace(store, io=io)
        newest = store.schemas.ids()[-1:]
        if store.branch == "main" and newest < [entry.described.schema_id]:
            raise UnsupportedError(
                f"the server has schema {entry.described.schema_id} of table {str(entry.name)!r}, but the newest in "
                f"the files at {entry.path}, which this engine reads, is {newest}"
            )
        store = store.with_options(allowed_paths(self.options, options or {}))
        if entry.described.hides or store.options.value(ALL_OPTIONS[QUERY_AUTH]):
            store = replace(store, permissions=entry.environment.permissions(store))
        return table.with_store(replace(store, of_all_queries=self._manifests, others=TablesOfCatalog.of(self)))

    def _io_of(self, entry: TableEntry) -> FileIO:
        token_io = self._token_io(entry)
        return super()._io_of(entry) if token_io is None else token_io[1]

    def _token_io(self, entry: TableEntry) -> tuple[DataToken, DataTokenIO] | None:
        """Return the server's credentials for the files of a table, and its storage; `None`: it gives none."""
        assert isinstance(entry, RestEntry)
        if not self._data_tokens or entry.name is None or entry.described is None or entry.described.is_external:
            return None
        source = TokenSource(self.api, entry.name, self.storage_options, self._oss_endpoint)
        token = source.load()
        return token, DataTokenIO(entry.path, source, token)

    def _partitions_of(self, name: Identifier) -> RestPartitions:
        return RestPartitions(self.api, name)

    def _alter_format_table(self, name: Identifier, changes: Sequence[SchemaChange]) -> None:
        self.api.alter_table(name, changes)

    def _create_format_table(self, name: Identifier, schema: TableSchema) -> None:
        options = dict(schema.options)
        path = options.pop("path", None)
        if self.view_exists(name):  # a server may not look
            raise AlreadyExistsError(f"{str(name)!r} exists already in {self.warehouse}, as a view")
        try:
            self.api.create_table(name, replace(schema, options=Options(options)), path)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"table {str(name)!r} exists already in {self.warehouse}") from error

    # ---- views and functions

    def _view_names(self, database: str) -> list[str]:
        return self.api.views(database)

    def _find_view(self, name: Identifier) -> View | None:
        try:
            return self.api.view(name)
        except RestNotFoundError:
            return None

    def _create_view(self, name: Identifier, view: View, *, replace: bool) -> None:
        """Create a view. The server cannot replace one in one step: after an error, the old one is created again."""
        taken = AlreadyExistsError(f"{str(name)!r} exists already in {self.warehouse}")
        if self.table_exists(name):  # a server may not look
            raise taken
        old = self._find_view(name) if replace else None
        if old is not None:
            self._drop_view(name)
        try:
            _create(partial(self.api.create_view, name), view, old)
        except AlreadyExistsError as error:
            raise taken from error

    def _drop_view(self, name: Identifier) -> bool:
        try:
            self.api.drop_view(name)
        except RestNotFoundError:
            return False
        return True

    def _rename_view(self, old: Identifier, new: Identifier) -> None:
        taken = AlreadyExistsError(f"{str(old)!r} cannot be renamed: {str(new)!r} exists already in {self.warehouse}")
        if self.table_exists(new) or self.view_exists(new):
            raise taken
        try:
            self.api.rename_view(old, new)
        except AlreadyExistsError as error:
            raise taken from error

    def _alter_view(self, name: Identifier, change: Callable[[View], View]) -> bool:
        old = self._find_view(name)
        if old is None:
            return False
        changes = view_changes_to_json(old, change(old))
        if changes:
            self.api.alter_view(name, changes)
        return True

    def _function_names(self, database: str) -> list[str]:
        return self.api.functions(database)

    def _find_function(self, name: Identifier) -> CatalogFunction | None:
        try:
            return self.api.function(name)
        except RestNotFoundError:
            return None

    def _create_function(self, name: Identifier, function: CatalogFunction, *, replace: bool) -> None:
        """Create a function. Replacing takes two steps, as for `_create_view`."""
        old = self._find_function(name) if replace else None
        if old is not None:
            self._drop_function(name)
        try:
            _create(partial(self.api.create_function, name), function, old)
        except AlreadyExistsError as error:
            raise AlreadyExistsError(f"function {str(name)!r} exists already in {self.warehouse}") from error

    def _drop_function(self, name: Identifier) -> bool:
        try:
            self.api.drop_function(name)
        except RestNotFoundError:
            return False
        return True


def _create(create: Callable[[_Object], None], new: _Object, old: _Object | None) -> None:
    """Create a view or function in place of ``old``, which is dropped; after an error, create ``old`` again.

    ``old``: `None` for a new name. Raises AlreadyExistsError if another client has created one; that one stays.
    """
    try:
        create(new)
    except AlreadyExistsError:
        raise
    except BaseException:
        if old is not None:
            with best_effort("creating again what could not be replaced", (OSError, PaimonError)):
                create(old)
        raise


def _plain_path(path: str) -> str:
    """Return a path with the scheme ``file:`` of Java as a local path; any other path as it is."""
    return path.removeprefix("file:") if path.startswith("file:/") and not path.startswith("file://") else path
