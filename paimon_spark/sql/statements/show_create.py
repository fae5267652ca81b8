"""SHOW CREATE TABLE, including the details of types that Spark's columns lack."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import FormatTable, TableSchema
from paimon_core.engine import is_format_table
from paimon_core.errors import PaimonError
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    with_nullable,
)
from paimon_spark.sql.bridge.catalogs import only_table, open_any_kind
from paimon_spark.sql.bridge.conversions import struct_of_ddl
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.defaults import default_sql
from paimon_spark.sql.ddl.schema import declared_type, spark_properties
from paimon_spark.sql.statements.tokens import Cursor
from paimon_spark.types import spark_type

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_CLAUSES = ("comment", "provider", "location", "owner")
_OF_USING = ("type", "file.format")
"""The properties that the clause USING sets for a format table."""
_SECRETS = {
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key",
    "spark.sql.redaction.options.regex": "(?i)url",
}
"""The settings, with their defaults, of the patterns for options whose values Spark redacts."""
_HIDDEN = "*********(redacted)"


@dataclass(frozen=True)
class ShowCreateStatement:
    """``SHOW CREATE TABLE t``."""

    table: tuple[str, ...]
    columns: str = "createtab_stmt STRING NOT NULL"

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon SHOW CREATE TABLE {'.'.join(self.table)}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Return the statement."""
        table, name = open_any_kind(jvm, spark, self.table, "SHOW CREATE TABLE")
        if isinstance(table, FormatTable):  # without LOCATION, the catalog chooses the directory, and deletes it
            location = table.path if table.is_external else None
            return [[create_statement(jvm, name, table.schema, location)]]
        table = only_table(table)
        return [[create_statement(jvm, name, table.schema, table.path)]]


def parse_show_create(text: str) -> ShowCreateStatement | None:
    """Parse ``SHOW CREATE TABLE t``; `None`: another statement, ``AS SERDE`` among others."""
    cursor = Cursor(text)
    if not cursor.accept("SHOW", "CREATE", "TABLE") or cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table = cursor.parts()
    return ShowCreateStatement(table) if cursor.next.kind == "end" else None


def create_statement(jvm: Jvm, name: Sequence[str], schema: TableSchema, location: str | None) -> str:
    """Return a CREATE TABLE statement. Comments at its end list what SQL cannot declare. Secrets are redacted.

    Args:
        jvm: the JVM of the session, which parses types.
        name: the parts of the table's name.
        schema: the schema of the table.
        location: the directory of the table; `None`: the catalog chooses it.
    """
    properties = spark_properties(schema, location or "")
    secret = [re.compile(str(jvm.spark.conf.get(key, usual))) for key, usual in _SECRETS.items()]
    options = sorted(
        (key, _HIDDEN if any(pattern.search(key) or pattern.search(value) for pattern in secret) else value)
        for key, value in properties.items()
        if key not in _OF_CLAUSES and not (is_format_table(properties) and key in _OF_USING)
    )
    keys = ", ".join(map(_name, schema.partition_keys))
    columns = ",\n  ".join(map(_column, schema.fields))
    parts = [
        f"CREATE TABLE {'.'.join(map(_name, name))} (\n  {columns})",
        f"USING {properties['provider']}",
        f"PARTITIONED BY ({keys})" if keys else "",
        f"COMMENT {_text(schema.comment)}" if schema.comment else "",
        f"LOCATION {_text(location)}" if location is not None else "",
        "TBLPROPERTIES (\n  " + ",\n  ".join(f"{_text(key)} = {_text(value)}" for key, value in options) + ")"
        if options
        else "",
        *(f"-- {line}" for line in _unsaid(jvm, schema.fields)),
    ]
    return "\n".join(filter(None, parts)) + "\n"


def _column(field: DataField) -> str:
    default = None if field.default is None else default_sql(field.default, field.type)
    return _declared(field, " ") + (f" DEFAULT {default}" if default is not None else "") + _comment(field)


def _declared(field: DataField, between: str) -> str:
    return f"{_name(field.name)}{between}{type_sql(field.type)}{'' if field.type.nullable else ' NOT NULL'}"


def _comment(field: DataField) -> str:
    return f" COMMENT {_text(field.description)}" if field.description else ""


def type_sql(kind: DataType) -> str:
    """Return a type in SQL syntax, without NOT NULL; the closest type if SQL has no equivalent."""
    match kind:
        case ArrayType():
            return f"ARRAY<{type_sql(kind.element)}>"
        case MapType():
            return f"MAP<{type_sql(kind.key)}, {type_sql(kind.value)}>"
        case RowType():
            return f"STRUCT<{', '.join(_declared(field, ': ') + _comment(field) for field in kind.fields)}>"
        case AtomicType() if kind.root in ("CHAR", "VARCHAR"):
            return str(with_nullable(kind, True))
        case AtomicType() if kind.root == "TIMESTAMP_LTZ":
            return "TIMESTAMP_LTZ"
    return spark_type(kind, "").simpleString().upper()


def _unsaid(jvm: Jvm, fields: Sequence[DataField]) -> list[str]:
    """Return a line for each column whose type SQL cannot declare."""
    lines = []
    for field in fields:
        try:
            again = declared_type(struct_of_ddl(jvm, f"c {type_sql(field.type)}").apply("c").dataType(), field.name)
        except PaimonError as error:
            lines.append(f"column {_name(field.name)}: {error}".replace("\n", " "))
            continue
        stored = with_nullable(field.type, True)
        if str(again) != str(stored):
            lines.append(f"column {_name(field.name)} is {stored}, which SQL cannot declare".replace("\n", " "))
    return lines


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
