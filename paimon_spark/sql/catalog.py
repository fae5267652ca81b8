"""A Spark catalog of the databases and tables in a warehouse."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from paimon_core import FormatTable, Schema, StagedTable, SystemTable, Table, TableSchema, open_catalog
from paimon_core.engine import (
    AUDIT_LOG,
    AnyTable,
    FileIO,
    Identifier,
    Operation,
    check_name,
    is_format_table,
    open_any,
    read_only,
    split_name,
)
from paimon_core.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    PaimonError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.options import warn_once
from paimon_spark.error_advice import advise_on_errors
from paimon_spark.feed_request import request_of
from paimon_spark.internals import is_classic
from paimon_spark.options import catalog_option, with_changed_options
from paimon_spark.sql.bridge.catalogs import install, stored_schema
from paimon_spark.sql.bridge.conversions import java_array, text_array, texts_of
from paimon_spark.sql.bridge.endpoints import CatalogEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.interrupts import cancel_jobs_on_interrupt
from paimon_spark.sql.bridge.jvm import CATALOG_CLASS, SESSION_CATALOG, SESSION_CATALOG_CLASS, VIEWED_CATALOG_CLASS, Jvm
from paimon_spark.sql.bridge.spark_errors import analysis_error, missing_table, unsupported
from paimon_spark.sql.changelog import changelog
from paimon_spark.sql.ddl.alter import schema_changes, without_nullable_keys
from paimon_spark.sql.ddl.databases import DEFAULT_DATABASE, same_directory
from paimon_spark.sql.ddl.functions import load_sql_function
from paimon_spark.sql.ddl.schema import description, new_schema
from paimon_spark.sql.ddl.views import ViewHandler
from paimon_spark.sql.format import install_format
from paimon_spark.sql.format_table import FORMAT_TABLE_CAPABILITIES, FormatTableHandler, staged_format_table
from paimon_spark.sql.reads.functions import list_functions, load_function
from paimon_spark.sql.session_options import PREFIX, session_options, table_options
from paimon_spark.sql.staged import StagedHandler
from paimon_spark.sql.statements.parser import install_parser
from paimon_spark.sql.statements.procedures import list_procedures, load_procedure
from paimon_spark.sql.system_table import SystemTableHandler, check_time_travel
from paimon_spark.sql.table import TableHandler
from paimon_spark.worker_python import check_worker_python

_CATALOG = "org.apache.spark.sql.connector.catalog"
_CAPABILITIES = (
    "BATCH_READ",
    "MICRO_BATCH_READ",
    "BATCH_WRITE",
    "V1_BATCH_WRITE",
    "STREAMING_WRITE",
    "TRUNCATE",
    "OVERWRITE_BY_FILTER",
    "OVERWRITE_DYNAMIC",
)
_READS = ("BATCH_READ", "MICRO_BATCH_READ")
_DATA_SOURCE = "paimon"
Kind = TypeVar("Kind", Table, FormatTable)
NEEDS_CLASSIC = (
    "a catalog needs a classic session, but this is a Spark Connect session: connect to a server of paimon-spark "
    "serve, which has catalogs, or use spark.read.format('paimon') and paimon_spark.PaimonTable.forPath"
)
"""The error for a catalog over Spark Connect."""


def catalog(
    spark: SparkSession,
    name: str,
    *,
    warehouse: str | None = None,
    default: bool = False,
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Install a catalog, whose tables have names like ``<name>.<database>.<table>`` in SQL and in Spark's methods.

    The catalog is visible in all sessions of the application, including the sessions that streaming queries clone. From
    then on, Ctrl-C also cancels running jobs. The database ``default`` is created if it is missing. If the directory of
    the warehouse does not exist, a warning says so, and the first CREATE makes both.

    Args:
        spark: a classic session.
        name: the name of the catalog; an installed catalog with this name is replaced. ``spark_catalog`` adds the
            Paimon tables to Spark's own catalog, whose databases and tables stay.
        warehouse: the directory of the databases, local or on an object store; `None`: the option ``warehouse``.
        default: True to make it the current catalog of the session, for names without a catalog.
        storage_options: options of the file system.
        options: ``table-default.<option>`` and other options of the catalog, as for `paimon_core.open_catalog`.

    Raises UnsupportedError for a session of Spark Connect, MissingDependencyError if the workers of a local session
    lack this package.
    """
    if not is_classic(spark):
        raise UnsupportedError(NEEDS_CLASSIC)
    check_worker_python(spark)
    advise_on_errors()
    jvm = Jvm(spark)
    handler = CatalogHandler(jvm, name, open_catalog(warehouse, storage_options, options))
    handler.prepare_warehouse()
    install(jvm, name, handler)
    install_parser(jvm)
    install_format(spark)
    cancel_jobs_on_interrupt(spark.sparkContext)
    kind = VIEWED_CATALOG_CLASS if jvm.has_views and handler.catalog.has_views else CATALOG_CLASS
    read_by_rule = handler.catalog.has_views and not jvm.has_views and name != SESSION_CATALOG
    jvm.call("PaimonViewRule", "lookInto", name, read_by_rule)
    settings = {f"spark.sql.catalog.{name}": SESSION_CATALOG_CLASS if name == SESSION_CATALOG else kind}
    if default:
        settings["spark.sql.defaultCatalog"] = name
    for key, value in settings.items():
        jvm.set_everywhere(key, value)


@dataclass
class CatalogHandler(ViewHandler, CatalogEndpoint):
    """The handler of a catalog, for ``Catalog.java``."""

    _made_for_streams: dict[tuple[str, ...], tuple[Schema, TableSchema]] = field(default_factory=dict)
    """The declared schema and the stored schema of each table that ``writeStream.toTable`` has created."""

    def prepare_warehouse(self) -> None:
        """Create the database ``default``; warn instead if the directory of the warehouse does not exist.

        On a server, which decides on its databases, nothing is created.
        """
        if not self.catalog.in_directory:
            return
        warehouse = self.catalog.warehouse
        with suppress(OSError):  # a read-only warehouse
            if FileIO.of(warehouse, self.catalog.storage_options).exists(warehouse):
                self.catalog.create_database(DEFAULT_DATABASE, ignore_if_exists=True)
            else:
                self.default_pending = True
                warn_once(
                    f"the warehouse {hide_secrets(warehouse)} is new and empty: the first CREATE makes its directory"
                )

    # ---- tables

    def list_tables(self, namespace: Any) -> Any:
        """Return the identifiers of the tables of a database as a Java array."""
        if not len(namespace):
            names = self.databases()
            raise InvalidInputError(
                f"{self.name} is a catalog, and its databases are {', '.join(names[:20])}: name one of them, as in "
                f"SHOW TABLES IN {self.name}.{names[-1] if names else 'db'}"
            )
        if not self.database_exists(namespace):
            raise self.no_such_database(namespace)
        identifier = self.jvm.type(f"{_CATALOG}.Identifier")
        pending = self.default_pending and namespace[0] == DEFAULT_DATABASE
        tables = [] if pending else self.catalog.list_tables(namespace[0])
        identifiers = [identifier.of(namespace, table) for table in tables]
        return java_array(self.jvm, f"{_CATALOG}.Identifier", identifiers)

    def table_exists(self, identifier: Any) -> bool:
        """Return True if the table exists; for DROP TABLE, also if only part of its files remain."""
        try:
            self._table(self._parts(identifier))
        except (NotFoundError, InvalidInputError, UnsupportedError):
            return self.jvm.is_called_by("DropTableExec", "run") and self._is_left(identifier)
        return True

    def _is_left(self, identifier: Any) -> bool:
        """Return True if the table can be dropped although it cannot be opened."""
        with suppress(InvalidInputError):
            name = self._identifier(self._parts(identifier))
            return self.catalog.table_exists(name) or self.catalog.is_half_dropped(name)
        return False

    def load_table(self, name: str, version: str | None, microseconds: int | None) -> Any:
        """Return the table, at a version or at a time in microseconds if one is not `None`, or the text of a view.

        ``name``: the parts of the name, as JSON.
        """
        parts: list[str] = json.loads(name)
        try:
            table = self._opened(parts)
        except Py4JJavaError:
            view = None if self.name == SESSION_CATALOG else self._described(parts)
            if view is None:
                raise
            if version is not None or microseconds is not None:
                raise UnsupportedError(f"{self._full_name(parts)} is a view, which has no versions") from None
            if not self.jvm.has_views:
                raise UnsupportedError(
                    f"{self._full_name(parts)} is a view, which Spark {self.jvm.spark.version} can only read from a "
                    "catalog: use Spark 4.3 for other statements"
                ) from None
            return view
        if isinstance(table, FormatTable):
            if version is not None or microseconds is not None:
                raise UnsupportedError(f"{self._full_name(parts)} is a format table, which has no versions")
            return self._format_table(parts, table)
        if version is not None:
            return self._spark_table(parts, table, {"version": version})
        if microseconds is not None:
            return self._spark_table(parts, table, {"timestamp": microseconds // 1000})
        return self._spark_table(parts, table)

    def load_changelog(self, name: str, context: str, options: str) -> Any:
        """Return the changes of a table, with the table options of the session. All arguments are JSON."""
        parts: list[str] = json.loads(name)
        table, shown = self._open(parts), self._full_name(parts)
        if isinstance(table, SystemTable) or table.location.system_table is not None:
            raise InvalidInputError(f"{shown} has no changes: name the table itself")
        session = session_options(self.jvm.settings(PREFIX), *[self.name, *parts, ""][:3])
        changed, storage = table_options(session), self.catalog.storage_options
        address = {**{str(key): str(value) for key, value in storage.items()}, **catalog_option(table), **changed}
        table = with_changed_options(table, changed)
        try:
            return changelog(self.jvm, shown, table, request_of(context), address)
        except UnsupportedError as error:  # Spark would say instead that the catalog has no changes
            raise InvalidInputError(str(error)) from None

    def create_table(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Create a table and return it. Raise TableAlreadyExistsException if it exists."""
        stated = texts_of(self.jvm, properties)
        schema = self._schema(identifier, columns, partitions, stated, constraints, located=True)
        if is_format_table(schema.options):
            return self._format_table(self._parts(identifier), self._created_format_table(identifier, schema))
        table = self._created(identifier, schema)
        if self.jvm.is_called_by("DataStreamWriter", "toTable"):
            self._made_for_streams[self._parts(identifier)] = schema, table.schema
        return self._spark_table(self._parts(identifier), table)

    def _created(self, identifier: Any, schema: Schema) -> Table:
        return self._created_by(self.catalog.create_table, identifier, schema)

    def _created_format_table(self, identifier: Any, schema: Schema) -> FormatTable:
        return self._created_by(self.catalog.create_format_table, identifier, schema)

    def _created_by(self, create: Callable[[Identifier, Schema], Kind], identifier: Any, schema: Schema) -> Kind:
        self.create_default()
        try:
            return create(self._identifier(self._parts(identifier)), schema)
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "TableAlreadyExistsException", identifier) from None
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchNamespaceException", identifier.namespace()) from None

    def stage_create(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Return a new table that becomes visible with its rows. Raise TableAlreadyExistsException if it exists."""
        return self._staged(identifier, columns, partitions, properties, constraints, Operation.CREATE)

    def stage_create_or_replace(
        self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any
    ) -> Any:
        """Return a table that becomes visible with its rows, and replaces any existing table."""
        return self._staged(identifier, columns, partitions, properties, constraints, Operation.CREATE_OR_REPLACE)

    def stage_replace(self, identifier: Any, columns: Any, partitions: Any, properties: Any, constraints: Any) -> Any:
        """Return a table that replaces an existing table's rows and schema. Raise NoSuchTableException if missing."""
        if not self.table_exists(identifier):
            raise analysis_error(self.jvm, "NoSuchTableException", identifier)
        return self._staged(identifier, columns, partitions, properties, constraints, Operation.REPLACE)

    def create_table_like(self, identifier: Any, info: Any, source: Any) -> Any:
        """Create a table with the columns, partitions and properties of another table; `info` has more properties."""
        unset, prefix = ("location", "provider", "external"), "option."  # properties that only another catalog uses
        stored = stored_schema(source)
        copied = texts_of(self.jvm, source.properties())
        if stored is None:  # options of another format have no meaning here
            copied = {key: value for key, value in copied.items() if key == "comment"}
        properties = {k: v for k, v in copied.items() if k not in unset and not k.startswith(prefix)}
        properties |= texts_of(self.jvm, info.properties())
        schema = self._schema(identifier, source.columns(), source.partitioning(), properties)
        if stored is not None:  # Spark's columns lack text lengths and some types
            schema = replace(schema, fields=TableSchema.from_json(stored.encode(), "the source").fields)
        if is_format_table(schema.options):
            return self._format_table(self._parts(identifier), self._created_format_table(identifier, schema))
        return self._spark_table(self._parts(identifier), self._created(identifier, schema))

    def alter_table(self, identifier: Any, changes: Any) -> Any:
        """Change the schema or the options of a table and return it."""
        parts = self._parts(identifier)
        table = self._opened(parts)
        try:
            if isinstance(table, SystemTable):
                raise read_only(table.location)
            if isinstance(table, FormatTable):
                stated = schema_changes(self.jvm.active_session(), changes, table.schema)
                return self._format_table(parts, self.catalog.alter_format_table(self._identifier(parts), stated))
            if self.jvm.is_called_by("DatasetManager$", "materializeTable"):  # of a declarative pipeline
                changes = without_nullable_keys(changes, table.schema)
            changed = table.alter(schema_changes(self.jvm.active_session(), changes, table.schema))
        except (PaimonError, OSError) as error:
            # Spark would wrap IllegalArgumentException in an error that PySpark cannot convert
            raise unsupported(self.jvm, hide_secrets(str(error))) from None
        return self._spark_table(parts, changed)

    def drop_table(self, identifier: Any) -> bool:
        """Delete a table; return False if it is missing."""
        name = self._identifier(self._parts(identifier))
        try:
            self.catalog.drop_table(name)
        except NotFoundError:
            return False
        return True

    def rename_table(self, old: Any, new: Any) -> None:
        """Rename a table."""
        try:
            self.catalog.rename_table(self._identifier(self._parts(old)), self._identifier(self._parts(new)))
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "TableAlreadyExistsException", new) from None
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchTableException", old) from None

    # ---- procedures

    def load_procedure(self, identifier: Any) -> Any:
        """Return a procedure. For an unknown procedure, see the function `load_procedure`."""
        return load_procedure(self.jvm, self.catalog, self.name, identifier)

    def list_procedures(self, namespace: Any) -> Any:
        """Return the identifiers of all procedures as a Java array."""
        return list_procedures(self.jvm, namespace)

    # ---- functions

    def load_function(self, identifier: Any) -> Any:
        """Return a function. Raise NoSuchFunctionException if it does not exist; see also `load_sql_function`."""
        stored = load_sql_function(self.jvm, self.name, self.catalog, identifier)
        return load_function(self.jvm, self.name, identifier) if stored is None else stored

    def list_functions(self, namespace: Any) -> Any:
        """Return the identifiers of the functions as a Java array."""
        return list_functions(self.jvm, self.catalog, namespace)

    # ---- inside

    def _parts(self, identifier: Any) -> tuple[str, ...]:
        """Return the database and the name of a table; for ``catalog.`/path/to/table` ``, only the path."""
        return tuple(json.loads(self.jvm.call("Trees", "parts", identifier)))

    def _full_name(self, parts: Sequence[str]) -> str:
        """Return the full name of a table for messages."""
        return f"{self.name}.`{parts[0]}`" if _is_path(parts) else ".".join([self.name, *parts])

    def _identifier(self, parts: Sequence[str]) -> Identifier:
        """Return the table's identifier in the warehouse. Raise InvalidInputError unless there are two parts."""
        if _is_path(parts):
            raise UnsupportedError(
                f"`{parts[0]}` is the path of a table: read, write and alter it by its path, but create, drop and "
                "rename it by its name in the catalog of its warehouse"
            )
        shown = ".".join(parts)
        if len(parts) != 2:
            raise InvalidInputError(f"table {shown!r}: a table name has two parts, database and table")
        check_name(parts[0], shown)
        return Identifier(parts[0], *split_name(parts[1], shown))

    def _table(self, parts: Sequence[str]) -> AnyTable | FormatTable:
        if _is_path(parts):
            return open_any(parts[0], self.catalog.storage_options)
        return self.catalog.named_table(self._identifier(parts))

    def open_table(self, identifier: Any) -> AnyTable:
        """Return the table of an identifier. Raise NoSuchTableException if it is missing."""
        return self._open(self._parts(identifier))

    def open_any_kind(self, identifier: Any) -> AnyTable | FormatTable:
        """Return the table of an identifier, also a format table. Errors as for `open_table`."""
        return self._opened(self._parts(identifier))

    def _open(self, parts: Sequence[str]) -> AnyTable:
        """Return a table as `_opened`. Raise UnsupportedError for a format table."""
        table = self._opened(parts)
        if isinstance(table, FormatTable):
            raise UnsupportedError(
                f"{self._full_name(parts)} is a format table, for which this statement is not possible: its files can "
                "only be read, added and replaced"
            )
        return table

    def _opened(self, parts: Sequence[str]) -> AnyTable | FormatTable:
        if not _is_path(parts) and len(parts) != 2:
            raise self._missing(parts)
        try:
            if not _is_path(parts):
                self._identifier(parts)
        except (
            InvalidInputError
        ):  # such as parquet.`/a/file`, which Spark reads if no catalog has a table with this name
            raise self._no_such_table(parts) from None
        try:
            return self._table(parts)
        except NotFoundError:
            raise self._missing(parts) from None

    def _no_such_table(self, parts: Sequence[str]) -> Py4JJavaError:
        identifier = self.jvm.type(f"{_CATALOG}.Identifier").of(text_array(self.jvm, parts[:-1]), parts[-1])
        return analysis_error(self.jvm, "NoSuchTableException", identifier)

    def _missing(self, parts: Sequence[str]) -> Py4JJavaError:
        """Return the error for a table that does not exist.

        If the database is also the name of a data source, Spark would otherwise read the table name as a file.
        """
        if len(parts) == 1 and self.name.lower() == _DATA_SOURCE:
            return missing_table(self.jvm, f"`{self.name}`.`{parts[0]}`")
        return self._no_such_table(parts)

    def _schema(
        self,
        identifier: Any,
        columns: Any,
        partitions: Any,
        declared: dict[str, str],
        constraints: Any = (),
        *,
        located: bool = False,
    ) -> Schema:
        """Return the schema of a statement. Changes ``declared``. ``located``: True if LOCATION may be anywhere."""
        location = self.catalog.location(self._identifier(self._parts(identifier)))
        elsewhere = not same_directory(declared.get("location", location), location)
        if elsewhere and located and self.catalog.has_locations:
            declared["path"] = declared.pop("location")
            declared.pop("external", None)  # a table with a location is external
        elif elsewhere:
            raise UnsupportedError(
                f"LOCATION {declared['location']!r} is not possible: this catalog stores the table in {location}; "
                f"name a table elsewhere by its path, {self.name}.`/path/to/table`"
            )
        session = self.jvm.active_session()
        usual = str(session.conf.get("spark.sql.sources.default"))
        if declared.get("provider") == usual and self.jvm.is_called_by("DataFrameWriter", "saveAsTable"):
            del declared["provider"]  # saveAsTable() without format() names Spark's default
        holds = self.catalog.has_format_tables
        return new_schema(session, columns, partitions, declared, constraints, format_tables=holds)

    def _staged(
        self,
        identifier: Any,
        columns: Any,
        partitions: Any,
        properties: Any,
        constraints: Any,
        operation: str,
    ) -> Any:
        schema = self._schema(identifier, columns, partitions, texts_of(self.jvm, properties), constraints)
        name = self._identifier(self._parts(identifier))
        if is_format_table(schema.options):
            create, drop = partial(self._created_format_table, identifier, schema), partial(self.drop_table, identifier)
            return staged_format_table(self.jvm, self.catalog, f"{self.name}.{name}", create, drop, operation)
        stage = partial(self.catalog.stage_table, name, replace_existing=operation != Operation.CREATE)
        refused = None
        self.create_default()
        try:
            try:
                staged = stage(schema)
            except InvalidInputError as error:  # the options of the write may complete the declaration
                refused, staged = error, self._staged_bare(name, schema, stage, error)
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "TableAlreadyExistsException", identifier) from None
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchNamespaceException", identifier.namespace()) from None
        handler = StagedHandler(
            self.jvm,
            staged.table,
            staged.store.schema,
            {},
            self.catalog,
            self._full_name(self._parts(identifier)),
            staged=staged,
            declared=schema,
            stage=stage,
            refused=refused,
            operation=operation,
            saves=self.jvm.is_called_by("DataFrameWriter", "saveAsTable"),
        )
        return self.jvm.connector_class("Staged")(self._description(handler), handler_of(self.jvm, handler))

    def _staged_bare(
        self, name: Identifier, schema: Schema, stage: Callable[[Schema], StagedTable], error: InvalidInputError
    ) -> StagedTable:
        """Stage the table without keys and options, with the partitions of the table that it replaces, if any.

        Raises ``error`` if this schema is not valid either.
        """
        partitions: Sequence[str] = ()
        with suppress(NotFoundError):
            partitions = self.catalog.table(name).schema.partition_keys
        try:
            return stage(replace(schema, primary_keys=(), partition_keys=partitions, options={}))
        except InvalidInputError:
            raise error from None

    def _spark_table(self, parts: Sequence[str], table: AnyTable, when: Mapping[str, Any] | None = None) -> Any:
        if isinstance(table, SystemTable):
            return self._system_table(parts, table, when or {})
        schema = table.scan(**when).store.schema if when else table.schema
        declared, stored = self._made_for_streams.get(tuple(parts), (None, None))
        streamed = declared if stored == table.schema else None
        handler = TableHandler(self.jvm, table, schema, when or {}, self.catalog, self._full_name(parts), streamed)
        kind = "PartitionedTable" if schema.partition_keys else "PaimonTable"
        return self.jvm.connector_class(kind)(self._description(handler), handler_of(self.jvm, handler))

    def _format_table(self, parts: Sequence[str], table: FormatTable) -> Any:
        handler = FormatTableHandler(self.jvm, table, table.schema, {}, self.catalog, self._full_name(parts))
        text = description(handler.name, table.schema, table.path, FORMAT_TABLE_CAPABILITIES, computed=False)
        kind = "PartitionedTable" if table.schema.partition_keys else "PaimonTable"
        return self.jvm.connector_class(kind)(text, handler_of(self.jvm, handler))

    def _system_table(self, parts: Sequence[str], table: SystemTable, when: Mapping[str, Any]) -> Any:
        check_time_travel(table, when)
        schema, name = table.in_microseconds().schema_at(**when), self._full_name(parts)
        handler = SystemTableHandler(self.jvm, table.in_microseconds(), schema, when, self.catalog, name)
        text = description(name, schema, str(table.location), _READS[: 1 + (table.kind is AUDIT_LOG)], computed=False)
        return self.jvm.connector_class("PaimonTable")(text, handler_of(self.jvm, handler))

    def _description(self, handler: TableHandler) -> str:
        return description(handler.name, handler.schema, handler.table.path, _CAPABILITIES)


def _is_path(parts: Sequence[str]) -> bool:
    return len(parts) == 1 and "/" in parts[0]
