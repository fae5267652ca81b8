"""A table that Spark fills before it becomes visible: CTAS, RTAS, ``CREATE OR REPLACE TABLE``."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paimon_core import Schema, StagedTable
from paimon_core.engine import Identifier
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_spark.sql.bridge.endpoints import StagedEndpoint
from paimon_spark.sql.ddl.schema import with_write_options
from paimon_spark.sql.table import TableHandler
from paimon_spark.sql.writes.replacement import chooses_rows
from paimon_spark.sql.writes.table_writes import TableWrites


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
    saves: bool = field(kw_only=True, default=False)
    """True for `saveAsTable`, whose options may choose the rows of an existing table to replace."""
    unchanged: bool = field(kw_only=True, default=False)
    """True if the rows went to the existing table."""

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise an error for options that `insert` will refuse."""
        if chooses_rows(json.loads(options)):
            self._existing().check("overwrite", "[]", options)
        else:
            super().check_write(mode, trees, options)

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a DataFrame; the options of the write become properties of the table.

        Options that choose rows to replace leave the existing table in place.
        """
        if chooses_rows(json.loads(options)):
            self._existing().insert(rows, "overwrite", "[]", options)
            self.unchanged = True
            return
        schema = with_write_options(self.declared, self._writes().statement_request(options), self.name)
        if schema != self.declared:
            self.staged.discard()
            self.staged, self.declared, self.refused = self.stage(schema), schema, None
            self.table = self.staged.table
            self.schema = self.table.schema
        self._check()
        super().insert(rows, mode, trees, options)

    def _existing(self) -> TableWrites:
        """Return the writes of the table that exists. Raise InvalidInputError unless `saveAsTable` overwrites it."""
        _, database, name = self._names()
        advice = (
            "options 'replaceWhere', 'replaceUsing' and 'replaceOn' are for mode('overwrite') of a table that exists"
        )
        if not self.saves:
            raise InvalidInputError(f"{advice}: use insertInto or saveAsTable")
        try:
            table = self.catalog.table(Identifier(database, name))
        except NotFoundError:
            raise InvalidInputError(f"{advice}, and {self.name} does not exist") from None
        declared, stored = list(self.declared.partition_keys), list(table.schema.partition_keys)
        if declared and declared != stored:
            raise InvalidInputError(
                f"{self.name} is partitioned by {', '.join(stored) or 'nothing'}, not by {', '.join(declared)}: leave "
                "partitionBy out, because the write replaces only rows"
            )
        location = {**self._options(), "path": table.path, "branch": table.store.branch}  # not the staged branch
        return TableWrites(self.jvm, self._names(), table, location)

    def publish(self) -> None:
        """Publish the rows and the schema as the table."""
        if self.unchanged:
            self.staged.discard()
            return
        self._check()
        self.staged.publish(self.operation)

    def discard(self) -> None:
        """Delete the written files."""
        self.staged.discard()

    def _check(self) -> None:
        """Raise the error of the declared schema, if any."""
        if self.refused is not None:
            raise self.refused
