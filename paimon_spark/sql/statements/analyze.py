"""ANALYZE TABLE, which Spark supports only for tables of its built-in catalog."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.errors import UnsupportedError
from paimon_spark.analyze import ALL, analyze
from paimon_spark.sql.bridge.catalogs import only_table, open_table_and_storage
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements.tokens import Cursor

_TABLES = "TABLES"


@dataclass(frozen=True)
class AnalyzeStatement:
    """``ANALYZE TABLE t COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]``.

    ``refused``: a part of the statement that Paimon does not support; `None`: all parts are supported.
    """

    table: tuple[str, ...]
    chosen: Sequence[str] | str | None
    refused: str | None
    columns: str = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon ANALYZE TABLE {'.'.join(self.table)}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Compute the statistics and commit them; return no row."""
        if self.refused == _TABLES:
            raise UnsupportedError(
                "ANALYZE TABLES is not possible for Paimon tables: run ANALYZE TABLE for each of them"
            )
        opened, storage = open_table_and_storage(jvm, spark, self.table, "ANALYZE TABLE")
        if self.refused is not None:
            raise UnsupportedError(
                f"ANALYZE TABLE ... {self.refused} is not possible for a Paimon table, whose statistics cover all its "
                "rows: leave it out"
            )
        table = only_table(opened)
        analyze(spark, table.store, {**storage, "path": table.path, "branch": table.store.branch}, self.chosen)
        return []


def parse_analyze(text: str) -> AnalyzeStatement | None:
    """Parse ``ANALYZE TABLE``, and ``ANALYZE TABLES``, which `run` refuses; `None`: another statement."""
    cursor = Cursor(text)
    if cursor.accept("ANALYZE", "TABLES"):
        database = cursor.parts() if cursor.accept("IN") or cursor.accept("FROM") else ()
        cursor.expect("COMPUTE", "STATISTICS")
        cursor.accept("NOSCAN")
        cursor.end()
        return AnalyzeStatement(database, None, _TABLES)
    if not cursor.accept("ANALYZE", "TABLE") or cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table, refused = cursor.parts(), None
    chosen: Sequence[str] | str | None = None
    if cursor.accept("PARTITION"):
        refused = "PARTITION"
        while not cursor.accept(")"):
            cursor.skip()
    cursor.expect("COMPUTE", "STATISTICS")
    if cursor.accept("NOSCAN"):
        refused = "NOSCAN"
    elif cursor.accept("FOR", "ALL", "COLUMNS"):
        chosen = ALL
    elif cursor.accept("FOR"):
        cursor.expect("COLUMNS")
        chosen = _names(cursor)
    cursor.end()
    return AnalyzeStatement(table, chosen, refused)


def _names(cursor: Cursor) -> list[str]:
    names = [cursor.name()]
    while cursor.accept(","):
        names.append(cursor.name())
    return names
