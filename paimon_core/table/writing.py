"""Writes and overwrites of a table, each as one commit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.overwrite import DYNAMIC
from paimon_core.commit.overwrite_partitions import overwrite_partitions
from paimon_core.commit.publisher import Publisher
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.errors import InvalidInputError
from paimon_core.metrics.listeners import collect
from paimon_core.operations.compaction.after_commit import after_commit
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.partitions.partitions_done import record_done_after_commit
from paimon_core.operations.row_changes.change_writer import Committed
from paimon_core.operations.row_changes.statement import RowChanges
from paimon_core.options.snapshot import DYNAMIC_PARTITION_OVERWRITE
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.current_schema import check_opened
from paimon_core.store.file_store import FileStore
from paimon_core.write.input_data import Data
from paimon_core.write.table_write import TableWrite

_ATTEMPTS = 5  # to write rows when others commit first; a stream of batches can be read once only

RowKinds: TypeAlias = Sequence[str] | pa.Array | None


def write_rows(store: FileStore, data: Data, row_kinds: RowKinds) -> Snapshot | None:
    """Add rows in one commit; arguments and result as for `Table.write`."""
    # a further attempt finds buckets that others gave the same new keys, and files that replace expired ones
    attempts = 1 if isinstance(data, pa.RecordBatchReader) else _ATTEMPTS
    return retry_on_conflict(partial(_write_once, store, data, row_kinds), attempts)


def _write_once(store: FileStore, data: Data, row_kinds: RowKinds) -> Snapshot | None:
    with TableWrite(store) as writer:
        writer.write(data, row_kinds)
        messages = writer.prepare_commit()
    done = Publisher(store).publish_or_delete(commit_messages, messages, started_from=writer.started_from)
    if done.snapshot is None:
        return None
    record_done_after_commit(store, {message.bucket_ref for message in messages})
    # a rejected compaction hides rows, or their changes, until it is done again
    due = done.rejected if store.traits.needs_lookup else ()
    return after_commit(store, due) or done.snapshot


def overwrite_rows(store: FileStore, data: Data, partition: Mapping[str, object] | str | None) -> Snapshot | None:
    """Replace rows in one commit; arguments and result as for `Table.overwrite`."""
    option, options = DYNAMIC_PARTITION_OVERWRITE, store.options
    if partition is None and options.has(option) and options.value(option):
        partition = DYNAMIC
    if partition not in (None, DYNAMIC) and not isinstance(partition, Mapping):
        raise InvalidInputError(f"partition must be a mapping, None or {DYNAMIC!r}, not {partition!r}")
    with TableWrite(store, overwrite=True) as writer:
        for batch in _batches(data):
            writer.write(_completed(batch, partition))
        messages = writer.prepare_commit()
    snapshot = Publisher(store).publish_or_delete(overwrite_partitions, messages, partition).snapshot
    if snapshot is not None:
        record_done_after_commit(store, {message.bucket_ref for message in messages})
    return expired_after(store, snapshot)


def change_rows(store: FileStore, statement: Callable[[], Committed]) -> RowChanges:
    """Run a statement, and do the work after its commit: compact the written buckets, and expire as the options say."""
    with collect() as metrics:
        done = statement()
        buckets = {message.bucket_ref for message in done.messages}
        if done.result.snapshot is None:
            check_opened(store.schemas, store.schema, None)
        elif store.traits.keyed:
            record_done_after_commit(store, buckets)
            after_commit(store, done.result.rejected if store.traits.needs_lookup else ())
        else:
            after_commit(store, buckets, writes_changelog=False)
    return replace(done.changes, metrics=metrics)


def expired_after(store: FileStore, snapshot: Snapshot | None) -> Snapshot | None:
    """Expire as the options say after a commit, and return its snapshot; `None`: there was nothing to commit.

    Raises NotFoundError if the table was dropped, which otherwise looks empty.
    """
    if snapshot is None:
        check_opened(store.schemas, store.schema, None)
    else:
        expire_after_commit(store)
    return snapshot


def _batches(data: Data) -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    else:
        yield from data


def _completed(batch: pa.RecordBatch, partition: Mapping[str, object] | str | None) -> pa.RecordBatch:
    """Return the batch with the partition columns that it lacks, filled from the overwritten partition."""
    if partition is None or isinstance(partition, str):
        return batch
    given = set(batch.schema.names)
    for column, value in partition.items():
        if column not in given:
            batch = batch.append_column(column, pa.array([value] * batch.num_rows))
    return batch
