"""ChangeableTable: DELETE, UPDATE, MERGE and upserts of a table, each in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.lazy import deferred
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR
from paimon_core.table.stored_table import StoredTable
from paimon_core.write.input_data import Rows, arrow_table

if TYPE_CHECKING:
    from paimon_core.operations.row_changes.data_evolution import update_columns
    from paimon_core.operations.row_changes.delete import DeletedRows, delete_rows
    from paimon_core.operations.row_changes.merge import merge_rows
    from paimon_core.operations.row_changes.new_values import Values, assigned
    from paimon_core.operations.row_changes.statement import RowChanges
    from paimon_core.operations.row_changes.update import update_rows
    from paimon_core.table.merging import MergeBuilder, On, merge_builder, upsert_merge
    from paimon_core.table.writing import change_rows, expired_after
else:
    update_columns = deferred("paimon_core.operations.row_changes.data_evolution", "update_columns")
    delete_rows = deferred("paimon_core.operations.row_changes.delete", "delete_rows")
    merge_rows = deferred("paimon_core.operations.row_changes.merge", "merge_rows")
    assigned = deferred("paimon_core.operations.row_changes.new_values", "assigned")
    update_rows = deferred("paimon_core.operations.row_changes.update", "update_rows")
    merge_builder = deferred("paimon_core.table.merging", "merge_builder")
    upsert_merge = deferred("paimon_core.table.merging", "upsert_merge")
    change_rows = deferred("paimon_core.table.writing", "change_rows")
    expired_after = deferred("paimon_core.table.writing", "expired_after")

_VIEW = SEPARATOR + READ_OPTIMIZED


class ChangeableTable(StoredTable):
    """A table whose rows can be deleted, updated and merged with other rows."""

    def delete(
        self, filter: str | Predicate, *, progress: Progress | None = None, runner: Runner = LOCAL
    ) -> Snapshot | None:
        """Delete the rows that match, in one commit. Returns `None` if no row matches.

        A filter on partition columns alone drops whole partitions unread. A table without a primary key records
        deletion vectors with ``deletion-vectors.enabled``, and else rewrites the files of the rows. A table with a
        primary key stores a row of kind -D for each row; UnsupportedError if its options ignore rows of this kind.
        ``progress`` and ``runner`` are the arguments of :meth:`compact`, for tables without a primary key. If another
        commit changes the same rows, or the snapshot expires, the search is repeated. After ten attempts it raises
        CommitConflictError or OutOfRangeError. Raises InvalidInputError for an empty ``filter``.
        """
        return self._delete(filter, progress, runner, count_dropped=False).snapshot

    def delete_counted(
        self, filter: str | Predicate, *, progress: Progress | None = None, runner: Runner = LOCAL
    ) -> DeletedRows:
        """Delete the rows that match; return their number and the snapshot. Arguments and errors as for `delete`."""
        return self._delete(filter, progress, runner, count_dropped=True)

    def _delete(
        self, filter: str | Predicate, progress: Progress | None, runner: Runner, *, count_dropped: bool
    ) -> DeletedRows:
        predicate = self._condition(filter)
        if predicate is None:
            raise InvalidInputError("delete() needs a filter; truncate() removes all rows")
        deleted = delete_rows(self._store, predicate, runner=runner, progress=progress, count_dropped=count_dropped)
        expired_after(self._store, deleted.snapshot)
        return deleted

    def update(self, set: Values, where: Filter = None) -> RowChanges:
        """Set columns to new values in the rows that match, in one commit; return their number and the snapshot.

        A table without a primary key gets the changed rows in new files, and the old rows are removed as by `delete`.
        With a primary key, the changed rows are upserted. With ``data-evolution.enabled``, only the changed columns are
        written. Row ids stay.

        Args:
            set: the new value of each column: a Python value, a pyarrow scalar, or an expression of pyarrow over the
                columns of the row, such as ``pc.field("price") * 2``. A text is a value, not an expression.
            where: the rows to update, as text or predicate; `None`: all rows.

        Raises InvalidInputError for an unknown column and a value that it cannot store. Raises UnsupportedError if a
        merge of the table would discard the new values, CommitConflictError if other commits changed the same rows
        during every attempt. After an error the table is unchanged.

        Examples:
            >>> from paimon_core import Table
            >>> table = Table.open("/tmp/warehouse/shop.db/items")
            >>> table.update({"name": "red pen"}, where="id = 1").num_updated_rows
            1
        """
        store = self._writable()
        values, predicate = assigned(store.schema, set), self._condition(where)
        return change_rows(store, lambda: update_rows(store, values, predicate))

    def merge(self, source: Rows, on: On) -> MergeBuilder:
        """Return a builder of a MERGE from ``source``, which `execute` runs in one commit.

        The source is held in memory, the table is read in batches; files that cannot match are not read. A row that
        matches several source rows is an InvalidInputError. NULL equals nothing.

        Args:
            source: the source rows, as for :meth:`write`.
            on: the columns that must be equal: a name, a list of names, or {table column: source column}.

        Raises InvalidInputError for columns that the table or the source lacks.
        """
        store = self._fixed_schema("merge")
        return merge_builder(store, arrow_table(source), on, lambda statement: change_rows(store, statement))

    def upsert(self, data: Rows, on: On) -> RowChanges:
        """Update the rows that have the same values in the columns ``on``, and insert all other rows, in one commit.

        Returns the numbers of changed rows and the snapshot. Columns that ``data`` lacks keep their values in updated
        rows, and get their default or NULL in new rows. A row with NULL in a column of ``on`` is always new. Upserts by
        the primary key alone need no search: see :meth:`write`, which replaces whole rows.

        Args:
            data: the rows, as for :meth:`write`; all are held in memory.
            on: as for :meth:`merge`.

        Raises InvalidInputError if several rows of ``data`` have the same values of ``on``, and if a row would change
        its primary key; the other errors are the same as for :meth:`merge`.
        """
        store = self._fixed_schema("upsert")
        merge = upsert_merge(store, arrow_table(data), on)
        return change_rows(store, lambda: merge_rows(store, merge))

    def update_columns(self, data: Rows) -> Snapshot | None:
        """Update some columns of rows, in one commit. Returns `None` if ``data`` has no row.

        For tables with ``data-evolution.enabled``. ``data`` is as for :meth:`write`, but all rows are held in memory.
        It has ``_ROW_ID``, as a read returned it, and the columns to change; other columns stay unchanged. Raises
        InvalidInputError for ids without a row, CommitConflictError if another commit first changed the same columns of
        the same files, or deleted some of their rows.
        """
        return expired_after(self._store, update_columns(self._writable(), arrow_table(data)))

    # ---- inside

    def _condition(self, filter: Filter) -> Predicate | None:
        """Return a filter on the columns of rows to change; in a table with row ids also on row ids."""
        schema = self._writable().schema
        return bound_filter(filter, (*schema.fields, *tracking_fields(schema)))

    def _fixed_schema(self, method: str) -> FileStore:
        """Return the store to write to. Raises UnsupportedError with the option ``write.merge-schema``."""
        store = self._writable()
        if store.merge_rules is not None:
            raise UnsupportedError(
                f"'write.merge-schema' is not possible in Table.{method}: alter the table first, or use Table.write"
            )
        return store

    def _writable(self) -> FileStore:
        if self._read_optimized:
            raise UnsupportedError(
                f"cannot write to {self.path}{_VIEW}: a read-optimized view can only be read; write to the table itself"
            )
        return self._store
