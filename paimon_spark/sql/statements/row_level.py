"""DELETE, UPDATE and MERGE INTO: Spark's analysed statements as columns and DataFrames."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from paimon_core.errors import UnsupportedError
from paimon_core.table import Table
from paimon_spark.sql.jvm import Jvm

Counts = Sequence[Sequence[int]]
"""One row: affected rows; of MERGE INTO also updated, deleted and inserted rows."""


@dataclass(frozen=True)
class Clause:
    """A WHEN of MERGE INTO.

    ``rows``: "matched", "not matched" or "not matched by source"; ``action``: "update", "delete" or "insert";
    ``values``: the new value of each column that changes, `None`: the clause deletes.
    """

    rows: str
    action: str
    condition: Column | None
    values: dict[str, Column] | None


@dataclass(frozen=True)
class RowLevelStatement:
    """A statement of a session: its table, the options to read it, and what ``RowLevelPlan.java`` knows of it."""

    jvm: Jvm
    spark: SparkSession
    table: Table
    options: dict[str, str]
    session: Any
    plan: Any

    @property
    def condition(self) -> Column | None:
        """The condition of WHERE or ON."""
        return _column(self.plan.condition())

    @property
    def values(self) -> dict[str, Column]:
        """The new value of each column that UPDATE changes."""
        return _values(self.plan.assignments())

    @property
    def source(self) -> DataFrame:
        """The source of MERGE INTO."""
        return self.jvm.frame(self.plan.source(self.session))

    @property
    def clauses(self) -> list[Clause]:
        """The clauses of MERGE INTO, in their order."""
        return [
            Clause(rows, action, _column(condition), None if values is None else _values(values))
            for rows, action, condition, values in self.plan.clauses()
        ]

    def bind(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the target so that the statement's columns refer to them."""
        return self.jvm.frame(self.plan.bind(self.session, rows._jdf))


def delete_rows(statement: RowLevelStatement) -> Counts:
    """Run DELETE and return its counts."""
    raise UnsupportedError(f"DELETE FROM {statement.table.path} is not possible in SQL: use PaimonTable.delete")


def update_rows(statement: RowLevelStatement) -> Counts:
    """Run UPDATE and return its counts."""
    raise UnsupportedError(f"UPDATE {statement.table.path} is not possible: insert the changed rows")


def merge_rows(statement: RowLevelStatement) -> Counts:
    """Run MERGE INTO and return its counts."""
    raise UnsupportedError(f"MERGE INTO {statement.table.path} is not possible: insert the changed rows")


def _column(found: Any) -> Column | None:
    return None if found is None else Column(found)


def _values(assignments: Any) -> dict[str, Column]:
    return {str(name): Column(value) for name, value in assignments}
