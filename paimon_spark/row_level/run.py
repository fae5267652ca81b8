"""DELETE, UPDATE and MERGE of one table: checked, then written."""

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import Column, DataFrame

from paimon_core import Table
from paimon_core.engine import TRUE, Dropped, Predicate, Progress, collect, drop_counted
from paimon_spark.options import write_request
from paimon_spark.row_level.new_values import NewValues
from paimon_spark.row_level.rows import Merge, deleted_rows, updated_rows
from paimon_spark.row_level.statement_result import RowChanges
from paimon_spark.row_level.supported_statements import check_delete, check_merge, check_updates
from paimon_spark.row_level.target import Target, TargetRows
from paimon_spark.row_level.write import RowStatement, change_rows


def delete(
    target: Target,
    condition: Column | None,
    progress: Progress | None = None,
    partitions: Predicate | None = None,
) -> RowChanges:
    """Delete the rows for which a condition is true; `None`: all. UnsupportedError if the table takes no deletes.

    Args:
        target: the table.
        condition: of the rows.
        progress: as of `change_rows`.
        partitions: a bound predicate on partition columns, equal to the condition: these partitions are dropped unread
            where metadata know the number of their rows. `None`: there is none.
    """
    check_delete(target.table.schema, "DELETE")
    with collect() as metrics:
        dropped = None if partitions is None else _dropped(target, partitions)
    if dropped is not None:
        return RowChanges(num_deleted_rows=dropped.rows, snapshot=dropped.snapshot, metrics=metrics)
    return change_rows(target, RowStatement("DELETE", lambda rows: deleted_rows(rows, condition)), progress)


def update(target: Target, condition: Column | None, values: NewValues, progress: Progress | None = None) -> RowChanges:
    """Give columns new values in the rows for which a condition is true; `None`: in all.

    Args:
        target: the table.
        condition: of the rows.
        values: the new values.
        progress: as of `change_rows`.

    Raises UnsupportedError if the new values would not show.
    """
    columns = frozenset(values.names)
    check_updates(target.table.schema, columns, "UPDATE")
    statement = RowStatement(
        "UPDATE", lambda rows: updated_rows(_only(rows, target, columns), condition, values), columns
    )
    return change_rows(target, statement, progress)


def merge(target: Target, merging: Merge, progress: Progress | None = None) -> RowChanges:
    """Run a MERGE. UnsupportedError for a clause that would not show, InvalidInputError for ambiguous source rows."""
    check_merge(target.table.schema, merging.clauses)
    updates = (clause.values for clause in merging.clauses if clause.action == "update")
    columns = {name for values in updates if values is not None for name in values.names}
    inserts = any(clause.action == "insert" for clause in merging.clauses)

    def changes(rows: TargetRows) -> DataFrame:
        return merging.changed_rows(rows if inserts else _only(rows, target, columns))

    return change_rows(target, RowStatement("MERGE INTO", changes, columns, merging.may_repeat), progress)


def _dropped(target: Target, partitions: Predicate) -> Dropped | None:
    request = write_request({**target.options, **target.commit}, target.table.schema.names)
    every = partitions == TRUE
    return drop_counted(
        target.table.store, None if every else partitions, request.commit_user, request.properties or None
    )


def describe_changes(table: Table) -> str:
    """Return in a few words how the rows of a table are changed."""
    traits = table.store.traits
    if traits.keyed:
        return "changed rows are written with their kinds"
    if traits.data_evolution:
        return "changed columns are written to files of their own"
    if traits.deletion_vectors:
        return "old rows are added to deletion vectors"
    return "files that hold changed rows are written again"


def _only(rows: TargetRows, target: Target, changed: Collection[str]) -> TargetRows:
    """Return the rows without columns that need not be written: files of some columns can be added to some tables."""
    if not target.table.store.traits.data_evolution:
        return rows
    return replace(rows, columns=tuple(name for name in rows.columns if name in changed))
