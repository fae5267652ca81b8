"""The builder of a MERGE, in the shape of Delta's."""

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame

from paimon_core.errors import InvalidInputError
from paimon_spark.row_level.changes import RowChanges
from paimon_spark.row_level.rows import Clause, Merge
from paimon_spark.row_level.statements import merge
from paimon_spark.row_level.target import Target
from paimon_spark.row_level.values import as_column, assigned, stored

_MATCHED, _NOT_MATCHED, _BY_SOURCE = "matched", "not matched", "not matched by source"
_NO_KEYS: Mapping[str, Column] = MappingProxyType({})
Values = Mapping[str, str | Column]


class MergeBuilder:
    """A MERGE of a source into a table. Every method but `execute` returns a builder with one clause more.

    Of the clauses for a row, the first whose condition holds decides. Conditions and values are texts in Spark's SQL or
    Columns; they call the rows by the aliases of table and source.
    """

    def __init__(
        self,
        target: Target,
        alias: str | None,
        source: DataFrame,
        condition: str | Column,
        clauses: tuple[Clause, ...] = (),
    ) -> None:
        self._target, self._alias, self._source = target, alias, source
        self._condition, self._clauses = condition, clauses

    def whenMatchedUpdate(self, condition: str | Column | None = None, set: Values | None = None) -> "MergeBuilder":
        """Give columns of matched rows new values; `set`: the new value of each."""
        return self._with(_MATCHED, "update", condition, self._assigned(set))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Give every column of matched rows the value of the source's column of that name; keys may not change."""
        values, keys = self._all(), self._target.table.schema.primary_keys
        changed = {name: value for name, value in values.items() if name not in keys}
        return self._with(_MATCHED, "update", condition, changed, {key: values[key] for key in keys})

    def whenMatchedDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Delete matched rows."""
        return self._with(_MATCHED, "delete", condition, None)

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Values | None = None
    ) -> "MergeBuilder":
        """Insert rows of the source that match no row; a column without a value gets its default, else NULL."""
        return self._with(_NOT_MATCHED, "insert", condition, self._assigned(values))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Insert rows of the source that match no row, each column from the source's column of that name."""
        return self._with(_NOT_MATCHED, "insert", condition, self._all())

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Values | None = None
    ) -> "MergeBuilder":
        """Give columns of rows that no row of the source matches new values."""
        return self._with(_BY_SOURCE, "update", condition, self._assigned(set))

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> "MergeBuilder":
        """Delete the rows that no row of the source matches."""
        return self._with(_BY_SOURCE, "delete", condition, None)

    def execute(self) -> RowChanges:
        """Run the MERGE in one commit; return the numbers of changed rows, and its snapshot.

        Raises InvalidInputError if there is no clause, or if several rows of the source match one row of the table;
        UnsupportedError for a clause whose effect the table would not show; CommitConflictError if other commits
        changed the same rows during each attempt.
        """
        if not self._clauses:
            raise InvalidInputError("this MERGE does nothing: add a clause, such as whenMatchedUpdateAll()")
        condition = as_column(self._condition)
        assert condition is not None
        return merge(self._target, Merge(self._source, condition, self._clauses))

    def _with(
        self,
        rows: str,
        action: str,
        condition: str | Column | None,
        values: Mapping[str, Column] | None,
        keys: Mapping[str, Column] = _NO_KEYS,
    ) -> "MergeBuilder":
        clause = Clause(rows, action, as_column(condition), values, keys)
        return MergeBuilder(self._target, self._alias, self._source, self._condition, (*self._clauses, clause))

    def _assigned(self, given: Values | None) -> dict[str, Column]:
        return assigned(self._target.table.schema, given or {}, self._alias)

    def _all(self) -> dict[str, Column]:
        """Return the source's column for each column of the table."""
        fields = self._target.table.schema.fields
        by_name = {name.lower(): name for name in self._source.columns}
        missing = [f.name for f in fields if f.name.lower() not in by_name]
        if missing:
            raise InvalidInputError(
                f"the source has no column for {', '.join(missing)} (it has {self._source.columns}): give the values "
                "one by one"
            )
        columns = {f.name: self._source["`" + by_name[f.name.lower()].replace("`", "``") + "`"] for f in fields}
        return {f.name: stored(columns[f.name], f) for f in fields}
