"""DELETE, UPDATE and MERGE of one table: checked, then written."""

from collections.abc import Mapping

from pyspark.sql import Column

from paimon_core.maintenance.delete import check_deletes
from paimon_core.maintenance.execute import Progress
from paimon_spark.row_level.changes import RowChanges
from paimon_spark.row_level.checks import check_merge, check_updates
from paimon_spark.row_level.rows import Merge, deleted_rows, updated_rows
from paimon_spark.row_level.target import Target
from paimon_spark.row_level.write import change_rows


def delete(target: Target, condition: Column | None, progress: Progress | None = None) -> RowChanges:
    """Delete the rows for which a condition is true; `None`: all. UnsupportedError if the table takes no deletes."""
    check_deletes(target.table.schema)
    return change_rows(target, lambda rows: deleted_rows(rows, condition), "DELETE", progress=progress)


def update(
    target: Target, condition: Column | None, values: Mapping[str, Column], progress: Progress | None = None
) -> RowChanges:
    """Give columns new values in the rows for which a condition is true; `None`: in all.

    Args:
        target: the table.
        condition: of the rows.
        values: by the column's own name, and of its type.
        progress: as of `change_rows`.

    Raises UnsupportedError if the new values would not show.
    """
    check_updates(target.table.schema, set(values), "UPDATE")
    return change_rows(target, lambda rows: updated_rows(rows, condition, values), "UPDATE", progress=progress)


def merge(target: Target, merging: Merge, progress: Progress | None = None) -> RowChanges:
    """Run a MERGE. UnsupportedError for a clause that would not show, InvalidInputError for ambiguous source rows."""
    check_merge(target.table.schema, merging.clauses)
    may_repeat = merging.may_repeat
    return change_rows(target, merging.changed_rows, "MERGE INTO", may_repeat=may_repeat, progress=progress)
