"""CREATE TABLE ... LIKE on Spark 4.1 and 4.2, which support the statement only for Spark's own tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from paimon_spark.sql.bridge.catalogs import catalog_of_new_table, resolved_table
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements.tokens import Cursor

_SPARK_HAS_IT = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)


@dataclass(frozen=True)
class LikeStatement:
    """``CREATE TABLE [IF NOT EXISTS] t LIKE source [USING paimon] [TBLPROPERTIES (...)]``."""

    table: tuple[str, ...]
    source: tuple[str, ...]
    ignore: bool
    table_properties: dict[str, str]
    columns: str = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon CREATE TABLE {'.'.join(self.table)} LIKE {'.'.join(self.source)}"

    def properties(self) -> dict[str, str]:
        """Return the properties of the statement; the method name is the same as in Spark's TableInfo."""
        return self.table_properties

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Create the table with columns, partitions and properties of the source; return no row."""
        source = resolved_table(jvm, spark, self.source, "CREATE TABLE LIKE").table()
        catalog, identifier = catalog_of_new_table(jvm, spark, self.table)
        if not (self.ignore and catalog.table_exists(identifier)):
            catalog.create_table_like(identifier, self, source)
        return []


def parse_like(text: str) -> LikeStatement | None:
    """Parse ``CREATE TABLE ... LIKE``; `None`: another statement, or a version of Spark that supports it."""
    cursor = Cursor(text)
    if _SPARK_HAS_IT or not cursor.accept("CREATE", "TABLE"):
        return None
    ignore = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table = cursor.parts()
    if not cursor.accept("LIKE"):
        return None
    source, properties = cursor.parts(), {}
    if cursor.accept("USING"):
        properties["provider"] = cursor.name()
    if cursor.accept("TBLPROPERTIES"):
        properties |= _properties(cursor)
    cursor.end()
    return LikeStatement(table, source, ignore, properties)


def _properties(cursor: Cursor) -> dict[str, str]:
    cursor.expect("(")
    properties: dict[str, str] = {}
    while True:
        key = cursor.text() if cursor.next.kind == "string" else ".".join(cursor.parts())
        cursor.accept("=")
        properties[key] = cursor.value()
        if not cursor.accept(","):
            cursor.expect(")")
            return properties
