"""A procedure call in a Spark session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from paimon_core import Table
from paimon_core.engine import Call, Filter, Identifier, SourceTable, parse_predicate
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_spark.distribute import SparkRunner
from paimon_spark.filter_text import matching_partitions, with_session_quotes
from paimon_spark.options import with_changed_options
from paimon_spark.procedures.spark_tables import source_table, source_tables
from paimon_spark.times import instant


@dataclass(frozen=True, kw_only=True)
class SessionCall(Call):
    """A procedure call with the session's current database, time zone, options, executors and caches.

    ``options_of``: returns the options that the session sets for a table, by the table's database and name.
    """

    spark: SparkSession
    options_of: Callable[[str, str], Mapping[str, str]] = lambda database, table: {}

    def current_database(self) -> str:
        """Return the current database if the catalog is the current catalog, else the default database."""
        session = self.spark.catalog
        return (
            session.currentDatabase() if session.currentCatalog() == self.catalog_name else super().current_database()
        )

    def opened(self, identifier: Identifier) -> Table:
        """Return a table with the options of the session. Raise NotFoundError if the table does not exist."""
        options = self.options_of(identifier.database, identifier.table)
        return with_changed_options(super().opened(identifier), options)

    def where(self, table: Table) -> Filter:
        """Return the argument ``where`` as a filter. Spark evaluates what the engine cannot parse, such as functions.

        Spark evaluates the condition for each partition with files. Raises InvalidInputError if it cannot.
        """
        text = super().where(table)
        if not isinstance(text, str):
            return text
        try:
            return parse_predicate(with_session_quotes(self.spark, text))
        except InvalidInputError as error:
            return matching_partitions(self.spark, table, text, error)

    def source_table(self, name: str) -> SourceTable:
        """Return a table of Spark's own catalog; the current database completes a name without one."""
        return source_table(self.spark, name, self.current_database())

    def source_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database of Spark's own catalog."""
        return source_tables(self.spark, database)

    def moment(self, text: str) -> int | None:
        """Return the epoch milliseconds of a date and time in the session's time zone; `None`: the text is neither."""
        return instant(text, self.spark)

    def runner(self, table: Table) -> SparkRunner:
        """Return a runner of tasks on the cluster; the Spark UI shows the procedure and the table."""
        return SparkRunner(self.spark, hide_secrets(f"{self.procedure.name} {table.path}"))

    def refresh(self) -> None:
        """Invalidate Spark's caches of the table after its rows changed."""
        identifier = self.identifier()
        parts = (self.catalog_name, identifier.database, identifier.table)
        self.spark.catalog.refreshTable(".".join(f"`{part}`" for part in parts))
