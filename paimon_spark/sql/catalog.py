"""A catalog of Spark whose databases and tables are those of a warehouse."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.catalog.identifier import Identifier
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, PaimonError, UnsupportedError
from paimon_core.scan.projection import metadata_fields
from paimon_core.table import Table
from paimon_spark.sql.jvm import CATALOG_CLASS, Jvm
from paimon_spark.sql.parser import install_parser
from paimon_spark.sql.procedures import list_procedures, load_procedure
from paimon_spark.sql.schema import (
    new_schema,
    schema_changes,
    spark_columns,
    spark_partitioning,
    spark_properties,
)
from paimon_spark.sql.table import TableFunction
from paimon_spark.types import spark_schema

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
_FASTER = {"spark.sql.python.filterPushdown.enabled": "true"}


def catalog(
    spark: SparkSession,
    name: str,
    *,
    warehouse: str,
    default: bool = False,
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Install a catalog: its tables have the names ``<name>.<database>.<table>`` in SQL and in Spark's methods.

    All sessions of the application have the catalog, those that streaming queries clone included. The setting
    ``spark.sql.python.filterPushdown.enabled`` is turned on unless the user has set it: without it filters of a query
    leave out no file.

    Args:
        spark: a classic session.
        name: of the catalog. A catalog of this name that is installed already is replaced.
        warehouse: the directory of the databases, local or on an object store.
        default: True: names without a catalog are those of this one.
        storage_options: options of the file system.
        options: ``table-default.<option>`` and other options of the catalog.

    Raises UnsupportedError for a session of Spark Connect.
    """
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jsparkSession"):
        raise UnsupportedError(
            "a catalog needs a classic session, this one is of Spark Connect: use spark.read.format('paimon') and "
            "paimon_spark.PaimonTable.forPath"
        )
    jvm = Jvm(spark)
    function = CatalogFunction(jvm, name, FileSystemCatalog(warehouse, storage_options, options))
    jvm.install(name, function)
    install_parser(jvm)
    settings = {f"spark.sql.catalog.{name}": CATALOG_CLASS}
    settings |= {key: value for key, value in _FASTER.items() if not jvm.is_set(key)}
    if default:
        settings["spark.sql.defaultCatalog"] = name
    for key, value in settings.items():
        jvm.set_everywhere(key, value)


@dataclass
class CatalogFunction:
    """The answers to what Spark asks a catalog: a method for each question of ``Bridge.java``."""

    jvm: Jvm
    name: str
    catalog: FileSystemCatalog

    # ---- databases

    def list_databases(self) -> Any:
        """Return the names of the databases as a Java array."""
        return self.jvm.array("java.lang.Object", self.catalog.list_databases())

    def database_exists(self, namespace: Any) -> bool:
        """Return True if the database exists."""
        parts = list(namespace)
        return len(parts) == 1 and parts[0] in self.catalog.list_databases()

    def load_database(self, namespace: Any) -> Any:
        """Return the properties of a database. NoSuchNamespaceException if it is missing."""
        if not self.database_exists(namespace):
            raise self.jvm.exception("NoSuchNamespaceException", namespace)
        return self.jvm.map({"location": f"{self.catalog.warehouse}/{namespace[0]}.db"})

    def create_database(self, namespace: Any, metadata: Any) -> None:
        """Create a database. NamespaceAlreadyExistsException if it exists."""
        if len(namespace) != 1:
            raise UnsupportedError(f"database {'.'.join(namespace)!r}: databases of a warehouse are not nested")
        try:
            self.catalog.create_database(namespace[0])
        except AlreadyExistsError:
            raise self.jvm.exception("NamespaceAlreadyExistsException", namespace) from None

    def alter_database(self, namespace: Any, changes: Any) -> None:
        """Raise UnsupportedError."""
        raise UnsupportedError("ALTER DATABASE is not possible: a database of a warehouse is a directory")

    def drop_database(self, namespace: Any, cascade: bool) -> bool:
        """Delete a database; `cascade`: with its tables. Return True."""
        if not self.database_exists(namespace):
            raise self.jvm.exception("NoSuchNamespaceException", namespace)
        if not cascade and self.catalog.list_tables(namespace[0]):
            raise self.jvm.exception("NonEmptyNamespaceException", namespace)
        self.catalog.drop_database(namespace[0], cascade=cascade)
        return True

    # ---- tables

    def list_tables(self, namespace: Any) -> Any:
        """Return the identifiers of the tables of a database as a Java array."""
        if not self.database_exists(namespace):
            raise self.jvm.exception("NoSuchNamespaceException", namespace)
        identifier = self.jvm.type(f"{_CATALOG}.Identifier")
        found = [identifier.of(namespace, table) for table in self.catalog.list_tables(namespace[0])]
        return self.jvm.array(f"{_CATALOG}.Identifier", found)

    def table_exists(self, identifier: Any) -> bool:
        """Return True if the table exists."""
        try:
            self.catalog.table(self._name(identifier))
        except (NotFoundError, InvalidInputError):
            return False
        return True

    def load_table(self, identifier: Any, version: str | None, microseconds: int | None) -> Any:
        """Return the table, at a version or at a time in microseconds if one is given."""
        table = self.open(identifier)
        if version is not None:
            return self._spark_table(identifier, table, {"version": version})
        if microseconds is not None:
            return self._spark_table(identifier, table, {"timestamp": microseconds // 1000})
        return self._spark_table(identifier, table)

    def create_table(self, identifier: Any, columns: Any, partitions: Any, properties: Any) -> Any:
        """Create a table and return it. TableAlreadyExistsException if it exists."""
        given = {str(key): str(value) for key, value in properties.items()}
        own = self.catalog.location(self._name(identifier))
        if given.get("location", own).rstrip("/").removeprefix("file:") != own.removeprefix("file:"):
            raise UnsupportedError(
                f"LOCATION {given['location']!r} is not possible: a table of this catalog is in its directory {own}; "
                f"name a table elsewhere by its path, {self.name}.`/path/to/table`"
            )
        try:
            table = self.catalog.create_table(self._name(identifier), new_schema(columns, partitions, given))
        except AlreadyExistsError:
            raise self.jvm.exception("TableAlreadyExistsException", identifier) from None
        except NotFoundError:
            raise self.jvm.exception("NoSuchNamespaceException", identifier.namespace()) from None
        return self._spark_table(identifier, table)

    def create_table_like(self, identifier: Any, given: Any, source: Any) -> Any:
        """Create a table with the columns, partitions and properties of another one, and the given properties."""
        unset = ("location", "provider")
        properties = {str(key): str(value) for key, value in source.properties().items() if key not in unset}
        properties |= {str(key): str(value) for key, value in given.properties().items()}
        return self.create_table(identifier, source.columns(), source.partitioning(), properties)

    def alter_table(self, identifier: Any, changes: Any) -> Any:
        """Change the schema or the options of a table and return it."""
        table = self.open(identifier)
        try:
            changed = table.alter(list(schema_changes(changes)))
        except PaimonError as error:  # Spark wraps an IllegalArgumentException in one that PySpark does not translate
            raise self.jvm.unsupported(str(error)) from None
        return self._spark_table(identifier, changed)

    def drop_table(self, identifier: Any) -> bool:
        """Delete a table; return False if it is missing."""
        if not self.table_exists(identifier):
            return False
        self.catalog.drop_table(self._name(identifier))
        return True

    def rename_table(self, old: Any, new: Any) -> None:
        """Rename a table."""
        try:
            self.catalog.rename_table(self._name(old), self._name(new))
        except AlreadyExistsError:
            raise self.jvm.exception("TableAlreadyExistsException", new) from None
        except NotFoundError:
            raise self.jvm.exception("NoSuchTableException", old) from None

    # ---- procedures

    def load_procedure(self, identifier: Any) -> Any:
        """Return a procedure, whether it exists or not: see `load_procedure`."""
        return load_procedure(self.jvm, self.catalog, self.name, identifier)

    def list_procedures(self, namespace: Any) -> Any:
        """Return the identifiers of all procedures as a Java array."""
        return list_procedures(self.jvm, namespace)

    # ---- inside

    def _name(self, identifier: Any) -> str:
        """Return ``database.table`` of an identifier. Raises InvalidInputError for more or fewer parts."""
        parts = [*identifier.namespace(), identifier.name()]
        if len(parts) != 2:
            raise InvalidInputError(f"table {'.'.join(parts)!r}: name a table by its database and its name")
        return ".".join(parts)

    def open(self, identifier: Any) -> Table:
        """Return the table of an identifier. NoSuchTableException if it is missing."""
        try:
            name = Identifier.parse(self._name(identifier))
        except InvalidInputError:  # such as parquet.`/a/file`, which Spark reads if no catalog has a table of this name
            raise self.jvm.exception("NoSuchTableException", identifier) from None
        try:
            return self.catalog.table(name)
        except NotFoundError:
            raise self.jvm.exception("NoSuchTableException", identifier) from None

    def _spark_table(self, identifier: Any, table: Table, when: Mapping[str, Any] | None = None) -> Any:
        schema = table.scan(**when).store.schema if when else table.schema
        capabilities = self.jvm.java.java.util.HashSet()
        for capability in _CAPABILITIES:
            capabilities.add(getattr(self.jvm.type(f"{_CATALOG}.TableCapability"), capability))
        name = f"{self.name}.{self._name(identifier)}"
        description = [
            name,
            spark_columns(self.jvm, schema),
            self.jvm.struct(spark_schema((*tracking_fields(schema), *metadata_fields(schema)))),
            spark_partitioning(self.jvm, schema),
            self.jvm.map(spark_properties(schema, table.path)),
            capabilities,
            self.jvm.function(TableFunction(self.jvm, table, schema, when or {}, self.catalog, name)),
        ]
        if not schema.partition_keys:
            return self.jvm.bridge.PaimonTable(*description)
        return self.jvm.bridge.PartitionedTable(*description, self.jvm.struct(spark_schema(schema.partition_fields)))
