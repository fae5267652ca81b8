"""DELETE, UPDATE and MERGE of one table: check the statement, then write the changes."""

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import Column, DataFrame

from paimon_core import RowChanges, Table
from paimon_core.engine import TRUE, Dropped, Predicate, Progress, collect, drop_counted
from paimon_spark.options import write_request
from paimon_spark.row_level.new_values import NewValues
from paimon_spark.row_level.rows import Merge, deleted_rows, updated_rows
from paimon_spark.row_level.supported_statements import check_delete, check_merge, check_updates
from paimon_spark.row_level.target import Target, TargetRows
from paimon_spark.row_level.write import RowStatement, change_rows


def delete(
    target: Target,
    condition: Column | None,
    progress: Progress | None = None,
    partitions: Predicate | None = None,
) -> RowChanges:
    """Delete the rows for which a condition is true. Raise UnsupportedError if the table does not accept deletes.

    Args:
        target: the table to change.
        condition: the rows to delete; `None`: all rows.
        progress: as for `change_rows`.
        partitions: a bound predicate on partition columns that is equivalent to the condition. These partitions are
            dropped unread if metadata contain their numbers of rows. `None`: read the rows.
    """
    with collect() as metrics:
        dropped = None if partitions is None else _dropped(target, partitions)
    if dropped is not None:
        return RowChanges(num_deleted_rows=dropped.rows, snapshot=dropped.snapshot, metrics=metrics)
    check_delete(target.table.schema, "DELETE")
    return change_rows(target, RowStatement("DELETE", lambda rows: deleted_rows(rows, condition)), progress)


def update(target: Target, condition: Column | None, values: NewValues, progress: Progress | None = None) -> RowChanges:
    """Set columns to new values in the rows for which a condition is true.

    Args:
        target: the table to change.
        condition: the rows to update; `None`: all rows.
        values: the new values.
        progress: as for `change_rows`.

    Raises UnsupportedError if a merge of the table would discard the new values.
    """
    columns = frozenset(values.names)
    check_updates(target.table.schema, columns, "UPDATE")
    statement = RowStatement(
        "UPDATE", lambda rows: updated_rows(_only(rows, target, columns), condition, values), columns
    )
    return change_rows(target, statement, progress)


def merge(target: Target, merging: Merge, progress: Progress | None = None) -> RowChanges:
    """Run a MERGE.

    Raises UnsupportedError for a clause whose effect a merge of the table would discard, InvalidInputError if several
    source rows match one target row.
    """
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
    """Describe in a few words how statements change the rows of a table."""
    traits = table.store.traits
    if traits.keyed:
        return "changed rows are written with their kinds"
    if traits.data_evolution:
        written = "changed columns are written to files of their own"
        return f"{written}, deleted rows are added to deletion vectors" if traits.deletion_vectors else written
    if traits.deletion_vectors:
        return "old rows are added to deletion vectors"
    return "files with changed rows are rewritten"


def _only(rows: TargetRows, target: Target, changed: Collection[str]) -> TargetRows:
    """Return the rows without unchanged columns, if the table accepts files with only some columns."""
    if not target.table.store.traits.data_evolution:
        return rows
    return replace(rows, columns=tuple(name for name in rows.columns if name in changed))
