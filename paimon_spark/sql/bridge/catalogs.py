"""The installed catalogs of this driver, and the resolution of table names in a session."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import FormatTable, SystemTable, Table
from paimon_core.engine import AnyTable, Identifier, read_only
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_spark.internals import amend_java_errors, analyzed_plan, session_state, with_advice
from paimon_spark.options import catalog_option
from paimon_spark.sql.bridge.conversions import java_array
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import PACKAGE, Jvm
from paimon_spark.sql.bridge.near_names import near_name

_installed: dict[str, Any] = {}
"""The handlers of the catalogs, by catalog name."""


def install(jvm: Jvm, name: str, catalog: Any) -> None:
    """Install a CatalogHandler under a catalog name, replacing any catalog with this name."""
    amend_java_errors(_with_near_name)
    _installed[name] = catalog
    jvm.bridge.Bridge.HANDLERS.put(name, handler_of(jvm, catalog))


def _with_near_name(text: str) -> str | None:
    return with_advice(text, near_name(text, _installed))


def open_table(jvm: Jvm, spark: SparkSession, parts: Sequence[str], command: str) -> Table:
    """Resolve a table name in a session and return the engine's table.

    Args:
        jvm: the JVM.
        spark: the session.
        parts: the parts of the name.
        command: the statement, for errors.

    Raises Spark's TABLE_OR_VIEW_NOT_FOUND for a missing table, UnsupportedError for a system table or another format.
    """
    return only_table(open_table_and_storage(jvm, spark, parts, command)[0])


def open_named(jvm: Jvm, spark: SparkSession, parts: Sequence[str], command: str) -> tuple[list[str], Table]:
    """Return the catalog, the database and the name of a table, and the table. Arguments and errors: `open_table`."""
    handler, identifier, names = _resolved(jvm, spark, parts, command)
    return names, only_table(handler.open_table(identifier))


def only_table(table: AnyTable) -> Table:
    """Return the table. Raises UnsupportedError for a system table."""
    if isinstance(table, SystemTable):
        raise read_only(table.location)
    return table


def open_table_and_storage(
    jvm: Jvm, spark: SparkSession, parts: Sequence[str], command: str
) -> tuple[AnyTable, dict[str, str]]:
    """Resolve a name and return the table or system table, and the options of its file system and catalog as texts.

    Arguments and errors are the same as for `open_table`, but system tables are accepted.
    """
    handler, identifier, _ = _resolved(jvm, spark, parts, command)
    storage, table = handler.catalog.storage_options.items(), handler.open_table(identifier)
    return table, {**{str(key): str(value) for key, value in storage}, **catalog_option(table)}


def open_any_kind(
    jvm: Jvm, spark: SparkSession, parts: Sequence[str], command: str
) -> tuple[AnyTable | FormatTable, list[str]]:
    """Resolve a name and return its table of any kind, and the parts of its full name.

    Arguments and errors are the same as for `open_table`, but system tables and format tables are accepted.
    """
    handler, identifier, names = _resolved(jvm, spark, parts, command)
    return handler.open_any_kind(identifier), names


def _resolved(jvm: Jvm, spark: SparkSession, parts: Sequence[str], command: str) -> tuple[Any, Any, list[str]]:
    """Return the handler of the catalog of a table, the table's Identifier and the parts of its full name."""
    plan = resolved_table(jvm, spark, parts, command)
    identifier = plan.identifier()
    names = [*map(str, (plan.catalog().name(), *identifier.namespace(), identifier.name()))]
    handler = _installed.get(names[0])
    if handler is None:
        raise UnsupportedError(f"{'.'.join(parts)} is not a Paimon table: {command} is not possible")
    return handler, identifier, names


def resolved_table(jvm: Jvm, spark: SparkSession, parts: Iterable[str], command: str) -> Any:
    """Return Spark's ResolvedTable for a name. Raise TABLE_OR_VIEW_NOT_FOUND if the table does not exist."""
    names = jvm.java.java.util.ArrayList()
    for part in parts:
        names.append(part)
    name = jvm.java.scala.jdk.javaapi.CollectionConverters.asScala(names).toSeq()
    unresolved = jvm.type("org.apache.spark.sql.catalyst.analysis.UnresolvedTable")(name, command, True)
    return analyzed_plan(spark, unresolved, jvm.scala("org.apache.spark.sql.execution.CommandExecutionMode").SKIP())


def catalog_of_new_table(jvm: Jvm, spark: SparkSession, parts: Sequence[str]) -> tuple[Any, Any]:
    """Return the handler of the catalog for a new table with this name, and the table's Identifier.

    REQUIRES: the catalog is installed.
    """
    manager = session_state(spark).catalogManager()
    names = list(parts)
    has_catalog = len(names) > 1 and bool(manager.isCatalogRegistered(names[0]))
    catalog = names.pop(0) if has_catalog else str(manager.currentCatalog().name())
    space = names[:-1] or ([] if has_catalog else [str(part) for part in manager.currentNamespace()])
    identifier = jvm.type("org.apache.spark.sql.connector.catalog.Identifier")
    return _installed[catalog], identifier.of(java_array(jvm, "java.lang.String", space), names[-1])


def has_table(catalog: str, namespace: Sequence[str], name: str) -> bool:
    """Return True if an installed catalog has a Paimon table. ``namespace``: the parts of the name before ``name``."""
    with suppress(InvalidInputError):  # a name that no Paimon table can have
        return len(namespace) == 1 and bool(_installed[catalog].catalog.table_exists(Identifier(namespace[0], name)))
    return False


def names_view(jvm: Jvm, spark: SparkSession, parts: Sequence[str]) -> bool:
    """Return True if a name is of a view in an installed catalog. REQUIRES: as `catalog_of_new_table`."""
    handler, identifier = catalog_of_new_table(jvm, spark, parts)
    name = [*map(str, identifier.namespace()), str(identifier.name())]
    with suppress(InvalidInputError):  # a name that no view can have
        return len(name) == 2 and "$" not in name[1] and bool(handler.catalog.view_exists(Identifier(*name)))
    return False


def stored_schema(table: Any) -> str | None:
    """Return the stored schema of a Java table, as JSON; `None`: the table belongs to another connector."""
    is_ours = str(table.getClass().getName()).startswith(f"{PACKAGE}.")
    return str(table.storedSchema()) if is_ours else None
