"""Conversion of columns, partitions and properties of tables between Spark's catalog interface and the engine."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from paimon_core import Schema, TableSchema
from paimon_core.engine import FORMAT_TABLE_FORMATS, is_format_table, metadata_fields, tracking_fields
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.file import FILE_FORMAT, OF_OPENING
from paimon_core.options.parse import column_list
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, RowType, with_nullable
from paimon_spark.char_columns import catalog_columns, check_types_replaced
from paimon_spark.option_names import check_property
from paimon_spark.options import WriteRequest
from paimon_spark.sql.ddl.defaults import default_sql, default_text
from paimon_spark.types import paimon_type, spark_schema

_IGNORED = {"provider", "owner", "external", "is_managed_location", "option.serialization.format"}
"""Properties that Spark adds to every table and that are not stored."""
_OPTION_PREFIX = "option."
"""Spark passes each entry of ``OPTIONS (...)`` twice: under its name, and under its name with this prefix."""
_ADVICE = {
    "bucket": "set the properties 'bucket' and 'bucket-key'",
    "cluster_by": "set the property 'clustering.columns'",
}


def new_schema(
    session: SparkSession,
    columns: Iterable[Any],
    partitions: Iterable[Any],
    properties: Mapping[str, str],
    constraints: Iterable[Any] = (),
    *,
    format_tables: bool = False,
) -> Schema:
    """Return the schema of ``CREATE TABLE``.

    Args:
        session: the session that issued the statement.
        columns: Spark's columns, with comments and defaults.
        partitions: the transforms of ``PARTITIONED BY``.
        properties: ``TBLPROPERTIES``, and the properties that Spark adds.
        constraints: Spark's constraints; ``PRIMARY KEY`` has the effect of the property 'primary-key'.
        format_tables: True if ``USING csv`` and the like create a format table; False: the catalog holds none.

    Raises UnsupportedError for a type, a transform, a provider or a constraint that Paimon lacks, InvalidInputError if
    the constraint and the property name different keys.
    """
    provider = properties.get("provider", "paimon")
    if provider.lower() in FORMAT_TABLE_FORMATS and format_tables:
        properties = {**_of_format_table(properties, provider.lower()), "provider": "paimon"}
    elif provider.lower() != "paimon":
        raise UnsupportedError(
            f"USING {provider} is not possible in a Paimon catalog: leave it out (before saveAsTable call "
            f".format('paimon')), and set the file format with the property 'file.format' = '{provider}'"
        )
    hive = sorted(key for key in properties if key.startswith("hive."))
    if hive:
        raise UnsupportedError(
            f"STORED AS and ROW FORMAT ({', '.join(hive)}) are Hive syntax: set the file format with the property "
            "'file.format'"
        )
    _refuse_without_effect(properties)
    options = {
        key: value
        for key, value in properties.items()
        if key not in _IGNORED | {"comment", "location"} and not key.startswith(_OPTION_PREFIX)
    }
    for key in options if not is_format_table(options) else ():
        check_property(key)
    fields = [_field(session, column) for column in columns]
    check_types_replaced(session, fields)
    spelled = {field.name.lower(): field.name for field in fields}
    primary_keys = _primary_key(options.pop("primary-key")) if options.get("primary-key") else ()
    for columns_of_key in map(_key_of, constraints):
        if primary_keys and [key.lower() for key in primary_keys] != [key.lower() for key in columns_of_key]:
            raise InvalidInputError(
                f"PRIMARY KEY ({', '.join(columns_of_key)}) and the property 'primary-key' = "
                f"'{','.join(primary_keys)}' differ: keep one of them"
            )
        primary_keys = columns_of_key
    return Schema(
        fields,
        [spelled.get(key.lower(), key) for key in primary_keys],
        [spelled.get(key.lower(), key) for key in _partition_columns(partitions)],
        options,
        properties.get("comment"),
    )


def _primary_key(text: str) -> Sequence[str]:
    """Return the columns that the property ``primary-key`` names. Raises InvalidInputError for another text."""
    try:
        return column_list(text)
    except ValueError as error:
        raise InvalidInputError(f"the property 'primary-key' {error}, found {text!r}") from None


def _of_format_table(properties: Mapping[str, str], format: str) -> dict[str, str]:
    """Return the properties of ``USING <format>``, which creates a format table.

    Raises InvalidInputError for a property that says otherwise.
    """
    for key, value in (("type", "format-table"), ("file.format", format)):
        if properties.get(key, value).lower() != value:
            raise InvalidInputError(f"USING {format} and the property {key!r} = {properties[key]!r} differ: keep one")
    return {**properties, "type": "format-table", "file.format": format}


def _refuse_without_effect(properties: Mapping[str, str]) -> None:
    """Raise UnsupportedError for EXTERNAL, InvalidInputError for a user's property ``option.<name>``."""
    if properties.get("external", "false").lower() == "true":
        raise UnsupportedError(
            "EXTERNAL is not possible: DROP TABLE deletes the files of every table of this catalog; leave it out, or "
            "name a table elsewhere by its path"
        )
    for key in properties:
        name = key.removeprefix(_OPTION_PREFIX)
        if name != key and name not in properties and key not in _IGNORED:
            raise InvalidInputError(f"property {key!r} has no effect: set the property {name!r}")


def with_write_options(schema: Schema, request: WriteRequest, table: str) -> Schema:
    """Return the schema of a new table, extended by the options of the write that creates it.

    Args:
        schema: the schema in the statement.
        request: the options of the write.
        table: the name of the table, for messages.

    Raises InvalidInputError for an option that contradicts the declaration.
    """
    spelled = {field.name.lower(): field.name for field in schema.data_fields}
    keys = {"primary-key": (schema.primary_keys, request.primary_keys)}
    keys["partition"] = (schema.partition_keys, request.partition_keys)
    columns: dict[str, Sequence[str]] = {}
    for option, (declared, written_columns) in keys.items():
        written = [spelled.get(column.lower(), column) for column in written_columns or ()]
        if declared and written and list(declared) != written:
            raise _contradiction(table, option, ",".join(written), ",".join(declared))
        columns[option] = declared or written
    options = dict(schema.options)
    for key, value in request.options.items():
        if key in {option.key for option in OF_OPENING}:
            continue
        if options.setdefault(key, value) != value:
            raise _contradiction(table, key, value, options[key])
    return replace(schema, primary_keys=columns["primary-key"], partition_keys=columns["partition"], options=options)


def _contradiction(table: str, option: str, value: str, declared: str) -> InvalidInputError:
    return InvalidInputError(
        f"option {option!r} of the write that creates {table} is {value!r}, but the table is declared with {declared!r}"
        ": keep one of them"
    )


def description(
    name: str, schema: TableSchema, location: str, capabilities: Iterable[str], *, computed: bool = True
) -> str:
    """Return the description of a table as JSON, for ``Description.java``.

    Args:
        name: the name of the table in messages and plans.
        schema: the schema of the table.
        location: the path of the table.
        capabilities: the TableCapability names that Spark may use.
        computed: True if rows have metadata columns, which are computed and not stored.
    """
    defaults = [None if f.default is None else default_sql(f.default, f.type) for f in schema.fields]
    return json.dumps(
        {
            "name": name,
            "columns": catalog_columns(schema.fields).json(),
            "comments": [field.description for field in schema.fields],
            "defaults": defaults,
            "metadata": spark_schema((*tracking_fields(schema), *metadata_fields(schema)) if computed else ()).json(),
            "partitions": spark_schema(schema.partition_fields).json(),
            "properties": spark_properties(schema, location),
            "capabilities": list(capabilities),
        }
    )


def spark_properties(schema: TableSchema, location: str) -> dict[str, str]:
    """Return the properties of a table: its options, keys, comment and location."""
    keys = {"primary-key": ",".join(schema.primary_keys)} if schema.primary_keys else {}
    comment = {"comment": schema.comment} if schema.comment else {}
    provider = schema.options.value(FILE_FORMAT) if is_format_table(schema.options) else "paimon"
    return {**dict(schema.options), **keys, **comment, "provider": provider, "location": location}


def _partition_columns(transforms: Iterable[Any]) -> list[str]:
    """Return the columns of ``PARTITIONED BY``. Raises UnsupportedError for a transform such as ``days(ts)``."""
    columns = []
    for transform in transforms:
        if transform.name() != "identity":
            advice = _ADVICE.get(transform.name().replace("sorted_", ""), "add a column with this value")
            raise UnsupportedError(
                f"{transform.toString()} cannot partition a Paimon table, which is partitioned by columns: {advice}"
            )
        columns.append(".".join(transform.references()[0].fieldNames()))
    return columns


def _field(session: SparkSession, column: Any) -> DataField:
    value = column.defaultValue()
    if column.generationExpression() is not None:
        raise UnsupportedError(f"column {column.name()!r} is generated, which Paimon tables do not have")
    kind = with_nullable(declared_type(column.dataType(), column.name()), column.nullable())
    default = default_text(session, None if value is None else value.getSql(), kind, column.name())
    return DataField(-1, column.name(), kind, column.comment(), default)


def declared_type(kind: Any, path: str) -> DataType:
    """Return the Paimon type of a Java data type; `path`: the column for errors."""
    return sql_type(_type(kind), path)


def _key_of(constraint: Any) -> list[str]:
    """Return the columns of a constraint ``PRIMARY KEY``. Raise UnsupportedError for any other constraint."""
    if constraint.getClass().getSimpleName() != "PrimaryKey":
        refuse_constraint(constraint.toDDL())
    return [".".join(column.fieldNames()) for column in constraint.columns()]


def refuse_constraint(constraint: str) -> NoReturn:
    """Raise UnsupportedError with an alternative; `constraint`: the constraint in SQL."""
    if "PRIMARY KEY" in constraint.upper():
        raise UnsupportedError(
            "ADD CONSTRAINT with PRIMARY KEY is not possible: create a new table with PRIMARY KEY, and copy the rows"
        )
    raise UnsupportedError(f"{constraint} is not possible: a Paimon table checks only NOT NULL constraints")


def _type(kind: Any) -> spark.DataType:
    """Return the PySpark type of a Java type. Raise UnsupportedError for a collation, which other engines ignore."""
    collation = re.search(r"COLLATE (?!UTF8_BINARY\b)(\w+)", str(kind.sql()))
    if collation is not None:
        raise UnsupportedError(f"COLLATE {collation[1]} is not possible: Paimon compares strings by their bytes")
    return spark._parse_datatype_json_value(json.loads(kind.json()))


def sql_type(kind: spark.DataType, path: str) -> DataType:
    """Return the Paimon type of a Spark type, with NOT NULL at every depth as declared."""
    return _as_declared(paimon_type(kind, path), kind)


def _as_declared(type_: DataType, kind: spark.DataType) -> DataType:
    match type_, kind:
        case ArrayType(), spark.ArrayType():
            return ArrayType(with_nullable(_as_declared(type_.element, kind.elementType), kind.containsNull))
        case MapType(), spark.MapType():
            value = with_nullable(_as_declared(type_.value, kind.valueType), kind.valueContainsNull)
            return MapType(_as_declared(type_.key, kind.keyType), value)
        case RowType(), spark.StructType():
            pairs = zip(type_.fields, kind.fields, strict=True)
            return RowType(tuple(_declared_field(field, declared) for field, declared in pairs))
    return type_


def _declared_field(field: DataField, declared: spark.StructField) -> DataField:
    kind = with_nullable(_as_declared(field.type, declared.dataType), declared.nullable)
    return DataField(field.id, field.name, kind, field.description, field.default)
