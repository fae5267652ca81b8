"""The rows that a statement writes, each with its kind: ``-D``, ``+U``, ``+I``, or empty for an unchanged row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from paimon_core.engine import SEVERAL
from paimon_core.types.columns import free_prefix
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.internals import select_texts
from paimon_spark.row_level.new_values import NewValues, OnlyIf, SourceValues
from paimon_spark.row_level.target import TargetRows
from paimon_spark.row_level.texts import NumberedRows, stored, text_of

DELETED, UPDATED, INSERTED, MATCHED = "-D", "+U", "+I", ""
_PREFIX = "__paimon_"
_KINDS = {"update": UPDATED, "delete": DELETED, "insert": INSERTED}

Changes = Callable[[TargetRows], DataFrame]
"""A function from the rows of the table to the rows to write, with their columns, positions and kind."""


@dataclass(frozen=True)
class Clause:
    """A WHEN clause of MERGE.

    ``rows``: "matched", "not matched" or "not matched by source"; ``action``: "update", "delete" or "insert";
    ``condition``: `None`: always true; ``values``: the new values of the changed columns, `None`: the clause deletes.
    """

    rows: str
    action: str
    condition: Column | None
    values: NewValues | None


def deleted_rows(target: TargetRows, condition: Column | None) -> DataFrame:
    """Return the rows that DELETE writes; only positions and kind if rows have positions."""
    matching = target.where(condition)
    rows = NumberedRows.of(matching.frame)
    columns = () if target.positions else target.columns
    texts = matching.texts()
    selected = {name: texts[name] for name in (*columns, *target.positions)}
    return rows.selected({**selected, ROW_KIND.name: text_of(DELETED)})


def updated_rows(target: TargetRows, condition: Column | None, values: NewValues) -> DataFrame:
    """Return the rows that UPDATE writes."""
    matching = target.where(condition)
    prefix = free_prefix(_PREFIX, matching.frame.columns)
    names = {name: f"{prefix}{number}" for number, name in enumerate(values.names)}
    texts = matching.texts()
    rows = NumberedRows.of(values.added(matching.frame, names, None))
    added = {name: f"c{number}" for number, name in enumerate(rows.schema.names)}
    columns = {}
    for name in target.columns:
        value = added[names[name]] if name in names else None
        if value is not None and not values.typed:
            value = stored(value, rows.type_of(value), target.fields[name])
        columns[name] = target.changed(name, texts[name], value)
    positions = {name: texts[name] for name in target.positions}
    return rows.selected({**columns, **positions, ROW_KIND.name: text_of(UPDATED)})


@dataclass(frozen=True)
class Merge:
    """A MERGE: its source, the condition of ON, and its clauses. The first clause that applies to a row decides."""

    source: DataFrame
    condition: Column
    clauses: Sequence[Clause]

    @property
    def may_repeat(self) -> bool:
        """True if several source rows may match one target row: the only action is then an unconditional delete."""
        matched = [clause for clause in self.clauses if clause.rows == "matched"]
        return not matched or (len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None)

    @property
    def shows_matched(self) -> bool:
        """True if unchanged matched rows are needed too, to detect target rows with several matches."""
        return not self.may_repeat and all(c.condition is not None for c in self.clauses if c.rows == "matched")

    def changed_rows(self, target: TargetRows) -> DataFrame:
        """Return the rows that MERGE writes.

        With positions, the result may repeat a row, which the writer counts. Without positions, the job fails if
        several source rows match one target row.
        """
        return _Joined.of(self, target).changed_rows()


@dataclass(frozen=True)
class _Joined:
    """The joined rows of target and source of a MERGE, each with the number of the clause that applies.

    ``action``: the column of the clause number, NULL: no clause; ``both``: a condition, true for a target row joined
    with a source row; ``values``: for each clause, the new value of each column in the column's type; ``keys``: for
    each clause, the values that must equal the primary key columns.
    """

    merge: Merge
    target: TargetRows
    rows: NumberedRows
    action: str
    both: str
    values: Sequence[dict[str, str]]
    keys: Sequence[dict[str, str]]

    @staticmethod
    def of(merge: Merge, target: TargetRows) -> "_Joined":
        """Join the rows, and evaluate the new values of each clause for the rows to which it applies."""
        target_columns, source_columns = target.frame.columns, merge.source.columns
        prefix = free_prefix(_PREFIX, [*target_columns, *source_columns])
        action, frame = f"{prefix}action", _joined(merge, target, prefix)
        names: list[dict[str, str]] = []
        for number, clause in enumerate(merge.clauses):
            changed = () if clause.values is None else clause.values.names
            direct = {} if clause.values is None else clause.values.of_source()
            columns = [name for name in changed if name not in direct]
            names.append({name: f"{prefix}{number}_{n}" for n, name in enumerate(columns)})
            if clause.values is not None and columns:
                frame = clause.values.added(frame, names[-1], OnlyIf(action, number))
        rows = NumberedRows.of(frame)
        at = {name: f"c{n}" for n, name in enumerate(rows.schema.names)}
        first = len(target_columns) + 1  # the first source column
        in_target, in_source = f"c{len(target_columns)}", f"c{first + len(source_columns)}"
        values, keys = [], []
        for clause, added in zip(merge.clauses, names, strict=True):
            direct = {} if clause.values is None else clause.values.of_source()
            texts = {name: f"c{first + n}" for name, n in direct.items()}
            texts.update((name, at[free]) for name, free in added.items())
            equal = clause.values.keys if isinstance(clause.values, SourceValues) else {}
            typed = clause.values is not None and clause.values.typed
            values.append(texts if typed else _stored_all(texts, rows, target))
            keys.append(_stored_all({name: f"c{first + n}" for name, n in equal.items()}, rows, target))
        both = f"{in_target} IS NOT NULL AND {in_source} IS NOT NULL"
        return _Joined(merge, target, rows, at[action], both, values, keys)

    def changed_rows(self) -> DataFrame:
        """Return the rows that MERGE writes."""
        target, checked, written = self.target, self, f"{self.action} IS NOT NULL"
        if not target.positions:
            checked = self._checked()
            written = f"{checked.action} IS NOT NULL"
        elif self.merge.shows_matched:
            written = f"{written} OR {self.both}"
        texts = target.texts()
        columns = {name: checked._decided(name, texts[name]) for name in target.columns}
        positions = {name: texts[name] for name in target.positions}
        numbered = enumerate(clause.action for clause in self.merge.clauses)
        kinds = " ".join(f"WHEN {number} THEN {text_of(_KINDS[action])}" for number, action in numbered)
        kind = f"CASE {checked.action} {kinds} ELSE {text_of(MATCHED)} END"
        rows = NumberedRows(checked.rows.frame.where(written), checked.rows.schema)
        return rows.selected({**columns, **positions, ROW_KIND.name: kind})

    def _checked(self) -> "_Joined":
        """Return the rows with each target row once; the job fails if several source rows match a target row."""
        merge, frame = self.merge, self.rows.frame
        if merge.may_repeat and not any(clause.rows == "matched" for clause in merge.clauses):
            return self
        texts = self.target.texts()
        identity = ", ".join(texts[name] for name in self.target.identity)
        frame = select_texts(frame, ["*", "monotonically_increasing_id() AS number"])
        of_row = f"PARTITION BY {identity}, CASE WHEN NOT ({self.both}) THEN number END"
        if merge.may_repeat:
            first = f"row_number() OVER ({of_row} ORDER BY number) AS nth"
            frame, action = select_texts(frame, ["*", first]).where("nth = 1"), self.action
        else:
            matches = f"sum(CAST({self.both} AS INT)) OVER ({of_row}) AS matches"
            several = f"matches > 1 THEN CAST(raise_error({text_of(SEVERAL)}) AS INT)"
            frame, action = select_texts(frame, ["*", matches]), "action"
            frame = select_texts(frame, ["*", f"CASE WHEN {several} ELSE {self.action} END AS action"])
        return _Joined(
            merge, self.target, NumberedRows(frame, self.rows.schema), action, self.both, self.values, self.keys
        )

    def _decided(self, name: str, old: str) -> str:
        """Return the value of a column after the clause that applies to the row."""
        cases = []
        for number, clause in enumerate(self.merge.clauses):
            value = self.values[number].get(name)
            if clause.action == "update":
                value = self.target.changed(name, old, value, self.keys[number].get(name))
            if value is not None and value != old:
                cases.append(f"WHEN {number} THEN {value}")
        return f"CASE {self.action} {' '.join(cases)} ELSE {old} END" if cases else old


def _joined(merge: Merge, target: TargetRows, prefix: str) -> DataFrame:
    """Join the rows of target and source.

    The columns are: the target's columns, ``target`` (true for its rows), the source's columns, ``source`` (true for
    its rows), and ``action``, the number of the clause that applies, NULL: no clause. `prefix`: the prefix of the names
    of added columns.
    """
    in_target, in_source = f"{prefix}target", f"{prefix}source"
    kinds = {clause.rows for clause in merge.clauses}
    how = {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}
    joined = target.frame.withColumn(in_target, F.lit(True)).join(
        merge.source.withColumn(in_source, F.lit(True)),
        merge.condition,
        how["not matched" in kinds, "not matched by source" in kinds],
    )
    sides = {"matched": (True, True), "not matched": (False, True), "not matched by source": (True, False)}
    action = F.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(merge.clauses))):
        tests = zip((in_target, in_source), sides[clause.rows], strict=True)
        applies = F.expr(" AND ".join(f"{name} IS {'NOT ' if joined_side else ''}NULL" for name, joined_side in tests))
        if clause.condition is not None:
            applies = applies & F.coalesce(clause.condition, F.lit(False))
        action = F.when(applies, F.lit(number)).otherwise(action)
    return joined.withColumn(f"{prefix}action", action)


def _stored_all(values: dict[str, str], rows: NumberedRows, target: TargetRows) -> dict[str, str]:
    """Cast numbered columns to the types of the table columns for which they are new values."""
    return {name: stored(value, rows.type_of(value), target.fields[name]) for name, value in values.items()}
