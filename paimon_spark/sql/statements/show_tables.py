"""SHOW TABLE EXTENDED with the numbers of rows, bytes and files of each table, which Spark leaves out."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from paimon_core import FormatTable, Table
from paimon_spark.internals import rows_of_spark
from paimon_spark.sql.bridge.catalogs import catalog_of_new_table
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.partitions import table_size
from paimon_spark.sql.ddl.schema import spark_properties
from paimon_spark.sql.statements.tokens import Cursor

_PLAIN_STRINGS = "spark.sql.parser.escapedStringLiterals"
_SCHEMA = "\nSchema: root\n"
"""The line of the description before which the numbers stand."""


_LETTERS = re.compile(r"^Table Properties: \[\[((?:, .)*), \]\]\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ShowTablesStatement:
    """``SHOW TABLE EXTENDED [IN database] LIKE 'pattern'``. ``table``: the parts of the database, then the pattern."""

    table: tuple[str, ...]
    columns: str = (
        "namespace STRING NOT NULL, tableName STRING NOT NULL, isTemporary BOOLEAN NOT NULL, "
        "information STRING NOT NULL"
    )

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon SHOW TABLE EXTENDED {self.table[-1]}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Return the rows of Spark's statement, with the numbers in the column `information` of Paimon tables.

        Cost: reads the manifests of each table.
        """
        parser = jvm.type("org.apache.spark.sql.execution.SparkSqlParser")
        datasets = jvm.scala("org.apache.spark.sql.classic.Dataset")
        rows = rows_of_spark(spark, self._text(spark), parser, datasets)
        return [[row[0], row[1], row[2], row[3] if row[2] else self._with_size(jvm, spark, row)] for row in rows]

    def _text(self, spark: SparkSession) -> str:
        """Return the statement for Spark's parser and the settings of the session."""
        *names, pattern = self.table
        database = ".".join("`" + name.replace("`", "``") + "`" for name in names)
        quote, plain = "'", str(spark.conf.get(_PLAIN_STRINGS, "false")) == "true"
        if plain:  # nothing in a string has another meaning
            quote, inside = '"' if "'" in pattern else "'", pattern
        else:
            inside = pattern.replace("\\", "\\\\").replace("'", "\\'")
        return f"SHOW TABLE EXTENDED {f'IN {database} ' if names else ''}LIKE {quote}{inside}{quote}"

    def _with_size(self, jvm: Jvm, spark: SparkSession, row: Any) -> str:
        catalog, identifier = catalog_of_new_table(jvm, spark, (*self.table[:-1], row[1]))
        text = str(row[3])
        try:
            table = catalog.open_any_kind(identifier)
        except Py4JJavaError:  # a view, or a table that was dropped after Spark described it
            return text
        if isinstance(table, Table | FormatTable):
            text = _with_whole_properties(text, spark_properties(table.schema, ""))
        if not isinstance(table, Table):
            return text
        rows, size, files = table_size(table)
        at = text.rfind(_SCHEMA) + 1 or len(text)
        return f"{text[:at]}Statistics: {size} bytes, {rows} rows, {files} files\n{text[at:]}"


def _with_whole_properties(text: str, names: Iterable[str]) -> str:
    """Return a description with the properties as Spark 4.3 prints them: older versions print letter by letter.

    ``names``: the names of the properties.
    """
    found = _LETTERS.search(text)
    if found is None:
        return text
    properties = found[1][2::3]  # a comma and a blank before each letter
    properties = re.sub(rf",(?=(?:{'|'.join(map(re.escape, names))})=)", ", ", properties)
    line = f"Table Properties: [{properties}]\n" if properties else ""
    return text[: found.start()] + line + text[found.end() :]


def parse_show_tables(text: str) -> ShowTablesStatement | None:
    """Parse ``SHOW TABLE EXTENDED [IN database] LIKE 'pattern'``; `None`: another statement, such as of a partition."""
    cursor = Cursor(text)
    if not cursor.accept("SHOW", "TABLE", "EXTENDED"):
        return None
    names: tuple[str, ...] = ()
    if cursor.accept("IN") or cursor.accept("FROM"):
        if cursor.next.kind not in ("name", "quoted", "number"):
            return None
        names = cursor.parts()
    if not cursor.accept("LIKE") or cursor.next.kind != "string":
        return None
    pattern = cursor.text()
    return ShowTablesStatement((*names, pattern)) if cursor.next.kind == "end" else None
