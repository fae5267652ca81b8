"""The difference of the rows of two snapshots, as changes of keys (behaviour 9.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from paimon_core.merge.equality import equal_values
from paimon_core.merge.kway import merge_runs
from paimon_core.merge.window import Window
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import restrict
from paimon_core.read.table_read import TableRead
from paimon_core.scan.difference import DiffSplit
from paimon_core.scan.split import DataSplit
from paimon_core.store.file_store import FileStore
from paimon_core.types.columns import free_name
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from paimon_core.types.selection import take_rows
from paimon_core.types.system_fields import VALUE_KIND

_BEFORE, _AFTER = 0, 1


def difference_batches(
    store: FileStore, split: DiffSplit, predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the changes from the older rows to the newer rows, in key order.

    The first column is ``_VALUE_KIND`` (int8), then all columns of the table: +I for a new key, -D for a removed key,
    -U and +U, one after the other, for a key whose row differs in a column. ``predicate``: only its part on the primary
    key filters, and leaves out keys for which it is not true. Memory: the same as a merge of the buckets of both sides.
    """
    schema = store.schema
    on_keys = None if predicate is None else restrict(predicate, set(schema.primary_keys))
    read = TableRead(store, schema.fields, on_keys, skip_bad_files=True)
    side = free_name("_SIDE", schema.names)
    runs = [
        *(_run(read, bucket_split, side, _BEFORE) for bucket_split in split.before),
        *(_run(read, bucket_split, side, _AFTER) for bucket_split in split.after),
    ]
    order = replace(store.traits.merge_order(), sequence_fields=(), by_run=True)
    for table in merge_runs(runs, order, _Difference(side, tuple(schema.names))):
        yield from table.to_batches()


def _run(read: TableRead, split: DataSplit, column: str, side: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one bucket in key order, each key once, with a first column that names the side."""
    value = pa.scalar(side, pa.int8())
    schema = pa.schema([pa.field(column, pa.int8()), *read.schema])
    for batch in read.to_batches(split):
        yield pa.RecordBatch.from_arrays([pa.repeat(value, batch.num_rows), *batch.columns], schema=schema)


@dataclass(frozen=True, slots=True)
class _Difference:
    """A merge function that reduces the one or two rows of a key to changes, with their kinds.

    ``side``: name of the column with the side of each row; ``compared``: names of the columns to compare.
    """

    side: str
    compared: tuple[str, ...]

    def __call__(self, window: Window) -> pa.Table:
        """Return the rows of the window that are changes; -U precedes +U."""
        starts, ends = window.starts, window.ends
        sides = window.column(self.side).to_numpy()
        kinds = np.where(sides == _BEFORE, np.int8(DELETE), np.int8(INSERT))
        first = starts[ends - starts == 2]
        kinds[first], kinds[first + 1] = UPDATE_BEFORE, UPDATE_AFTER
        changed = np.ones(len(kinds), np.bool_)
        same = self._same(window, first)
        changed[same] = changed[same + 1] = False
        rows = window.take(np.flatnonzero(changed))
        return rows.drop_columns([self.side]).add_column(0, VALUE_KIND.name, pa.array(kinds[changed]))

    def _same(self, window: Window, first: np.ndarray) -> np.ndarray:
        """Return the positions whose row equals the next row in all compared columns."""
        for name in self.compared:
            if not len(first):
                break
            values = window.column(name)
            first = first[equal_values(take_rows(values, first), take_rows(values, first + 1), exact=True)]
        return first
