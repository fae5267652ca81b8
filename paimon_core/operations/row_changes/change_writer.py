"""Write the changed rows of one UPDATE or MERGE: rows with kinds, files that replace others, or files of columns.

A writer takes rows of the table that change, in batches, and new rows. `ChangeWriter.commit` publishes all changes in
one commit, which conflicts with other commits that changed the same rows since the snapshot that was read.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.commit_messages import CommitResult, commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.schema_check import check_knows_columns
from paimon_core.errors import InvalidInputError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.row_changes.data_evolution import NewValues, RowRanges
from paimon_core.operations.row_changes.new_values import stored
from paimon_core.operations.row_changes.remove_rows import RowPositions, remove_rows
from paimon_core.operations.row_changes.statement import RowChanges, null_unless_changed, position_fields
from paimon_core.options.lsm import WRITE_ONLY
from paimon_core.options.merge import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.started_from import Guard, StartedFrom
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.float_order import in_key_order
from paimon_core.types.system_fields import FILE_PATH, ROW_ID, ROW_INDEX
from paimon_core.write.table_write import TableWrite

_WRITE_ONLY = {WRITE_ONLY.key: "true"}


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a statement, with the messages and the result of its commit for the work after it."""

    changes: RowChanges
    messages: tuple[CommitMessage, ...]
    result: CommitResult


class ChangeWriter(ABC):
    """A writer of the changes that one statement makes to the rows of one snapshot.

    A context manager: without a commit, it deletes the files that it wrote.

    Args:
        store: the table.
        snapshot: the snapshot that the statement reads; `None`: the table is empty.
        operation: the operation to store in the snapshot, of `Operation`.
        columns: the names of the columns that change in existing rows.
    """

    guards: Guard

    def __init__(self, store: FileStore, snapshot: Snapshot | None, operation: str, columns: Collection[str]) -> None:
        self.store, self.snapshot, self.columns = store, snapshot, frozenset(columns)
        self.positions = position_fields(store)
        self.updated = self.deleted = self.inserted = 0
        self._publisher = Publisher(store, operation=operation)
        self._stack = ExitStack()

    @property
    def fields(self) -> tuple[DataField, ...]:
        """The columns that a changed row of the table must have."""
        return (*self.store.schema.fields, *self.positions)

    @abstractmethod
    def update(self, old: pa.RecordBatch, values: dict[str, pa.Array]) -> None:
        """Change rows of the table.

        Args:
            old: the rows as they were read, with the columns `fields`.
            values: the new values, by column.
        """

    @abstractmethod
    def delete(self, old: pa.RecordBatch) -> None:
        """Delete rows of the table, which have the columns `fields`."""

    @abstractmethod
    def insert(self, rows: pa.RecordBatch) -> None:
        """Add new rows; columns that they lack get their defaults."""

    def end_split(self) -> None:  # noqa: B027
        """Write what must be written before the rows of the next split. Call it after the last row of a split."""

    @abstractmethod
    def _commit(self, started_from: StartedFrom) -> tuple[list[CommitMessage], CommitResult]:
        """Publish the changes; return the messages and the result."""

    def commit(self) -> Committed:
        """Publish all changes in one commit. Raises CommitConflictError if other commits changed the same rows."""
        messages, result = self._commit(StartedFrom.of(self.snapshot, self.guards))
        changes = RowChanges(self.updated, self.deleted, self.inserted, result.snapshot)
        return Committed(changes, tuple(messages), result)

    def __enter__(self) -> "ChangeWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _publish(
        self, messages: list[CommitMessage], removed: RowPositions, started_from: StartedFrom
    ) -> tuple[list[CommitMessage], CommitResult]:
        """Remove rows by their positions, and publish this with the messages of new files."""
        publisher = self._publisher
        removing: list[CommitMessage] = []
        with publisher.deleting_unless_published(messages):
            if removed and self.snapshot is not None:
                removing = remove_rows(self.store, self.snapshot, removed)
            with publisher.deleting_unless_published(removing):
                every = [*removing, *messages]
                return every, commit_messages(publisher, every, publisher.identity(), started_from)

    def _new_rows(self, old: pa.RecordBatch, values: dict[str, pa.Array]) -> pa.RecordBatch:
        """Return the table's columns of changed rows."""
        fields = self.store.schema.fields
        columns = [values[f.name] if f.name in values else old.column(f.name) for f in fields]
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields))


def change_writer(
    store: FileStore, snapshot: Snapshot | None, operation: str, columns: Collection[str]
) -> ChangeWriter:
    """Return the writer for the kind of a table. Arguments as for `ChangeWriter`.

    Raises TableChangedError if rows of the snapshot may have columns that the store does not know.
    """
    check_knows_columns(store, snapshot)
    traits = store.traits
    kind = _KeyedRows if traits.keyed else _ColumnFiles if traits.data_evolution else _RowFiles
    return kind(store, snapshot, operation, columns)


class _KeyedRows(ChangeWriter):
    """Changed rows of a table with a primary key, written with their kinds."""

    guards = Guard.ROWS | Guard.KEYS

    def __init__(self, store: FileStore, snapshot: Snapshot | None, operation: str, columns: Collection[str]) -> None:
        super().__init__(store, snapshot, operation, columns)
        self._rows = self._stack.enter_context(TableWrite(store, started_from=StartedFrom.of(snapshot, self.guards)))
        self._left_out = null_unless_changed(store.schema)
        self._sequence: tuple[str, ...] = store.schema.options.value(SEQUENCE_FIELD)
        self._descending = store.schema.options.value(SEQUENCE_FIELD_SORT_ORDER) == "descending"

    def update(self, old: pa.RecordBatch, values: dict[str, pa.Array]) -> None:
        given = dict(values)
        for name in self._left_out:
            if name not in values:
                given[name] = pa.nulls(old.num_rows, old.column(name).type)
        for name, value in values.items():
            if name in self._left_out and pc.any(pc.and_(value.is_null(), old.column(name).is_valid())).as_py():
                raise InvalidInputError(f"column {name} cannot become NULL: partial-update would keep the old value")
            if name in self._sequence:
                self._check_follows(name, old.column(name), value)
        rows = self._new_rows(old, given)
        self._rows.write(rows, pa.repeat("+U", rows.num_rows), fills_defaults=False)
        self.updated += rows.num_rows

    def _check_follows(self, name: str, old: pa.Array, new: pa.Array) -> None:
        """Raise InvalidInputError if a new value of a sequence field is older than the value of the row."""
        compare = pc.less_equal if self._descending else pc.greater_equal
        follows = pc.fill_null(compare(in_key_order(new), in_key_order(old)), False)
        if not pc.all(pc.or_(follows, old.is_null())).as_py():
            raise InvalidInputError(f"the new value of sequence field {name} is older than the value of the row")

    def delete(self, old: pa.RecordBatch) -> None:
        rows = self._new_rows(old, {})
        self._rows.write(rows, pa.repeat("-D", rows.num_rows), fills_defaults=False)
        self.deleted += rows.num_rows

    def insert(self, rows: pa.RecordBatch) -> None:
        self._rows.write(rows)
        self.inserted += rows.num_rows

    def _commit(self, started_from: StartedFrom) -> tuple[list[CommitMessage], CommitResult]:
        messages = self._rows.prepare_commit()
        started_from = started_from.joined(self._rows.started_from)
        return messages, self._publisher.publish_or_delete(
            commit_messages, messages, self._publisher.identity(), started_from
        )


class _RowFiles(ChangeWriter):
    """Changed rows of a table without a primary key: new rows in new files, old rows removed by their positions."""

    guards = Guard.STATEMENT

    def __init__(self, store: FileStore, snapshot: Snapshot | None, operation: str, columns: Collection[str]) -> None:
        super().__init__(store, snapshot, operation, columns)
        self._tracked = ROW_ID in self.positions
        self._rows = self._stack.enter_context(TableWrite(store.with_options(_WRITE_ONLY), keeps_row_ids=self._tracked))
        self._removed = RowPositions()

    def update(self, old: pa.RecordBatch, values: dict[str, pa.Array]) -> None:
        self._remove(old)
        rows = self._new_rows(old, values)
        if self._tracked:
            rows = rows.append_column(ROW_ID.name, old.column(ROW_ID.name))
        self._rows.write(rows, fills_defaults=False)
        self.updated += old.num_rows

    def delete(self, old: pa.RecordBatch) -> None:
        self._remove(old)
        self.deleted += old.num_rows

    def insert(self, rows: pa.RecordBatch) -> None:
        if self._tracked:
            rows = rows.append_column(ROW_ID.name, pa.nulls(rows.num_rows, pa.int64()))
        self._rows.write(rows)
        self.inserted += rows.num_rows

    def _remove(self, old: pa.RecordBatch) -> None:
        if old.num_rows:
            self._removed.add(old.column(FILE_PATH.name), old.column(ROW_INDEX.name))

    def _commit(self, started_from: StartedFrom) -> tuple[list[CommitMessage], CommitResult]:
        return self._publish(list(self._rows.prepare_commit()), self._removed, started_from)


@dataclass(slots=True)
class _Collected:
    """New values of rows, which are written once all rows of their range have arrived."""

    ids: list[pa.Array] = field(default_factory=list)
    rows: list[pa.RecordBatch] = field(default_factory=list)


class _ColumnFiles(ChangeWriter):
    """Changed columns of a table with data evolution, written to a file for all rows of each changed range.

    Deleted rows are added to the deletion vectors of their ranges.
    """

    guards = Guard.LAYOUT | Guard.STATEMENT

    def __init__(self, store: FileStore, snapshot: Snapshot | None, operation: str, columns: Collection[str]) -> None:
        super().__init__(store, snapshot, operation, columns)
        self._rows = self._stack.enter_context(TableWrite(store.with_options(_WRITE_ONLY)))
        self._ranges = RowRanges(()) if snapshot is None else RowRanges.of(store, snapshot)
        self._changed = tuple(f for f in store.schema.fields if f.name in self.columns)
        self._collected = _Collected()
        self._replaced: list[CommitMessage] = []
        self._removed = RowPositions()

    def update(self, old: pa.RecordBatch, values: dict[str, pa.Array]) -> None:
        columns = [values[f.name] if f.name in values else stored(old.column(f.name), f) for f in self._changed]
        self._collected.ids.append(old.column(ROW_ID.name))
        self._collected.rows.append(pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self._changed)))
        self.updated += old.num_rows

    def delete(self, old: pa.RecordBatch) -> None:
        if old.num_rows:
            row_ids = old.column(ROW_ID.name).to_numpy()
            self._removed.add(*self._ranges.deletion_places(self.store, row_ids))
            self.deleted += old.num_rows

    def insert(self, rows: pa.RecordBatch) -> None:
        self._rows.write(rows)
        self.inserted += rows.num_rows

    def end_split(self) -> None:
        """Write the collected values: a split has all files of its ranges."""
        collected, self._collected = self._collected, _Collected()
        if not sum(map(len, collected.ids)):
            return
        row_ids = pa.chunked_array(collected.ids, pa.int64()).to_numpy()
        order = np.argsort(row_ids, kind="stable")
        row_ids, rows = row_ids[order], pa.Table.from_batches(collected.rows).take(pa.array(order))
        numbers = self._ranges.numbers(row_ids)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(numbers)], strict=True):
            new = NewValues(row_ids[start:end], rows.slice(start, end - start))
            number = int(numbers[start])
            self._replaced.append(self._ranges.replace_columns(self.store, number, self._changed, new))

    def _commit(self, started_from: StartedFrom) -> tuple[list[CommitMessage], CommitResult]:
        messages = [*self._replaced, *self._rows.prepare_commit()]
        self._replaced = []
        return self._publish(messages, self._removed, started_from)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        delete_written_files(self.store, self._replaced)
