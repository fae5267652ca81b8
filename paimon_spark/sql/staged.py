"""A table that Spark fills before it appears: CTAS, RTAS, ``CREATE OR REPLACE TABLE``."""

from dataclasses import dataclass, field

from paimon_core.catalog.staged import StagedTable
from paimon_spark.sql.table import TableFunction


@dataclass
class StagedFunction(TableFunction):
    """The answers of a staged table: those of a table, and its end."""

    staged: StagedTable = field(kw_only=True)

    def publish(self) -> None:
        """Make the rows and the schema those of the table."""
        self.staged.publish()

    def discard(self) -> None:
        """Delete what was written."""
        self.staged.discard()
