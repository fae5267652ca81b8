"""SQL functions of a catalog: as the catalog stores them, and as the Java classes of the connector take them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import types as spark

from paimon_core import Catalog, CatalogFunction, DataField
from paimon_core.engine import SPARK_DIALECT, SYSTEM_DATABASE, Identifier
from paimon_core.errors import CorruptedError, NotFoundError, UnsupportedError
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.views import stored_field
from paimon_spark.types import spark_schema

SQL: Final = "sql"
"""The type of the definition of a SQL function."""
_OWN: Final = "spark.sql-function."
_IS_QUERY: Final = f"{_OWN}is-query"
_DETERMINISTIC: Final = f"{_OWN}deterministic"
_CONTAINS_SQL: Final = f"{_OWN}contains-sql"
"""The options of a function that say what its text is, with the names of the Java engine."""
_CONFIG: Final = "sqlConfig."
_PARTS: Final = "catalogAndNamespace.numParts"
_PART: Final = "catalogAndNamespace.part."
"""Spark's properties: the settings, and the current catalog and database, when the function was created."""
_TEMPORARY: Final = "referredTemp"
_CALL: Final = "paimon_call_"
"""The beginning of the names of temporary functions that stand for functions of catalogs, see ``SqlFunctions.java``."""
_DEFAULTS: Final = ("default", "CURRENT_DEFAULT")
"""The keys in the metadata of a parameter that may hold its default."""


def stored_function(given: Mapping[str, Any], name: Sequence[str]) -> CatalogFunction:
    """Return the function of a checked definition.

    Args:
        given: the parts of the definition, see ``SqlFunctions.java``.
        name: the catalog, the database and the name of the function, for errors.

    Raises UnsupportedError for a type that Paimon lacks, and for a body with temporary views, functions or variables.
    """
    shown = ".".join(name)
    properties = {str(key): str(value) for key, value in given["properties"].items()}
    for key in [key for key in properties if key.startswith(_TEMPORARY)]:
        found = json.loads(properties.pop(key))
        if names := [name for name in found if not str(name).startswith(_CALL)]:
            temporary = ", ".join(".".join(item) if isinstance(item, list) else str(item) for item in names)
            raise UnsupportedError(
                f"function {shown} cannot be created: its body uses {temporary}, which exists in this session only"
            )
    parameters = spark.StructType.fromJson(json.loads(given["parameters"])).fields
    results = spark.StructType.fromJson(json.loads(given["returns"])).fields
    is_query = given["expression"] is None
    flags = {_DETERMINISTIC: given["deterministic"], _CONTAINS_SQL: given["contains_sql"]}
    return CatalogFunction(
        [_parameter(parameter) for parameter in parameters],
        [stored_field(result) for result in results],
        {SPARK_DIALECT: {"type": SQL, "definition": given["query"] if is_query else given["expression"]}},
        given["deterministic"] is not False,
        given["comment"],
        {
            _IS_QUERY: _boolean(is_query),
            **{key: _boolean(value) for key, value in flags.items() if value is not None},
            **properties,
        },
    )


def load_sql_function(jvm: Jvm, catalog_name: str, catalog: Catalog, identifier: Any) -> Any:
    """Return a function that the catalog stores as Spark's UnboundFunction; `None`: it stores none of this name.

    Raises UnsupportedError for another function than a SQL function, with its definition; and as `described_function`.
    """
    names = [catalog_name, *map(str, identifier.namespace()), str(identifier.name())]
    if not catalog.has_functions or len(names) != 3 or names[1] == SYSTEM_DATABASE:
        return None
    try:
        function = catalog.function(Identifier(*names[1:]))
    except NotFoundError:
        return None
    described = described_function(function, names)
    if described is not None:
        return jvm.bridge.SqlFunction(json.dumps(described))
    definition = _definition(function)
    text = f": {definition['definition']}" if definition.get("definition") else ""
    raise UnsupportedError(
        f"{'.'.join(names)} is a {definition.get('type', 'unknown')} function of the catalog, which cannot be called "
        f"here; write what it does into the query{text}"
    )


def described_function(function: CatalogFunction, name: Sequence[str]) -> dict[str, Any] | None:
    """Return the parts of a SQL function for ``SqlFunction.java``; `None`: it is no SQL function for Spark.

    Names in its body are looked for where the function was created, or else in its own database.

    Args:
        function: the function.
        name: the catalog, the database and the name of the function.

    Raises CorruptedError for a function without a result or a text, UnsupportedError for a type that Spark lacks.
    """
    definition = function.definitions.get(SPARK_DIALECT) or {}
    if definition.get("type") != SQL:
        return None
    text, options = definition.get("definition"), function.options
    if not isinstance(text, str) or len(function.results) != 1:
        raise CorruptedError(f"function {'.'.join(name)} of the catalog has no text, or not one result")
    is_query = options.get(_IS_QUERY)
    return {
        "catalog": name[0],
        "database": name[1],
        "name": name[2],
        "parameters": _with_defaults(spark_schema(function.parameters), function.parameters).json(),
        "returns": spark_schema(function.results).fields[0].dataType.json(),
        "text": text,
        "is_query": None if is_query is None else is_query == "true",
        "comment": function.comment,
        "deterministic": options.get(_DETERMINISTIC, _boolean(function.deterministic)) == "true",
        "contains_sql": options.get(_CONTAINS_SQL),
        "properties": {key: value for key, value in options.items() if key.startswith(_CONFIG)},
        "context": _context(options, name),
    }


def description(function: CatalogFunction, name: Sequence[str], *, extended: bool) -> list[str]:
    """Return the lines of ``DESCRIBE FUNCTION``.

    Args:
        function: the function.
        name: the catalog, the database and the name of the function.
        extended: True to add everything that the catalog knows.
    """
    definition = _definition(function)
    parameters = [_shown(field, extended=extended) for field in function.parameters] or ["()"]
    rows = [("Function:", ".".join(name)), ("Type:", "SCALAR"), ("Input:", parameters[0])]
    rows += [("", parameter) for parameter in parameters[1:]]
    rows += [("Returns:", str(field.type)) for field in function.results]
    if extended:
        rows += [("Comment:", function.comment)] if function.comment else []
        rows += [("Deterministic:", _boolean(function.deterministic))]
        contains = function.options.get(_CONTAINS_SQL)
        rows += (
            [] if contains is None else [("Data Access:", "CONTAINS SQL" if contains == "true" else "READS SQL DATA")]
        )
        settings = sorted(key for key in function.options if key.startswith(_CONFIG))
        shown = [f"{key.removeprefix(_CONFIG)}={function.options[key]}" for key in settings]
        rows += list(zip(["Configs:", *[""] * len(shown)], shown, strict=False))
        rows += [("Language:", str(definition.get("language") or definition.get("type") or "unknown"))]
        rows += [("Body:", str(definition["definition"]))] if definition.get("definition") else []
        rows += [("Class:", str(definition["className"]))] if definition.get("className") else []
    width = max(len(title) for title, _ in rows)
    return [f"{title:<{width}} {text}" for title, text in rows]


def _definition(function: CatalogFunction) -> Mapping[str, Any]:
    """Return the definition for Spark, or else the first one."""
    return function.definitions.get(SPARK_DIALECT) or next(iter(function.definitions.values()), None) or {}


def _parameter(column: spark.StructField) -> DataField:
    field = stored_field(column)
    default = next((column.metadata[key] for key in _DEFAULTS if key in (column.metadata or {})), None)
    return DataField(field.id, field.name, field.type, field.description, default)


def _with_defaults(schema: spark.StructType, fields: Sequence[DataField]) -> spark.StructType:
    """Return a schema with the defaults of its fields, as Spark stores them."""
    for column, field in zip(schema.fields, fields, strict=True):
        if field.default is not None:
            column.metadata = {**(column.metadata or {}), **dict.fromkeys(_DEFAULTS, field.default)}
    return schema


def _context(options: Mapping[str, str], name: Sequence[str]) -> list[str]:
    """Return the catalog and the namespace of the names in the body of a function."""
    if _PARTS not in options:
        return list(name[:2])
    try:
        return [options[f"{_PART}{i}"] for i in range(int(options[_PARTS]))]
    except (KeyError, ValueError) as error:
        raise CorruptedError(f"function {'.'.join(name)} does not say where its names are: {error!r}") from error


def _boolean(value: bool) -> str:
    return str(value).lower()


def _shown(field: DataField, *, extended: bool) -> str:
    default = f" DEFAULT {field.default}" if extended and field.default is not None else ""
    comment = f" '{field.description}'" if extended and field.description else ""
    return f"{field.name} {field.type}{default}{comment}"
