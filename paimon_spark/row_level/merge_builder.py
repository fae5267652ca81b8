"""The builder of a MERGE, in the shape of Delta's."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from paimon_core import TableSchema
from paimon_core.engine import MergeRules
from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import matching_positions
from paimon_spark.merge_schema import merge_columns, with_merged_columns
from paimon_spark.row_level.new_values import SourceValues, as_column, assigned, column_name
from paimon_spark.row_level.rows import Clause, Merge
from paimon_spark.row_level.run import merge
from paimon_spark.row_level.statement_result import RowChanges
from paimon_spark.row_level.supported_statements import check_merge
from paimon_spark.row_level.target import Target

_MATCHED, _NOT_MATCHED, _BY_SOURCE = "matched", "not matched", "not matched by source"
Values = Mapping[str, str | Column]


@dataclass(frozen=True)
class _When:
    """A clause as it was given. ``values``: `None`: it deletes; ``every``: each column of the source is a value."""

    rows: str
    action: str
    condition: str | Column | None
    values: Values | None = None
    every: bool = False


@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE of a source into a table. Every method but `execute` returns a builder with one clause more.

    Of the clauses for a row, the first whose condition holds decides. Conditions and values are texts in Spark's SQL or
    Columns; they call the rows by the aliases of table and source.
    """

    _target: Target
    _alias: str | None
    _source: DataFrame
    _condition: str | Column
    _rules: Callable[[bool], MergeRules | None] = lambda demanded: None
    """The changes of the schema that options allow, or that are `demanded`."""
    _clauses: tuple[_When, ...] = ()
    _evolves: bool = False

    def withSchemaEvolution(self) -> "MergeBuilder":
        """Return a builder whose MERGE first gives the table the columns of the source that it lacks, and wider types.

        As in SQL; see `execute`.

        With whenMatchedUpdateAll or whenNotMatchedInsertAll these are all columns of the source, else those that
        clauses give a value.
        """
        return replace(self, _evolves=True)

    def whenMatchedUpdate(self, condition: str | Column | None = None, set: Values | None = None) -> "MergeBuilder":
        """Return a builder that gives columns of matched rows new values.

        `set`: the new value of each. `condition` chooses the rows; `None`: all of them.
        """
        return self._with(_When(_MATCHED, "update", condition, set or {}))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that gives every column of matched rows the value of the source's column of that name.

        Keys may not change. `condition` chooses the rows; `None`: all of them.
        """
        return self._with(_When(_MATCHED, "update", condition, every=True))

    def whenMatchedDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that deletes matched rows. `condition` chooses the rows; `None`: all of them."""
        return self._with(_When(_MATCHED, "delete", condition))

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Values | None = None
    ) -> "MergeBuilder":
        """Return a builder that inserts rows of the source that match no row.

        `values`: of the columns; one without a value gets its default, else NULL. `condition` chooses the rows; `None`:
        all of them.
        """
        return self._with(_When(_NOT_MATCHED, "insert", condition, values or {}))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that inserts rows of the source that match no row, with all columns of these names.

        `condition` chooses the rows; `None`: all of them.
        """
        return self._with(_When(_NOT_MATCHED, "insert", condition, every=True))

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Values | None = None
    ) -> "MergeBuilder":
        """Return a builder that gives columns of rows that no row of the source matches new values.

        `set`: the new value of each. `condition` chooses the rows; `None`: all of them.
        """
        return self._with(_When(_BY_SOURCE, "update", condition, set or {}))

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Return a builder that deletes the rows that no row of the source matches.

        `condition` chooses the rows; `None`: all of them.
        """
        return self._with(_When(_BY_SOURCE, "delete", condition))

    def execute(self) -> RowChanges:
        """Run the MERGE in one commit; return the numbers of changed rows, and its snapshot.

        A change of the schema comes first, in a version of its own; if the MERGE then fails, the columns stay.
        Raises InvalidInputError if there is no clause, for an unknown column, or if several rows of the source match
        one row of the table; UnsupportedError for a clause whose effect the table would not show; CommitConflictError
        if other commits changed the same rows during each attempt.
        """
        if not self._clauses:
            raise InvalidInputError("this MERGE does nothing: add a clause, such as whenMatchedUpdateAll()")
        condition = as_column(self._condition)
        assert condition is not None
        target = self._evolved()
        clauses = [self._clause(when, target.table.schema) for when in self._clauses]
        return merge(target, Merge(self._source, condition, clauses))

    def _with(self, clause: _When) -> "MergeBuilder":
        return replace(self, _clauses=(*self._clauses, clause))

    @property
    def _merge_rules(self) -> MergeRules | None:
        """The changes of the schema; options alone allow them where every column of the source is a value."""
        every = any(when.every for when in self._clauses)
        return self._rules(self._evolves) if every or self._evolves else None

    def _evolved(self) -> Target:
        """Return the target after its schema changed. A clause that is refused changes nothing."""
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
        given = None if when.values is None else assigned(schema, when.values, self._alias)
        return Clause(when.rows, when.action, condition, given)

    def _positions(self, schema: TableSchema) -> dict[str, int]:
        """Return the source's column for each column of the table; with changes of the schema it may lack some."""
        given = self._source.columns
        found = dict(zip(schema.names, matching_positions(schema.names, given), strict=True))
        missing = [name for name, positions in found.items() if not positions]
        if missing and self._merge_rules is None:
            raise InvalidInputError(
                f"the source has no column for {', '.join(missing)} (it has {given}): give the values one by one"
            )
        twice = {name for name, number in Counter(given).items() if number > 1}
        several = [name for name, own in found.items() if len(own) > 1 or twice.intersection(given[n] for n in own)]
        if several:
            raise InvalidInputError(
                f"several columns of the source are called {', '.join(several)} (it has {given}): give the values one "
                "by one"
            )
        return {name: positions[0] for name, positions in found.items() if positions}
