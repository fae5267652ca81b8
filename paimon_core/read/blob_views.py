"""Descriptors in place of views: the blobs of rows of other tables of the same catalog."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError, hide_secrets
from paimon_core.format.blob_descriptor import described
from paimon_core.format.blob_view import views
from paimon_core.predicate.expr import Predicate, col
from paimon_core.predicate.rewrite import bind, columns
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.blob_columns import stored_as_views
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataField
from paimon_core.types.system_fields import ROW_ID

OpenReader: TypeAlias = Callable[
    [FileStore, Sequence[DataField], Predicate], Callable[[DataSplit], Iterator[pa.RecordBatch]]
]
"""A function from a table, columns and a predicate to a reader of splits."""
_DENSE: Final = 4  # a range of row ids is read as a whole if at most this many ids come on each wanted id


def check_no_view_tested(store: FileStore, predicate: Predicate | None) -> None:
    """Raise UnsupportedError if a predicate, which selects rows to delete, tests a column that stores views."""
    tested = set() if predicate is None else columns(predicate) & stored_as_views(store.schema)
    if tested:
        raise UnsupportedError(
            f"rows of {hide_secrets(store.root)} cannot be deleted by a condition on {min(tested)!r}, which stores "
            "views of blobs: name the rows by another column"
        )


class ViewedBlobs:
    """Descriptors of the blobs that views name. Tables are opened once, in their newest snapshot.

    Memory: the views and descriptors of one batch.

    Args:
        store: the table with the views.
        reading: reads rows of other tables, without blobs in place of descriptors.
    """

    def __init__(self, store: FileStore, reading: OpenReader) -> None:
        self._store, self._reading = store, reading
        self._opened: dict[str, tuple[FileStore, Snapshot | None]] = {}
        self._owners: dict[str, list[FileStore]] = {}  # the tables whose descriptors name a file, in this batch

    def owner(self, path: str) -> FileStore:
        """Return the table through which a file of the last batch is read: one that may read it, if there is one."""
        owners = self._owners[path]
        return next((owner for owner in owners if owner.may_read_blob(path)), owners[0])

    def with_descriptors(self, batches: Iterable[pa.RecordBatch], names: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with descriptors in place of the views in the columns of ``names``; NULL for NULL.

        Raises CorruptedError for a value that is no view, and for a row that does not exist; NotFoundError for a
        missing table; UnsupportedError for a table that is opened by its path, or whose rows the user may not all see.
        """
        for batch in batches:
            self._owners = {}
            for at, name in enumerate(batch.schema.names):
                if name in names:
                    batch = batch.set_column(at, batch.schema.field(at), self._described(batch.column(at), name))
            yield batch

    def _described(self, values: pa.Array, name: str) -> pa.Array:
        found = views(values, f"column {name!r} of {hide_secrets(self._store.root)}")
        parts, numbers, count = [pa.nulls(1, pa.binary())], np.zeros(len(found.row_ids), np.int64), 1
        for number, table in enumerate(found.tables):
            for field_id in np.unique(found.field_ids[found.table_of == number]).tolist():
                wanted = np.flatnonzero((found.table_of == number) & (found.field_ids == field_id))
                part = self._of_column(table, field_id, found.row_ids[wanted])
                parts.append(part)
                numbers[wanted] = np.arange(count, count + len(part))
                count += len(part)
        chosen = np.zeros(len(values), np.int64)
        chosen[values.is_valid().to_numpy(zero_copy_only=False)] = numbers
        return pa.concat_arrays(parts).take(pa.array(chosen))

    def _of_column(self, table: str, field_id: int, row_ids: np.ndarray) -> pa.Array:
        """Return the descriptors of the blobs of rows of one column, in the order of ``row_ids``."""
        store, snapshot = self._table(table)
        field = next((f for f in store.schema.fields if f.id == field_id), None)
        if field is None or not (isinstance(field.type, AtomicType) and field.type.root == "BLOB"):
            raise CorruptedError(f"a view names column {field_id} of table {table!r}, which is no column of type BLOB")
        if field.name in stored_as_views(store.schema):
            raise UnsupportedError(f"a view names column {field.name!r} of table {table!r}, which holds views itself")
        ids = np.unique(row_ids)
        low, high = int(ids[0]), int(ids[-1])
        dense = high - low < _DENSE * len(ids)
        test = col(ROW_ID.name).between(low, high) if dense else col(ROW_ID.name).isin(ids.tolist())
        predicate = bind(test, (*store.schema.fields, *tracking_fields(store.schema)))
        read = self._reading(store, (ROW_ID, field), predicate)
        schema = pa.schema([(ROW_ID.name, pa.int64()), (field.name, pa.binary())])
        splits = TableScan(store, snapshot, predicate).plan().splits
        batches = [pa.RecordBatch.from_arrays(b.columns, schema=schema) for split in splits for b in read(split)]
        rows = pa.Table.from_batches(batches, schema).combine_chunks()
        order = np.argsort(rows.column(0).to_numpy())
        stored = rows.column(0).to_numpy()[order]
        at = np.searchsorted(stored, row_ids)
        missing = at == len(stored) if not len(stored) else stored[np.minimum(at, len(stored) - 1)] != row_ids
        if missing.any():
            raise CorruptedError(
                f"a view names row {row_ids[np.argmax(missing)]} of table {table!r}, which has no such row any more"
            )
        pointers = rows.column(1).combine_chunks().take(pa.array(order[at]))
        for path in described(pointers, f"column {field.name!r} of {hide_secrets(store.root)}").files:
            self._owners.setdefault(path, []).append(store)
        return pointers

    def _table(self, name: str) -> tuple[FileStore, Snapshot | None]:
        if name not in self._opened:
            store = viewed_table(self._store, name)
            self._opened[name] = store, store.snapshots.latest()
        return self._opened[name]


def viewed_table(store: FileStore, name: str) -> FileStore:
    """Return the table that views in the rows of another table name, which the catalog of that table opens.

    Args:
        store: the table with the views.
        name: the name with the database, such as ``db.t`` or ``db.t$branch_b``.

    Raises UnsupportedError if ``store`` was opened by its path, or if the user may not see all of the named table;
    NotFoundError for a missing table, InvalidInputError for a name that no table can have and a table without row ids.
    """
    shown = f"{hide_secrets(store.root)} has views of blobs of table {name!r}"
    if store.others is None:
        raise UnsupportedError(
            f"{shown}, which only its catalog finds: open the table by its name in the catalog, or read the views with "
            "'blob-as-descriptor' = 'true'"
        )
    try:
        found = store.others.store(name)
    except NotFoundError as cause:
        raise NotFoundError(f"{shown}, which does not exist") from cause
    found.check_unrestricted()
    if not tracking_fields(found.schema):
        raise InvalidInputError(f"table {name!r} has no row ids, which views of its blobs need")
    return found.trusting(store.trust)
