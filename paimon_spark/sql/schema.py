"""Columns, partitions, properties and changes of tables: from Spark's catalog interface to the engine, and back."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from pyspark.sql import types as spark

from paimon_core.errors import UnsupportedError
from paimon_core.schema.change import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdateTableComment,
    UpdateType,
)
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import TEXT_ROOTS, ArrayType, DataField, DataType, MapType, RowType, with_nullable
from paimon_core.types.default import unquoted
from paimon_spark.option_names import column_list
from paimon_spark.sql.jvm import Jvm
from paimon_spark.types import paimon_type, spark_schema

_CONNECTOR = "org.apache.spark.sql.connector"
_IGNORED = {"provider", "owner", "external", "is_managed_location", "option.serialization.format"}
"""Properties that Spark adds to every table and that say nothing about it."""
_KEYS = ("primary-key", "partition")
_CHANGING = re.compile(r"\b(current_\w+|now|curdate|localtimestamp|user|session_user|current\w*)\b", re.IGNORECASE)
"""Functions with another value for each statement."""
_PLAIN = {"string", "char", "varchar", "byte", "short", "integer", "long", "float", "double", "decimal", "boolean"}
"""Types whose literals are stored as Spark writes them."""
_SQL_TYPES = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP"}
_EPOCH = date(1970, 1, 1)


def new_schema(columns: Iterable[Any], partitions: Iterable[Any], properties: Mapping[str, str]) -> Schema:
    """Return the schema of ``CREATE TABLE``.

    Args:
        columns: Spark's columns, with comments and defaults.
        partitions: the transforms of ``PARTITIONED BY``.
        properties: ``TBLPROPERTIES`` and Spark's own.

    Raises UnsupportedError for a type, a transform or a provider that Paimon does not have.
    """
    provider = properties.get("provider", "paimon")
    if provider.lower() != "paimon":
        raise UnsupportedError(
            f"USING {provider} is not possible in a Paimon catalog: leave it out (before saveAsTable say "
            f".format('paimon')), and name the file format with the property 'file.format' = '{provider}'"
        )
    options = {key: value for key, value in properties.items() if key not in _IGNORED | {"comment", "location"}}
    primary_keys = column_list(options.pop("primary-key", "")) if options.get("primary-key") else ()
    return Schema(
        [_field(column) for column in columns],
        primary_keys,
        _partition_columns(partitions),
        options,
        properties.get("comment"),
    )


def spark_columns(jvm: Jvm, schema: TableSchema) -> Any:
    """Return the columns of a table as a Java array of Spark's columns, with comments and defaults."""
    column, default = jvm.type(f"{_CONNECTOR}.catalog.Column"), jvm.type(f"{_CONNECTOR}.catalog.ColumnDefaultValue")
    fields = list(schema.fields)
    types = [field.dataType() for field in jvm.struct(spark_schema(fields)).fields()]
    literal = jvm.type(f"{_CONNECTOR}.expressions.LiteralValue")
    found = []
    for field, kind in zip(fields, types, strict=True):
        value = None if field.default is None else default(_default_sql(field), literal(None, kind))
        found.append(column.create(field.name, kind, field.type.nullable, field.description, value, None))
    return jvm.array(f"{_CONNECTOR}.catalog.Column", found)


def spark_partitioning(jvm: Jvm, schema: TableSchema) -> Any:
    """Return the partition columns as a Java array of transforms."""
    identity = jvm.type(f"{_CONNECTOR}.expressions.Expressions").identity
    return jvm.array(f"{_CONNECTOR}.expressions.Transform", [identity(f"`{key}`") for key in schema.partition_keys])


def spark_properties(schema: TableSchema, location: str) -> dict[str, str]:
    """Return the properties of a table: its options, keys, comment and location."""
    keys = {"primary-key": ",".join(schema.primary_keys)} if schema.primary_keys else {}
    comment = {"comment": schema.comment} if schema.comment else {}
    return {**dict(schema.options), **keys, **comment, "provider": "paimon", "location": location}


def schema_changes(changes: Iterable[Any]) -> Iterator[SchemaChange]:
    """Yield the engine's changes for those of ``ALTER TABLE``. Raises UnsupportedError for a change of another kind."""
    for change in changes:
        kind = change.getClass().getSimpleName()
        if kind not in _CHANGES:
            raise UnsupportedError(f"ALTER TABLE with {kind} is not possible for a Paimon table")
        yield from _CHANGES[kind](change)


def _add_column(change: Any) -> Iterator[SchemaChange]:
    value = change.defaultValue()
    yield AddColumn(
        tuple(change.fieldNames()),
        with_nullable(sql_type(_type(change.dataType()), ".".join(change.fieldNames())), change.isNullable()),
        change.comment(),
        _default_text(value),
        _position(change.position()),
    )


def _set_property(change: Any) -> Iterator[SchemaChange]:
    if change.property() == "comment":
        yield UpdateTableComment(change.value())
    else:
        yield SetOption(change.property(), change.value())


def _remove_property(change: Any) -> Iterator[SchemaChange]:
    yield UpdateTableComment(None) if change.property() == "comment" else RemoveOption(change.property())


_CHANGES: dict[str, Any] = {
    "AddColumn": _add_column,
    "DeleteColumn": lambda c: [DropColumn(tuple(c.fieldNames()))],
    "RenameColumn": lambda c: [RenameColumn(tuple(c.fieldNames()), c.newName())],
    "UpdateColumnType": lambda c: [
        UpdateType(tuple(c.fieldNames()), sql_type(_type(c.newDataType()), ".".join(c.fieldNames())))
    ],
    "UpdateColumnNullability": lambda c: [UpdateNullability(tuple(c.fieldNames()), c.nullable())],
    "UpdateColumnComment": lambda c: [UpdateComment(tuple(c.fieldNames()), c.newComment() or None)],
    "UpdateColumnPosition": lambda c: [MoveColumn(tuple(c.fieldNames()), _position(c.position()) or FIRST)],
    "UpdateColumnDefaultValue": lambda c: [UpdateDefault(tuple(c.fieldNames()), _unless_null(c.newDefaultValue()))],
    "SetProperty": _set_property,
    "RemoveProperty": _remove_property,
}


def _new_type(change: Any) -> DataType:
    return sql_type(_type(change.newDataType()), ".".join(change.fieldNames()))


def _position(position: Any) -> Position | None:
    if position is None:
        return None
    text = str(position)
    return FIRST if text == "FIRST" else Position("after", position.column())


def _partition_columns(transforms: Iterable[Any]) -> list[str]:
    """Return the columns of ``PARTITIONED BY``. Raises UnsupportedError for a transform such as ``days(ts)``."""
    found = []
    for transform in transforms:
        if transform.name() != "identity":
            advice = "set the property 'bucket'" if "bucket" in transform.name() else "add a column with this value"
            raise UnsupportedError(
                f"{transform.toString()} cannot partition a Paimon table, which is partitioned by columns: {advice}"
            )
        found.append(".".join(transform.references()[0].fieldNames()))
    return found


def _field(column: Any) -> DataField:
    value = column.defaultValue()
    if column.generationExpression() is not None:
        raise UnsupportedError(f"column {column.name()!r} is generated, which Paimon tables do not have")
    kind = with_nullable(sql_type(_type(column.dataType()), column.name()), column.nullable())
    return DataField(-1, column.name(), kind, column.comment(), _default_text(value))


def _default_text(value: Any) -> str | None:
    """Return the text that the schema stores for a default of Spark; `None`: NULL, or no default."""
    sql = None if value is None else _unless_null(str(value.getSql()))
    if sql is None:
        return None
    if _CHANGING.search(re.sub(r"'[^']*'", "", sql)):
        raise UnsupportedError(f"DEFAULT {sql} is not possible: its value changes, and a schema stores one value")
    literal = value.getValue()
    kind = "" if literal is None or literal.value() is None else str(literal.dataType().typeName()).partition("(")[0]
    if kind == "date":
        return str(_EPOCH + timedelta(days=int(literal.value())))
    if kind not in _PLAIN:
        return sql
    text = str(literal.value()) if isinstance(literal.value(), int | float) else str(literal.value().toString())
    return f"'{text}'" if unquoted(text) != text else text


def _unless_null(sql: str | None) -> str | None:
    """Return an expression of SQL; `None`: it is NULL or empty."""
    return None if not sql or sql.strip().upper() == "NULL" else sql


def _default_sql(field: DataField) -> str:
    """Return the default of a column as an expression of SQL."""
    stored = str(field.default)
    text = unquoted(stored)
    root = getattr(field.type, "root", "")
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if root in TEXT_ROOTS:
        return quoted
    if root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ") and text[:1].isdigit():
        return f"CAST({quoted} AS {_SQL_TYPES[root]})"
    return stored


def _type(kind: Any) -> spark.DataType:
    """Return a Java data type as PySpark's."""
    return spark._parse_datatype_json_value(json.loads(kind.json()))


def sql_type(kind: spark.DataType, path: str) -> DataType:
    """Return the Paimon type of a type in SQL, with NOT NULL at every depth as declared."""
    return _as_declared(paimon_type(kind, path), kind)


def _as_declared(found: DataType, kind: spark.DataType) -> DataType:
    match found, kind:
        case ArrayType(), spark.ArrayType():
            return ArrayType(with_nullable(_as_declared(found.element, kind.elementType), kind.containsNull))
        case MapType(), spark.MapType():
            value = with_nullable(_as_declared(found.value, kind.valueType), kind.valueContainsNull)
            return MapType(_as_declared(found.key, kind.keyType), value)
        case RowType(), spark.StructType():
            pairs = zip(found.fields, kind.fields, strict=True)
            return RowType(tuple(_declared_field(field, own) for field, own in pairs))
    return found


def _declared_field(field: DataField, own: spark.StructField) -> DataField:
    kind = with_nullable(_as_declared(field.type, own.dataType), own.nullable)
    return DataField(field.id, field.name, kind, field.description, field.default)
