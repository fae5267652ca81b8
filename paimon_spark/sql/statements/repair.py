"""MSCK REPAIR TABLE for format tables whose catalog lists the partitions; Spark refuses it for tables of catalogs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import FormatTable
from paimon_core.errors import UnsupportedError
from paimon_spark.internals import quoted
from paimon_spark.sql.bridge.catalogs import open_any_kind
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements.tokens import Cursor

_COMMAND = "MSCK REPAIR TABLE"


@dataclass(frozen=True)
class RepairStatement:
    """``MSCK REPAIR TABLE t [ADD|DROP|SYNC PARTITIONS]``."""

    table: tuple[str, ...]
    add: bool = True
    drop: bool = False
    columns: str = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon {_COMMAND} {'.'.join(self.table)}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Make the catalog list the partitions of a format table that have directories; return no row.

        Raises UnsupportedError for a table of Paimon, and for a table whose partitions are its directories.
        """
        table, name = open_any_kind(jvm, spark, self.table, _COMMAND)
        if not isinstance(table, FormatTable):
            raise UnsupportedError(
                f"{_COMMAND} is not possible for {'.'.join(self.table)}, a table of Paimon: its metadata list its "
                "files, and directories do not count; CALL sys.add_files adds files of other tools"
            )
        table.repair_partitions(add=self.add, drop=self.drop)
        spark.catalog.refreshTable(".".join(map(quoted, name)))
        return []


def parse_repair(text: str) -> RepairStatement | None:
    """Parse ``MSCK REPAIR TABLE t [ADD|DROP|SYNC PARTITIONS]``; `None`: another statement."""
    cursor = Cursor(text)
    if not cursor.accept("MSCK") or not cursor.accept("REPAIR", "TABLE"):
        return None
    if cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table, kind = cursor.parts(), "ADD"
    for word in ("ADD", "DROP", "SYNC"):
        if cursor.accept(word):
            cursor.expect("PARTITIONS")
            kind = word
            break
    cursor.end()
    return RepairStatement(table, kind in ("ADD", "SYNC"), kind in ("DROP", "SYNC"))
