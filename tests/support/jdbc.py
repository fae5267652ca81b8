"""Answers to the statements of the SQL corpus through JDBC, which lacks some of what the corpus says.

Hive's driver writes nested values, binary values and times in ways of its own: only simple types are compared.
"""

from decimal import Decimal
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StringType

from tests.support.sql_cases import QUERY, shown

_SIMPLE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean", "string", "decimal", "date", "float", "double"})
_OTHER = "*"
_TEXT = StringType()
_FLOATS = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
"""Numbers as Python writes them."""


class JdbcClient:
    """A connection to a Thrift server by the Hive driver in the JVM of a session."""

    def __init__(self, spark: Any, address: str) -> None:
        """Connect to ``host:port``."""
        manager = spark.sparkContext._jvm.java.sql.DriverManager
        self._statement = manager.getConnection(f"jdbc:hive2://{address}").createStatement()

    def close(self) -> None:
        """Close the connection."""
        self._statement.getConnection().close()

    def difference(self, text: str, expected: str, warehouse: str, columns: int | None = None) -> str:
        """Run a statement; return an empty text if its answer is the expected one of the corpus, else the answer."""
        try:
            has_rows = self._statement.execute(text.replace("{warehouse}", warehouse))
        except Py4JJavaError as error:
            message = str(error.java_exception.getMessage()).replace(warehouse, "{warehouse}")
            return "" if _is_same_error(message, expected) else f"error {message}"
        types, lines = self._result(columns) if has_rows else ([], [])
        lines = [line.replace(warehouse, "{warehouse}") for line in lines]
        if expected == "ok":
            return "\n".join(lines)
        head, *rows = expected.split("\n")
        rows = [_masked(row.split(" | "), types) if len(row.split(" | ")) == len(types) else row for row in rows]
        if QUERY.match(text) and "ORDER BY" not in text.upper():
            rows, lines = sorted(rows), sorted(lines)
        return "" if [row.rstrip() for row in rows] == [line.rstrip() for line in lines] else "\n".join([head, *lines])

    def _result(self, columns: int | None) -> tuple[list[str], list[str]]:
        """Return the types of the columns and a line for each row."""
        result = self._statement.getResultSet()
        described = result.getMetaData()
        count = columns or described.getColumnCount()
        types = [described.getColumnTypeName(i + 1).lower() for i in range(count)]
        lines = []
        while result.next():
            lines.append(_masked([_cell(result.getString(i + 1), kind) for i, kind in enumerate(types)], types))
        return types, lines


def _is_same_error(message: str, expected: str) -> bool:
    """Return True if the message has the condition, or the part of the message, that the corpus expects."""
    kind, _, part = expected.partition(" ")
    if kind == "error":
        return f"[{part}]" in message
    first, _, rest = part.partition(" ")
    words = rest if first.endswith(("Error", "Exception")) else part  # the name of the class in Python
    return kind == "error:" and words.lower() in message.lower()


def _cell(text: str | None, kind: str) -> str:
    if text is None:
        return "NULL"
    if kind == "decimal":
        return f"{Decimal(text):f}"
    return shown(text, _TEXT) if kind == "string" else _FLOATS.get(text, text)


def _masked(cells: list[str], types: list[str]) -> str:
    """Return a line in which cells of other types are replaced."""
    masked = zip(cells, types, strict=True)
    return " | ".join(cell if kind in _SIMPLE or cell == "NULL" else _OTHER for cell, kind in masked)
