"""The builder of a MERGE, with the methods of Delta's builder."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from paimon_core import RowChanges, TableSchema
from paimon_core.engine import MergeRules
from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import matching_positions
from paimon_spark.merge_schema import merge_columns, with_merged_columns
from paimon_spark.row_level.new_values import SourceValues, as_column, assigned, column_name
from paimon_spark.row_level.rows import Clause, Merge
from paimon_spark.row_level.run import merge
from paimon_spark.row_level.supported_statements import check_merge
from paimon_spark.row_level.target import Target

_MATCHED, _NOT_MATCHED, _BY_SOURCE = "matched", "not matched", "not matched by source"
Values = Mapping[str, str | Column]


@dataclass(frozen=True)
class _When:
    """A WHEN clause as the user wrote it.

    ``values``: the new values; `None`: the clause deletes, or ``every`` is True: it sets all columns from the source.
    """

    rows: str
    action: str
    condition: str | Column | None
    values: Values | None = None
    every: bool = False


@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE of a source into a table. Every method except `execute` returns a builder with one more clause.

    For each row, the first clause whose condition is true applies. Conditions and values are Spark SQL texts or
    Columns, which use the aliases of table and source.
    """

    _target: Target
    _alias: str | None
    _source: DataFrame
    _condition: str | Column
    _rules: Callable[[bool], MergeRules | None] = lambda demanded: None
    """Return the schema changes that options allow, or that the MERGE demands."""
    _clauses: tuple[_When, ...] = ()
    _evolves: bool = False

    def withSchemaEvolution(self) -> "MergeBuilder":
        """Return a builder whose MERGE first adds missing source columns to the table and widens types, as in SQL.

        With whenMatchedUpdateAll or whenNotMatchedInsertAll, it adds all columns of the source, else only columns to
        which a clause assigns a value. See `execute`.
        """
        return replace(self, _evolves=True)

    def whenMatchedUpdate(self, condition: str | Column | None = None, set: Values | None = None) -> "MergeBuilder":
        """Return a builder that sets columns of matched rows.

        `set`: the new value of each column. `condition`: the matched rows to update; `None`: all.
        """
        return self._with(_When(_MATCHED, "update", condition, set or {}))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that sets every column of matched rows to the source column of the same name.

        Keys may not change. `condition`: the matched rows to update; `None`: all.
        """
        return self._with(_When(_MATCHED, "update", condition, every=True))

    def whenMatchedDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that deletes matched rows. `condition`: the matched rows to delete; `None`: all."""
        return self._with(_When(_MATCHED, "delete", condition))

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Values | None = None
    ) -> "MergeBuilder":
        """Return a builder that inserts source rows that match no table row.

        `values`: the value of each column; a column without a value gets its default, or NULL. `condition`: the source
        rows to insert; `None`: all.
        """
        return self._with(_When(_NOT_MATCHED, "insert", condition, values or {}))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that inserts source rows that match no table row, with all columns by name.

        `condition`: the source rows to insert; `None`: all.
        """
        return self._with(_When(_NOT_MATCHED, "insert", condition, every=True))

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Values | None = None
    ) -> "MergeBuilder":
        """Return a builder that sets columns of table rows that no source row matches.

        `set`: the new value of each column. `condition`: the unmatched rows to update; `None`: all.
        """
        return self._with(_When(_BY_SOURCE, "update", condition, set or {}))

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that deletes table rows that no source row matches.

        `condition`: the unmatched rows to delete; `None`: all.
        """
        return self._with(_When(_BY_SOURCE, "delete", condition))

    def execute(self) -> RowChanges:
        """Run the MERGE in one commit; return the numbers of changed rows and the snapshot.

        A schema change is committed first; if the MERGE then fails, the new columns stay. Raises InvalidInputError if
        there is no clause, for an unknown column, or if several source rows match one table row; UnsupportedError for a
        clause whose effect a merge of the table would discard; CommitConflictError if other commits changed the same
        rows during every attempt.
        """
        if not self._clauses:
            raise InvalidInputError("this MERGE has no clause: add one, such as whenMatchedUpdateAll()")
        condition = as_column(self._condition)
        assert condition is not None
        target = self._evolved()
        clauses = [self._clause(when, target.table.schema) for when in self._clauses]
        return merge(target, Merge(self._source, condition, clauses))

    def _with(self, clause: _When) -> "MergeBuilder":
        return replace(self, _clauses=(*self._clauses, clause))

    @property
    def _merge_rules(self) -> MergeRules | None:
        """The schema changes; options without withSchemaEvolution count only if a clause sets all columns."""
        every = any(when.every for when in self._clauses)
        return self._rules(self._evolves) if every or self._evolves else None

    def _evolved(self) -> Target:
        """Change the schema of the target if necessary; return the target. A refused clause changes nothing."""
        rules = self._merge_rules
        if rules is None:
            return self._target
        columns = self._new_columns()
        planned = with_merged_columns(self._target.table, columns, rules)
        if planned is None:
            return self._target
        check_merge(planned.schema, [self._clause(when, planned.schema) for when in self._clauses])
        return replace(self._target, table=merge_columns(self._target.table, columns, rules))

    def _new_columns(self) -> StructType:
        fields = self._source.schema.fields
        if any(when.every for when in self._clauses):
            return StructType(fields)
        named = {column_name(name, self._alias).lower() for when in self._clauses for name in when.values or ()}
        return StructType([field for field in fields if field.name.lower() in named])

    def _clause(self, when: _When, schema: TableSchema) -> Clause:
        condition = as_column(when.condition)
        if when.every:
            positions = self._positions(schema)
            keys = {name: positions[name] for name in schema.primary_keys if name in positions}
            keys = keys if when.action == "update" else {}
            changed = {name: position for name, position in positions.items() if name not in keys}
            return Clause(when.rows, when.action, condition, SourceValues(changed, keys))
        values = None if when.values is None else assigned(schema, when.values, self._alias)
        return Clause(when.rows, when.action, condition, values)

    def _positions(self, schema: TableSchema) -> dict[str, int]:
        """Return the position in the source of each table column; with schema changes the source may lack columns."""
        columns = self._source.columns
        matches = dict(zip(schema.names, matching_positions(schema.names, columns), strict=True))
        missing = [name for name, positions in matches.items() if not positions]
        if missing and self._merge_rules is None:
            raise InvalidInputError(
                f"the source has no column for {', '.join(missing)} (it has {columns}): set each value explicitly"
            )
        repeated = {name for name, number in Counter(columns).items() if number > 1}
        ambiguous = [n for n, at in matches.items() if len(at) > 1 or repeated.intersection(columns[i] for i in at)]
        if ambiguous:
            raise InvalidInputError(
                f"several columns of the source are called {', '.join(ambiguous)} (it has {columns}): set each value "
                "explicitly"
            )
        return {name: positions[0] for name, positions in matches.items() if positions}
