"""A table that Spark fills before it becomes visible: CTAS, RTAS, ``CREATE OR REPLACE TABLE``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paimon_core import Schema, StagedTable
from paimon_core.errors import InvalidInputError
from paimon_spark.sql.bridge.endpoints import StagedEndpoint
from paimon_spark.sql.ddl.schema import with_write_options
from paimon_spark.sql.table import TableHandler


@dataclass
class StagedHandler(TableHandler, StagedEndpoint):
    """The handler of a staged table, for ``Staged.java``.

    The options of ``writeTo(...).option(...).create()`` and ``saveAsTable`` arrive with the rows, after Spark has
    staged the table. If they include table options, the table is staged again.
    """

    staged: StagedTable = field(kw_only=True)
    declared: Schema = field(kw_only=True)
    stage: Callable[[Schema], StagedTable] = field(kw_only=True)
    refused: InvalidInputError | None = field(kw_only=True, default=None)
    """The error of the declared schema without the options of the write; `None`: the schema is valid."""
    operation: str = field(kw_only=True)
    """The operation to store in the snapshot of the rows."""

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a DataFrame; the options of the write become properties of the table."""
        schema = with_write_options(self.declared, self._writes().statement_request(options), self.name)
        if schema != self.declared:
            self.staged.discard()
            self.staged, self.declared, self.refused = self.stage(schema), schema, None
            self.table = self.staged.table
            self.schema = self.table.schema
        self._check()
        super().insert(rows, mode, trees, options)

    def publish(self) -> None:
        """Publish the rows and the schema as the table."""
        self._check()
        self.staged.publish(self.operation)

    def discard(self) -> None:
        """Delete the written files."""
        self.staged.discard()

    def _check(self) -> None:
        """Raise the error of the declared schema, if any."""
        if self.refused is not None:
            raise self.refused
