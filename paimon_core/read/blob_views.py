"""Descriptors in place of views: the blobs of rows of other tables of the same warehouse."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, UnsupportedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.fileio.paths import check_name
from paimon_core.format.blob_view import views
from paimon_core.predicate.expr import Predicate, col
from paimon_core.predicate.rewrite import bind, columns
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.blob_columns import stored_as_views
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.current_schema import current_schema
from paimon_core.store.environment import CatalogEnvironment
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH, branch_directory
from paimon_core.store.location import split_name
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

    def with_descriptors(self, batches: Iterable[pa.RecordBatch], names: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with descriptors in place of the views in the columns of ``names``; NULL for NULL.

        Raises CorruptedError for a value that is no view, and for a row that does not exist; NotFoundError for a
        missing table; UnsupportedError for a table that is opened by its path or in another kind of catalog.
        """
        for batch in batches:
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
        return rows.column(1).combine_chunks().take(pa.array(order[at]))

    def _table(self, name: str) -> tuple[FileStore, Snapshot | None]:
        if name not in self._opened:
            store = sibling(self._store, name)
            self._opened[name] = store, store.snapshots.latest()
        return self._opened[name]


def sibling(store: FileStore, name: str) -> FileStore:
    """Return another table of the warehouse of a table, as views of blobs name it.

    Args:
        store: a table that was opened by its name in a catalog of directories.
        name: the name with the database, such as ``db.t`` or ``db.t$branch_b``.

    Raises UnsupportedError for a table of another catalog or without one, NotFoundError for a missing table,
    InvalidInputError for a name that no table can have, or for a table without row ids.
    """
    warehouse = store.trust.warehouse
    if warehouse is None or type(store.environment) is not CatalogEnvironment:
        raise UnsupportedError(
            f"{hide_secrets(store.root)} has views of blobs of table {name!r}, which only a catalog of directories "
            "finds: open the table by its name in one of these, or read the views with 'blob-as-descriptor' = 'true'"
        )
    database, _, rest = name.partition(".")
    check_name(database, name)
    table, branch, view = split_name(rest, name)
    if not database or view is not None:
        raise InvalidInputError(f"{name!r} is no name of a table with its database, as views of blobs need it")
    root, branch = join(warehouse, f"{database}.db", table), branch or MAIN_BRANCH
    schema = current_schema(Schemas(store.io, branch_directory(root, branch)))
    if schema is None:
        raise NotFoundError(f"{hide_secrets(store.root)} has views of blobs of table {name!r}, which does not exist")
    found = FileStore(store.io, root, schema, branch, trust=store.trust)
    if not tracking_fields(schema):
        raise InvalidInputError(f"table {name!r} has no row ids, which views of its blobs need")
    return found
