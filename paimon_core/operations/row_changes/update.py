"""UPDATE: set columns to new values in the rows that match a filter, in one commit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.retry import retry_on_conflict
from paimon_core.operations.row_changes.change_writer import Committed, change_writer
from paimon_core.operations.row_changes.delete import RETRIES, shows_all
from paimon_core.operations.row_changes.new_values import evaluated
from paimon_core.operations.row_changes.statement import check_updates
from paimon_core.predicate.expr import Predicate
from paimon_core.read.table_read import TableRead
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Operation, Snapshot
from paimon_core.store.current_schema import check_opened
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField


def update_rows(store: FileStore, values: Mapping[str, Any], predicate: Predicate | None) -> Committed:
    """Set columns to new values in the rows that match a predicate, in one commit.

    If another commit changes the same rows at the same time, the statement starts again.

    Args:
        store: the table.
        values: the new values, as `assigned` returns them.
        predicate: a bound predicate; `None`: all rows.

    Raises UnsupportedError if a merge of the table would discard the new values, CommitConflictError if every attempt
    met a conflict. After an error the table is unchanged.
    """
    check_writable(store.schema)
    check_updates(store.schema, values, "UPDATE")
    names = store.schema.names

    def attempt() -> Committed:
        snapshot = newest(store)
        with change_writer(store, snapshot, Operation.UPDATE, values) as writer:
            fields = writer.fields
            if store.traits.data_evolution and not any(isinstance(v, pc.Expression) for v in values.values()):
                fields = writer.positions
            for batches in split_batches(store, snapshot, predicate, fields):
                for batch in batches:
                    read = set(batch.schema.names)
                    rows = batch.select([name for name in names if name in read])
                    writer.update(batch, evaluated(values, rows, store.schema.fields))
                writer.end_split()
            return writer.commit()

    return retry_on_conflict(attempt, RETRIES)


def newest(store: FileStore) -> Snapshot | None:
    """Return the newest snapshot. Raises NotFoundError if the table was dropped or replaced since it was opened."""
    snapshot = store.snapshots.latest()
    check_opened(store.schemas, store.schema, snapshot)
    return snapshot


def split_batches(
    store: FileStore, snapshot: Snapshot | None, predicate: Predicate | None, fields: Sequence[DataField]
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Yield the matching rows of a snapshot, one iterator of batches for each split; `None`: the table is empty.

    Rows that are invisible until a compaction are included.
    """
    if snapshot is None:
        return
    visible_store = store.with_options(shows_all(store.schema))
    read = TableRead(visible_store, tuple(fields), predicate)
    for split in TableScan(visible_store, snapshot, predicate).plan().splits:
        yield read.to_batches(split)
