"""The views of a catalog: for Spark's catalog interface since version 4.3, and for queries in older versions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import types as spark

from paimon_core import DataField, View
from paimon_core.engine import SPARK_DIALECT, Identifier
from paimon_core.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from paimon_core.types.datatype import with_nullable
from paimon_spark.sql.bridge.conversions import java_array
from paimon_spark.sql.bridge.endpoints import ViewsEndpoint
from paimon_spark.sql.bridge.spark_errors import analysis_error
from paimon_spark.sql.ddl.databases import DatabaseHandler
from paimon_spark.sql.ddl.schema import sql_type
from paimon_spark.types import spark_schema

_IDENTIFIER = "org.apache.spark.sql.connector.catalog.Identifier"
_CONTEXT = "spark.view."
_CATALOG = f"{_CONTEXT}catalog"
_NAMESPACE = f"{_CONTEXT}namespace"
_CONFIGS = f"{_CONTEXT}sql-configs"
_MODE = f"{_CONTEXT}schema-mode"
_COLUMNS = f"{_CONTEXT}query-columns"
"""The properties of a view that say how Spark resolves its query. The catalog is missing if it is the view's own."""
_DEFAULT_MODE = "COMPENSATION"
_COMMENT = "comment"
_RESERVED = (_COMMENT, "owner", "provider", "table_type", "location", "external")
"""Properties that Spark sets itself, besides TBLPROPERTIES."""
_KIND = "table_type"
_PLAIN_KINDS = (None, "VIEW")


@dataclass
class ViewHandler(DatabaseHandler, ViewsEndpoint):
    """The views of a catalog, for ``ViewedCatalog.java`` and, before Spark 4.3, for ``PaimonViewRule.java``."""

    def load_view(self, name: str) -> str | None:
        """Return the text that describes a view; `None` if it does not exist."""
        return self._described(json.loads(name))

    def _described(self, parts: Sequence[str]) -> str | None:
        """Return the text that describes a view; `None` if it does not exist, or if no view can have this name."""
        if not self.catalog.has_views or len(parts) != 2 or "$" in parts[1]:
            return None
        try:
            view = self.catalog.view(Identifier(*parts))
        except NotFoundError:
            return None
        return json.dumps(described(view, self.name, parts[0]))

    def list_views(self, namespace: Any) -> Any:
        """Return the identifiers of the views of a database as a Java array."""
        if not self.database_exists(namespace):
            raise self.no_such_database(namespace)
        identifier = self.jvm.type(_IDENTIFIER)
        names = self.catalog.list_views(namespace[0])
        return java_array(self.jvm, _IDENTIFIER, [identifier.of(namespace, name) for name in names])

    def create_view(self, identifier: Any, view: str) -> None:
        """Create a view. Raise ViewAlreadyExistsException if its name is taken."""
        self.create_default()
        try:
            self.catalog.create_view(self._view_name(identifier), stored(json.loads(view), self.name))
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "ViewAlreadyExistsException", identifier) from None
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchNamespaceException", identifier.namespace()) from None

    def replace_view(self, identifier: Any, view: str) -> None:
        """Replace a view. Raise NoSuchViewException if it does not exist.

        The texts in other dialects stay if the query does, as for ``ALTER VIEW ... SET TBLPROPERTIES``.
        """
        name = self._view_name(identifier)
        try:
            old = self.catalog.view(name)
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchViewException", identifier) from None
        new = stored(json.loads(view), self.name)
        if new.query == described(old, self.name, name.database)["query"]:
            context = {key: value for key, value in old.options.items() if key.startswith(_CONTEXT)}
            properties = {key: value for key, value in new.options.items() if not key.startswith(_CONTEXT)}
            new = replace(new, query=old.query, dialects=old.dialects, options={**properties, **context})
        self.catalog.create_view(name, new, replace=True)

    def drop_view(self, name: str) -> bool:
        """Drop a view; return False if it does not exist."""
        try:
            self.catalog.drop_view(Identifier(*json.loads(name)))
        except NotFoundError:
            return False
        return True

    def rename_view(self, old: Any, new: Any) -> None:
        """Rename a view. Raise NoSuchViewException or ViewAlreadyExistsException."""
        try:
            self.catalog.rename_view(self._view_name(old), self._view_name(new))
        except AlreadyExistsError:
            raise analysis_error(self.jvm, "ViewAlreadyExistsException", new) from None
        except NotFoundError:
            raise analysis_error(self.jvm, "NoSuchViewException", old) from None

    def _view_name(self, identifier: Any) -> Identifier:
        """Return the name of a view. Raises UnsupportedError unless it has a database and a name."""
        parts = json.loads(self.jvm.call("Trees", "parts", identifier))
        if len(parts) != 2 or "$" in parts[1]:
            raise UnsupportedError(
                f"{'.'.join(parts)!r} cannot name a view: it needs a database and a name without '$'"
            )
        return Identifier(*parts)


def described(view: View, catalog: str, database: str) -> dict[str, Any]:
    """Return a view as ``ViewedCatalog.java`` takes it.

    A view of another engine does not say where its tables are, nor the names of the columns of its query: its tables
    are looked for in its own database, and its columns are the columns of the query, in order.

    Args:
        view: the view.
        catalog: the name of its catalog in this session.
        database: its database.
    """
    options, query = dict(view.options), view.query_in(SPARK_DIALECT)
    names = [field.name for field in view.fields]
    if _COLUMNS in options:
        columns = json.loads(options[_COLUMNS])
    else:
        listed = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
        query, columns = f"SELECT * FROM (\n{query}\n) AS v({listed})", names
    comment = {} if view.comment is None else {_COMMENT: view.comment}
    return {
        "schema": spark_schema(view.fields).json(),
        "query": query,
        "catalog": options.get(_CATALOG, catalog),
        "namespace": json.loads(options[_NAMESPACE]) if _NAMESPACE in options else [database],
        "configs": json.loads(options.get(_CONFIGS, "{}")),
        "mode": options.get(_MODE, _DEFAULT_MODE),
        "columns": columns,
        "properties": {**{k: v for k, v in options.items() if not k.startswith(_CONTEXT)}, **comment},
    }


def stored(given: Mapping[str, Any], catalog: str) -> View:
    """Return the view of a text of ``ViewedCatalog.java``. Raises UnsupportedError for another kind of view.

    ``catalog``: the name of its catalog in this session.
    """
    properties = dict(given["properties"])
    if properties.get(_KIND) not in _PLAIN_KINDS:
        raise UnsupportedError(f"a view of type {properties[_KIND]} is not supported: only views of queries are")
    options = {key: str(value) for key, value in properties.items() if key not in _RESERVED}
    own = next((key for key in options if key.startswith(_CONTEXT)), None)
    if own is not None:
        raise UnsupportedError(
            f"the property {own!r} of a view cannot be set: Spark's part of the view is stored there"
        )
    if given["catalog"] is not None and given["catalog"] != catalog:
        options[_CATALOG] = given["catalog"]
    options[_NAMESPACE] = json.dumps(given["namespace"])
    options[_COLUMNS] = json.dumps(given["columns"])
    if given["configs"]:
        options[_CONFIGS] = json.dumps(dict(sorted(given["configs"].items())))
    if given["mode"] is not None:
        options[_MODE] = given["mode"]
    fields = [stored_field(field) for field in spark.StructType.fromJson(json.loads(given["schema"])).fields]
    query = given["query"]
    return View(fields, query, {SPARK_DIALECT: query}, properties.get(_COMMENT), options)


def stored_field(column: spark.StructField) -> DataField:
    """Return a column of Spark for a catalog. Raises UnsupportedError for a type that Paimon lacks."""
    text = column.dataType.simpleString()
    if "collate" in text:
        raise UnsupportedError(f"column {column.name!r} has the type {text}: Paimon compares strings by their bytes")
    kind = sql_type(column.dataType, column.name)
    return DataField(-1, column.name, with_nullable(kind, column.nullable), (column.metadata or {}).get(_COMMENT))
