"""The rows that a statement writes, each with its kind: ``-D``, ``+U``, ``+I``, or empty for a row that stays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.row_level.target import IN_TARGET, TargetRows

DELETED, UPDATED, INSERTED, MATCHED = "-D", "+U", "+I", ""
SEVERAL = "MERGE INTO: several source rows match one row of the target; make the source unique by the columns of ON"
_SOURCE, _ACTION, _NUMBER = "__paimon_source", "__paimon_action", "__paimon_number"
_KINDS = {"update": UPDATED, "delete": DELETED, "insert": INSERTED}

Changes = Callable[[TargetRows], DataFrame]
"""A function from the rows of the table to the rows to write: their columns, their positions and their kind."""


@dataclass(frozen=True)
class Clause:
    """A WHEN of MERGE.

    ``rows``: "matched", "not matched" or "not matched by source"; ``action``: "update", "delete" or "insert";
    ``values``: the new value of each column that changes, `None`: the clause deletes. ``keys``: the value that columns
    of the primary key must have already; the job fails for another.
    """

    rows: str
    action: str
    condition: Column | None
    values: Mapping[str, Column] | None
    keys: Mapping[str, Column] = field(default_factory=dict)


def deleted_rows(target: TargetRows, condition: Column | None) -> DataFrame:
    """Return the rows that DELETE writes; only their positions if they have some."""
    found = target.where(condition)
    columns = () if target.positions else target.columns
    return found.frame.select(*map(found.column, (*columns, *target.positions)), F.lit(DELETED).alias(ROW_KIND.name))


def updated_rows(target: TargetRows, condition: Column | None, values: Mapping[str, Column]) -> DataFrame:
    """Return the rows that UPDATE writes."""
    found = target.where(condition)
    columns = [target.changed(name, values.get(name)).alias(name) for name in target.columns]
    positions = map(found.column, target.positions)
    return found.frame.select(*columns, *positions, F.lit(UPDATED).alias(ROW_KIND.name))


@dataclass(frozen=True)
class Merge:
    """A MERGE: its source, the condition of ON, and its clauses, of which the first that holds decides about a row."""

    source: DataFrame
    condition: Column
    clauses: Sequence[Clause]

    @property
    def may_repeat(self) -> bool:
        """True if several source rows may match one target row: it is deleted once, whichever of them says so."""
        matched = [clause for clause in self.clauses if clause.rows == "matched"]
        return not matched or (len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None)

    @property
    def _shows_matched(self) -> bool:
        """True if matched rows that stay are needed, to find those that several source rows match."""
        return not self.may_repeat and all(c.condition is not None for c in self.clauses if c.rows == "matched")

    def changed_rows(self, target: TargetRows) -> DataFrame:
        """Return the rows that MERGE writes.

        A row with a position may be in it several times: the writer counts it. Without positions, a target row that
        several source rows match fails the job.
        """
        joined = self._joined(target)
        columns = [self._decided(target, name).alias(name) for name in target.columns]
        kind = F.lit(MATCHED)  # element_at(kinds, NULL) would be no NULL: in ANSI mode Spark takes it for a kind
        for number, clause in enumerate(self.clauses):
            kind = F.when(F.col(_ACTION) == number, F.lit(_KINDS[clause.action])).otherwise(kind)
        wanted = F.col(_ACTION).isNotNull()
        if not target.positions:
            return self._checked(target, joined).where(wanted).select(*columns, kind.alias(ROW_KIND.name))
        if self._shows_matched:
            wanted = wanted | _both()
        return joined.where(wanted).select(*columns, *map(target.column, target.positions), kind.alias(ROW_KIND.name))

    def _joined(self, target: TargetRows) -> DataFrame:
        """Return the rows of target and source, with the number of the clause that decides, NULL: none."""
        kinds = {clause.rows for clause in self.clauses}
        how = {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}
        source = self.source.withColumn(_SOURCE, F.lit(True))
        joined = target.frame.join(
            source, self.condition, how["not matched" in kinds, "not matched by source" in kinds]
        )
        here = {"matched": (True, True), "not matched": (False, True), "not matched by source": (True, False)}
        action = F.lit(None).cast("int")
        for number, clause in reversed(list(enumerate(self.clauses))):
            in_target, in_source = here[clause.rows]
            applies = F.col(IN_TARGET).isNotNull() if in_target else F.col(IN_TARGET).isNull()
            applies = applies & (F.col(_SOURCE).isNotNull() if in_source else F.col(_SOURCE).isNull())
            if clause.condition is not None:
                applies = applies & F.coalesce(clause.condition, F.lit(False))
            action = F.when(applies, F.lit(number)).otherwise(action)
        return joined.withColumn(_ACTION, action)

    def _checked(self, target: TargetRows, joined: DataFrame) -> DataFrame:
        """Return the rows so that each target row is there once; the job fails for one that several rows match."""
        unmatched = F.when(_both(), F.lit(None)).otherwise(F.col(_NUMBER))
        of_row = Window.partitionBy(*map(target.column, target.identity), unmatched)
        numbered = joined.withColumn(_NUMBER, F.monotonically_increasing_id())
        if self.may_repeat:
            if not any(clause.rows == "matched" for clause in self.clauses):
                return joined
            first = F.row_number().over(of_row.orderBy(_NUMBER)) == 1
            return numbered.withColumn(_NUMBER, first).where(F.col(_NUMBER))
        matches = F.sum(_both().cast("int")).over(of_row)
        checked = F.when(matches > 1, F.raise_error(F.lit(SEVERAL)).cast("int")).otherwise(F.col(_ACTION))
        return numbered.withColumn(_ACTION, checked)

    def _decided(self, target: TargetRows, name: str) -> Column:
        """Return the value of a column after the clause that decides about the row."""
        found = target.column(name)
        for number, clause in enumerate(self.clauses):
            value = None if clause.values is None else clause.values.get(name)
            if clause.action == "update":
                value = target.changed(name, value, clause.keys.get(name))
            if value is not None:
                found = F.when(F.col(_ACTION) == number, value).otherwise(found)
        return found


def _both() -> Column:
    return F.col(IN_TARGET).isNotNull() & F.col(_SOURCE).isNotNull()
