"""DELETE, UPDATE and MERGE INTO: the conversion of Spark's analyzed statements to columns and DataFrames."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession

from paimon_core import RowChanges, Table
from paimon_core.engine import TRUE, Predicate, bind, predicate_columns
from paimon_core.errors import UnsupportedError
from paimon_spark.internals import java_rows
from paimon_spark.row_level.new_values import NewValues, OnlyIf
from paimon_spark.row_level.rows import Clause, Merge
from paimon_spark.row_level.run import delete, merge, update
from paimon_spark.row_level.target import Target
from paimon_spark.sql.bridge.conversions import frame_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.pushdown import Tree, exact_predicate
from paimon_spark.sql.writes.target_access import DriverAccess

_INEXACT_ROOTS = ("CHAR", "FLOAT", "DOUBLE")
"""The column types that Spark and the engine compare differently, because of trailing blanks or the sign of zero."""

Counts = Sequence[Sequence[int | None]]
"""One row with the number of affected rows; for MERGE INTO, also the numbers of updated, deleted and inserted rows."""


@dataclass(frozen=True)
class RowLevelStatement:
    """A statement in a session: its table, its read options, and its plan as ``RowLevelPlan.java``.

    ``commit``: the options of its commit.
    """

    jvm: Jvm
    spark: SparkSession
    table: Table
    options: Mapping[str, str]
    session: Any
    plan: Any
    commit: Mapping[str, str] = field(default_factory=dict)

    @property
    def condition(self) -> Column | None:
        """The condition of WHERE or ON."""
        return _column(self.plan.condition())

    @property
    def partitions(self) -> Predicate | None:
        """The condition of DELETE as a predicate on partition columns; `None`: rows must be read."""
        return whole_partitions(json.loads(self.plan.trees()), self.table)

    @property
    def values(self) -> NewValues:
        """The new values of UPDATE."""
        return _StatedValues(self, 0, json.loads(self.plan.assigned()), {})

    @property
    def source(self) -> DataFrame:
        """The source of MERGE INTO."""
        return frame_of(self.jvm, self.plan.source(self.session))

    @property
    def clauses(self) -> list[Clause]:
        """The clauses of MERGE INTO, in their order."""
        clauses = []
        for number, (rows, action, names, positions) in enumerate(json.loads(self.plan.clauses())):
            values = None if names is None else _StatedValues(self, number, names, positions)
            clauses.append(Clause(rows, action, _column(self.plan.condition(number)), values))
        return clauses

    @property
    def target(self) -> Target:
        """The table that the statement changes."""
        return Target(
            self.spark,
            self.table,
            self.options,
            self.bind,
            commit=self.commit,
            access=DriverAccess(),
            metadata=tuple(map(str, self.plan.metadataColumns())),
        )

    def bind(self, rows: DataFrame) -> DataFrame:
        """Bind the columns of the statement to the rows of the target."""
        return frame_of(self.jvm, self.plan.bind(self.session, java_rows(rows)))


@dataclass(frozen=True)
class _StatedValues(NewValues):
    """The new values in a clause of a SQL statement, cast by Spark to the types of the columns."""

    typed: ClassVar[bool] = True
    statement: RowLevelStatement
    clause: int
    columns: Sequence[str]
    positions: Mapping[str, int]

    @property
    def names(self) -> Sequence[str]:
        """The columns to which the clause assigns values."""
        return self.columns

    def of_source(self) -> Mapping[str, int]:
        """See `NewValues`."""
        return self.positions

    def added(self, rows: DataFrame, names: Mapping[str, str], only_if: OnlyIf | None) -> DataFrame:
        """See `NewValues`."""
        stated, decision = self.statement, None if only_if is None else only_if.column
        with_values = stated.plan.withValues(
            stated.session, java_rows(rows), self.clause, json.dumps(dict(names)), decision
        )
        return frame_of(stated.jvm, with_values)


def whole_partitions(trees: Sequence[Tree | None], table: Table) -> Predicate | None:
    """Return the AND of Spark's filters as a predicate on partition columns; `None`: no equivalent predicate exists."""
    schema = table.store.in_microseconds().schema
    predicate = exact_predicate(trees, schema)
    if predicate is None:
        return None
    names = predicate_columns(predicate)
    inexact = any(getattr(schema.field(name).type, "root", "") in _INEXACT_ROOTS for name in names)
    if inexact or not names <= set(schema.partition_keys) or not (names or predicate == TRUE):
        return None
    return predicate if predicate == TRUE else bind(predicate, table.schema.fields)


def delete_rows(statement: RowLevelStatement) -> Counts:
    """Run DELETE and return its counts."""
    changes = delete(statement.target, statement.condition, partitions=statement.partitions)
    return [[changes.num_affected_rows]]


def update_rows(statement: RowLevelStatement) -> Counts:
    """Run UPDATE and return its counts."""
    return [[update(statement.target, statement.condition, statement.values).num_affected_rows]]


def merge_rows(statement: RowLevelStatement) -> Counts:
    """Run MERGE INTO and return its counts."""
    if statement.plan.evolves():
        raise UnsupportedError("MERGE WITH SCHEMA EVOLUTION after WITH is not possible: write the query in USING")
    condition = statement.condition
    assert condition is not None
    changes: RowChanges = merge(statement.target, Merge(statement.source, condition, statement.clauses))
    counts = (changes.num_affected_rows, changes.num_updated_rows, changes.num_deleted_rows, changes.num_inserted_rows)
    return [counts]


def _column(java_column: Any) -> Column | None:
    return None if java_column is None else Column(java_column)
