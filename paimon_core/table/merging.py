"""The builder of a MERGE without Spark, and upserts by columns of choice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.operations.row_changes.change_writer import Committed
from paimon_core.operations.row_changes.merge import (
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    SOURCE,
    TARGET,
    Clause,
    Merge,
    SourceColumn,
    matchable_fields,
    merge_rows,
    repeated_key,
)
from paimon_core.operations.row_changes.new_values import Condition, Values, assigned
from paimon_core.operations.row_changes.statement import RowChanges
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import bound_filter
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import fields_from_arrow
from paimon_core.types.columns import ColumnNames, Columns, matching_positions, repeated_names
from paimon_core.types.datatype import DataField, RowType
from paimon_core.types.system_fields import ROW_ID

On: TypeAlias = str | Sequence[str] | Mapping[str, str]
"""The columns that are equal in matching rows: names, or the source column for each column of the table."""

When: TypeAlias = str | Predicate | pc.Expression
"""A condition of a clause, on ``source.x`` and ``target.x``: text or predicate as for reads, or an expression."""

_COLUMN_TEXT = re.compile(r"(?:source|target)\.\w+")


@dataclass(frozen=True)
class _When:
    """A WHEN clause as the user wrote it.

    ``values``: the new values; `None`: the clause deletes, or ``every`` is True: it sets all columns from the source.
    """

    rows: str
    action: str
    condition: When | None
    values: Values | None = None
    every: bool = False


@dataclass(frozen=True)
class MergeBuilder:
    """A MERGE of source rows into a table. Every method except `execute` returns a builder with one more clause.

    For each row, the first clause whose condition is true applies. A condition is a filter as for reads, such as
    ``"source.x > 1 AND target.y IS NULL"``, or an expression of pyarrow over ``pc.field("source", "x")`` and
    ``pc.field("target", "x")``. Values that are computed are such expressions. All other values, also texts, are stored
    as they are.

    Examples:
        >>> import pyarrow as pa
        >>> import pyarrow.compute as pc
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> news = pa.table({"id": [2, 3], "name": ["red ink", "cup"]})
        >>> merge = table.merge(news, on="id").when_matched_update(set={"name": pc.field("source", "name")})
        >>> merge.when_not_matched_insert_all().execute().num_affected_rows
        2
    """

    _store: FileStore = field(repr=False)
    _source: pa.Table = field(repr=False)
    _on: dict[str, str]
    _finish: Callable[[Callable[[], Committed]], RowChanges] = field(repr=False)
    _clauses: tuple[_When, ...] = ()

    def when_matched_update(self, condition: When | None = None, set: Values | None = None) -> MergeBuilder:
        """Return a builder that sets columns of matched rows.

        ``set``: the new value of each column. ``condition``: the matched rows to update; `None`: all.
        """
        return self._with(_When(MATCHED, "update", condition, set or {}))

    def when_matched_update_all(self, condition: When | None = None) -> MergeBuilder:
        """Return a builder that sets every column of matched rows to the source column of the same name.

        Keys may not change. ``condition``: the matched rows to update; `None`: all.
        """
        return self._with(_When(MATCHED, "update", condition, every=True))

    def when_matched_delete(self, condition: When | None = None) -> MergeBuilder:
        """Return a builder that deletes matched rows. ``condition``: the matched rows to delete; `None`: all."""
        return self._with(_When(MATCHED, "delete", condition))

    def when_not_matched_insert(self, condition: When | None = None, values: Values | None = None) -> MergeBuilder:
        """Return a builder that inserts source rows that match no table row.

        ``values``: the value of each column; a column without a value gets its default, or NULL. ``condition``: the
        source rows to insert; `None`: all.
        """
        return self._with(_When(NOT_MATCHED, "insert", condition, values or {}))

    def when_not_matched_insert_all(self, condition: When | None = None) -> MergeBuilder:
        """Return a builder that inserts source rows that match no table row, with all columns by name.

        ``condition``: the source rows to insert; `None`: all.
        """
        return self._with(_When(NOT_MATCHED, "insert", condition, every=True))

    def when_not_matched_by_source_update(
        self, condition: When | None = None, set: Values | None = None
    ) -> MergeBuilder:
        """Return a builder that sets columns of table rows that no source row matches.

        ``set``: the new value of each column. ``condition``: the unmatched rows to update; `None`: all.
        """
        return self._with(_When(NOT_MATCHED_BY_SOURCE, "update", condition, set or {}))

    def when_not_matched_by_source_delete(self, condition: When | None = None) -> MergeBuilder:
        """Return a builder that deletes table rows that no source row matches.

        ``condition``: the unmatched rows to delete; `None`: all.
        """
        return self._with(_When(NOT_MATCHED_BY_SOURCE, "delete", condition))

    def execute(self) -> RowChanges:
        """Run the MERGE in one commit; return the numbers of changed rows and the snapshot.

        Raises InvalidInputError if there is no clause, for an unknown column, or if several source rows match one table
        row; UnsupportedError for a clause whose effect a merge of the table would discard; CommitConflictError if other
        commits changed the same rows during every attempt. After an error the table is unchanged.
        """
        if not self._clauses:
            raise InvalidInputError("this MERGE has no clause: add one, such as when_matched_update_all()")
        merge = Merge(self._source, self._on, [self._clause(when) for when in self._clauses])
        return self._finish(lambda: merge_rows(self._store, merge))

    def _with(self, clause: _When) -> MergeBuilder:
        if clause.condition is not None and not isinstance(clause.condition, str | Predicate | pc.Expression):
            raise InvalidInputError(
                f"a condition of MERGE is a text such as 'source.x > 1', a predicate, or an expression such as "
                f"pc.field('source', 'x') > 1, not {clause.condition!r}"
            )
        return replace(self, _clauses=(*self._clauses, clause))

    def _condition(self, when: _When) -> Condition | None:
        """Return the condition of a clause; a filter is bound to the sides that its rows have."""
        if when.condition is None or isinstance(when.condition, pc.Expression):
            return when.condition
        sides = []
        if when.rows != NOT_MATCHED:
            sides.append(DataField(0, TARGET, RowType(matchable_fields(self._store.schema))))
        if when.rows != NOT_MATCHED_BY_SOURCE:
            sides.append(DataField(1, SOURCE, RowType(fields_from_arrow(self._source.schema))))
        return bound_filter(when.condition, sides)

    def _clause(self, when: _When) -> Clause:
        schema, condition = self._store.schema, self._condition(when)
        if when.every:
            columns = _columns_of_source(schema, self._source.column_names)
            keys = {name: columns[name] for name in schema.primary_keys} if when.action == "update" else {}
            values: dict[str, Any] = {n: SourceColumn(c) for n, c in columns.items() if n not in keys}
            return Clause(when.rows, when.action, condition, values, keys)
        values = {} if when.values is None else assigned(schema, when.values)
        for name, value in (when.values or {}).items():
            if isinstance(value, str) and _COLUMN_TEXT.fullmatch(value):
                side, _, column = value.partition(".")
                raise InvalidInputError(
                    f"the new value of {name} is the text {value!r}, not a column: write pc.field({side!r}, "
                    f"{column!r}) for the column, or pa.scalar({value!r}) for the text"
                )
        return Clause(when.rows, when.action, condition, values, {})


def merge_builder(
    store: FileStore, source: pa.Table, on: On, finish: Callable[[Callable[[], Committed]], RowChanges]
) -> MergeBuilder:
    """Return a builder without clauses.

    Args:
        store: the table to change.
        source: the source rows.
        on: the columns that are equal in matching rows.
        finish: runs the MERGE and the work after its commit.

    Raises InvalidInputError for columns that the table or the source lacks, and for no column.
    """
    _check_unique(source.column_names)
    return MergeBuilder(store, source, _on_columns(store.schema, source.column_names, on), finish)


def upsert_merge(store: FileStore, source: pa.Table, on: On) -> Merge:
    """Return the MERGE of an upsert: update the given columns of rows that match, and insert the other rows.

    Raises InvalidInputError for a column that the table lacks, and for several source rows with the same values of
    the columns ``on``.
    """
    schema, names = store.schema, source.column_names
    _check_unique(names)
    equal = _on_columns(schema, names, on)
    if ROW_ID.name in equal:
        raise UnsupportedError(
            f"upsert() cannot find rows by {ROW_ID.name}: a row that it inserts gets a new id, so repeating the upsert "
            "would insert it again. Use merge() with when_matched_update(), or update_columns()"
        )
    of_table = Columns(schema.fields, "the table")
    columns = {of_table.find(name).name: name for name in names}
    if len(columns) < len(names):
        raise InvalidInputError(f"several columns of the data are one column of the table: {names}; rename one")
    fixed = {*schema.primary_keys}
    if store.traits.keyed or store.traits.data_evolution:
        fixed |= {*schema.partition_keys}
    values: dict[str, Any] = {name: SourceColumn(column) for name, column in columns.items()}
    keys = {name: columns[name] for name in columns if name in fixed and name not in equal}
    changed = {name: value for name, value in values.items() if name not in fixed and name not in equal}
    clauses = [Clause(MATCHED, "update", None, changed, keys)] if changed or keys else []
    merge = Merge(source, equal, [*clauses, Clause(NOT_MATCHED, "insert", None, values, {})], "upsert")
    repeated = repeated_key(store, merge)
    if repeated is not None:
        shown = ", ".join(f"{name} = {value!r}" for name, value in repeated.items())
        raise InvalidInputError(
            f"several rows of the data have {shown}: an upsert takes one row for each key; remove the others"
        )
    return merge


def _on_columns(schema: TableSchema, names: Sequence[str], on: On) -> dict[str, str]:
    """Return the source column for each column of the table in ``on``."""
    given = [on] if isinstance(on, str) or not isinstance(on, Iterable) else list(on)
    sources = list(on.values()) if isinstance(on, Mapping) else given
    if not all(isinstance(name, str) for name in (*given, *sources)):
        raise InvalidInputError(f"'on' is {on!r}: pass a name, a list of names, or {{table column: source column}}")
    pairs = dict(zip(given, sources, strict=True))
    found: dict[str, str] = {}
    matchable, in_source = Columns(matchable_fields(schema), "the table"), ColumnNames(names)
    for name, of_source in pairs.items():
        column = matchable.find(name).name
        positions = in_source.positions(of_source)
        if len(positions) != 1:
            raise InvalidInputError(
                f"the source has {'no' if not positions else 'several'} column {of_source!r}; it has {list(names)}"
            )
        if column in found:
            raise InvalidInputError(f"'on' names column {column!r} twice: name each column once")
        found[column] = names[positions[0]]
    if not found:
        raise InvalidInputError("'on' names no column: name the columns that are equal in matching rows")
    return found


def _check_unique(names: Sequence[str]) -> None:
    if repeated := repeated_names(names):
        raise InvalidInputError(f"the source has column {repeated[0]!r} more than once: give every column one name")


def _columns_of_source(schema: TableSchema, names: Sequence[str]) -> dict[str, str]:
    """Return the source column for each column of the table."""
    matches = dict(zip(schema.names, matching_positions(schema.names, names), strict=True))
    missing = [name for name, positions in matches.items() if not positions]
    if missing:
        raise InvalidInputError(
            f"the source has no column for {', '.join(missing)} (it has {list(names)}): set each value explicitly"
        )
    ambiguous = [name for name, positions in matches.items() if len(positions) > 1]
    if ambiguous:
        raise InvalidInputError(
            f"several columns of the source are called {', '.join(ambiguous)} (it has {list(names)}): set each value "
            "explicitly"
        )
    return {name: names[positions[0]] for name, positions in matches.items()}
