"""DELETE, UPDATE and MERGE INTO: Spark's analysed statements as columns and DataFrames."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from paimon_core.commit.retry import retry_on_conflict
from paimon_core.errors import CommitConflictError, UnsupportedError
from paimon_core.maintenance.delete import RETRIES, check_deletes, shows_all
from paimon_core.options.merge import ROWKIND_FIELD, SEQUENCE_FIELD
from paimon_core.store.traits import TableTraits
from paimon_core.table import Table
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.sql.jvm import Jvm

_TARGET, _SOURCE, _ACTION, _NUMBER = "__paimon_target", "__paimon_source", "__paimon_action", "__paimon_number"
_KINDS = {"update": "+U", "delete": "-D", "insert": "+I"}
_WRITTEN = ("+U", "-D", "+I")
_SEVERAL = "MERGE INTO: several source rows match one row of the target; make the source unique by the columns of ON"

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
    """Run DELETE and return its counts. UnsupportedError for a table without a primary key."""
    _check_keyed(statement.table, "DELETE")
    check_deletes(statement.table.schema)

    def changes(target: DataFrame) -> DataFrame:
        return _where(target, statement.condition).withColumn(ROW_KIND.name, F.lit("-D"))

    return [[sum(write_changes(statement, changes).values())]]


def update_rows(statement: RowLevelStatement) -> Counts:
    """Run UPDATE and return its counts. UnsupportedError for a table whose rows an upsert cannot change."""
    values = statement.values
    _check_updates(statement.table, values, "UPDATE")

    def changes(target: DataFrame) -> DataFrame:
        matching = _where(target, statement.condition)
        columns = [values.get(name, _of(target, name)).alias(name) for name in target.columns]
        return matching.select(*columns, F.lit("+U").alias(ROW_KIND.name))

    return [[sum(write_changes(statement, changes).values())]]


def merge_rows(statement: RowLevelStatement) -> Counts:
    """Run MERGE INTO and return its counts. UnsupportedError for a table whose rows an upsert cannot change."""
    table, clauses = statement.table, statement.clauses
    _check_keyed(table, "MERGE INTO")
    if statement.plan.evolves():
        raise UnsupportedError("MERGE WITH SCHEMA EVOLUTION is not possible: add the columns with ALTER TABLE first")
    for clause in clauses:
        if clause.action == "delete":
            check_deletes(table.schema)
        _check_updates(table, clause.values or {} if clause.action == "update" else {}, "MERGE INTO")
    if table.snapshot() is None:
        raise UnsupportedError(f"MERGE INTO {table.path}, a table without a snapshot, is not possible: use INSERT INTO")
    found = write_changes(statement, lambda target: merged(target, statement.source, statement, clauses))
    updated, deleted, inserted = found["+U"], found["-D"], found["+I"]
    return [[updated + deleted + inserted, updated, deleted, inserted]]


def merged(target: DataFrame, source: DataFrame, statement: RowLevelStatement, clauses: list[Clause]) -> DataFrame:
    """Return the rows that MERGE INTO writes, with their kinds.

    The first clause whose condition holds decides about a row. A target row that several source rows match fails the
    job.
    """
    names = target.columns
    target, source = target.withColumn(_TARGET, F.lit(True)), source.withColumn(_SOURCE, F.lit(True))
    kinds = {clause.rows for clause in clauses}
    how = {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}
    joined = target.join(source, statement.condition, how["not matched" in kinds, "not matched by source" in kinds])
    here = {"matched": (True, True), "not matched": (False, True), "not matched by source": (True, False)}
    action = F.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(clauses))):
        in_target, in_source = here[clause.rows]
        applies = F.col(_TARGET).isNotNull() if in_target else F.col(_TARGET).isNull()
        applies = applies & (F.col(_SOURCE).isNotNull() if in_source else F.col(_SOURCE).isNull())
        if clause.condition is not None:
            applies = applies & F.coalesce(clause.condition, F.lit(False))
        action = F.when(applies, F.lit(number)).otherwise(action)
    columns = [_decided(target, name, clauses).alias(name) for name in names]
    both = F.col(_TARGET).isNotNull() & F.col(_SOURCE).isNotNull()
    keys = [_of(target, key) for key in statement.table.schema.primary_keys]
    single = F.when(both, F.lit(None)).otherwise(F.col(_NUMBER))
    matches = F.sum(both.cast("int")).over(Window.partitionBy(*keys, single))
    checked = F.when(matches > 1, F.raise_error(F.lit(_SEVERAL)).cast("int")).otherwise(F.col(_ACTION))
    kind = F.element_at(F.array(*[F.lit(_KINDS[clause.action]) for clause in clauses]), F.col(_ACTION) + 1)
    numbered = joined.withColumn(_ACTION, action).withColumn(_NUMBER, F.monotonically_increasing_id())
    decided = numbered.withColumn(_ACTION, checked).where(F.col(_ACTION).isNotNull())
    return decided.select(*columns, kind.alias(ROW_KIND.name))


def write_changes(statement: RowLevelStatement, changes: Callable[[DataFrame], DataFrame]) -> Counter[str]:
    """Write the changed rows of the newest snapshot in one commit; return the number of rows of each kind.

    A concurrent commit that touches the same rows makes the statement start again; CommitConflictError at last.
    """
    return retry_on_conflict(lambda: _write_changes(statement, changes), RETRIES)


def _write_changes(statement: RowLevelStatement, changes: Callable[[DataFrame], DataFrame]) -> Counter[str]:
    table, spark = statement.table, statement.spark
    snapshot = table.snapshot()
    if snapshot is None:
        return Counter()
    since = {"scan.snapshot-id": str(snapshot.id)}
    frame = spark.read.format("paimon").options(**statement.options, **shows_all(table.schema), **since).load()
    counts = Observation()
    kinds = {f"n{i}": F.count(F.when(F.col(ROW_KIND.name) == kind, 1)) for i, kind in enumerate(_WRITTEN)}
    rows = changes(statement.bind(frame)).observe(counts, *[count.alias(name) for name, count in kinds.items()])
    write = rows.write.format("paimon").mode("append").options(**statement.options)
    write = write.option("row-kind-column", ROW_KIND.name)
    try:
        write.option("write.unchanged-since", str(snapshot.id)).save()
    except Exception as error:  # a class of Spark, whatever the Python worker raised
        if CommitConflictError.__name__ in str(error):
            raise CommitConflictError(f"cannot change rows of {table.path}: {error}") from error
        raise
    return Counter({kind: counts.get[f"n{i}"] for i, kind in enumerate(_WRITTEN)})


def _decided(target: DataFrame, name: str, clauses: list[Clause]) -> Column:
    """Return the value of a column after the clause that decides about the row."""
    found = _of(target, name)
    for number, clause in enumerate(clauses):
        if clause.values is not None and name in clause.values:
            found = F.when(F.col(_ACTION) == number, clause.values[name]).otherwise(found)
    return found


def _check_keyed(table: Table, verb: str) -> None:
    if not table.schema.primary_keys:
        raise UnsupportedError(
            f"{verb} on {table.path}, a table without a primary key, is not possible in SQL: use PaimonTable.delete, "
            "or INSERT OVERWRITE the partition"
        )


def _check_updates(table: Table, values: dict[str, Column], verb: str) -> None:
    """Raise UnsupportedError for an update that the merge engine would not show, or that moves a row."""
    _check_keyed(table, verb)
    schema, traits = table.schema, TableTraits(table.schema)
    fixed = {*schema.primary_keys, *schema.partition_keys} & set(values)
    if fixed:
        raise UnsupportedError(f"{verb} cannot change {', '.join(sorted(fixed))}: a column of the key or the partition")
    engine, ordered = traits.engine_type.name, schema.options.value(SEQUENCE_FIELD)
    if engine != "deduplicate" or ordered or schema.options.value(ROWKIND_FIELD):
        raise UnsupportedError(
            f"{verb} on {table.path} is not possible: it needs merge engine deduplicate without 'sequence.field' and "
            f"'rowkind.field', found {engine}; insert rows instead"
        )


def _where(rows: DataFrame, condition: Column | None) -> DataFrame:
    return rows if condition is None else rows.where(condition)


def _of(rows: DataFrame, name: str) -> Column:
    return rows["`" + name.replace("`", "``") + "`"]


def _column(found: Any) -> Column | None:
    return None if found is None else Column(found)


def _values(assignments: Any) -> dict[str, Column]:
    return {str(name): Column(value) for name, value in assignments}
