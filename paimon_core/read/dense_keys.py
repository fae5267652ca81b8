"""The newest row of each key in overlapping runs, for integer keys that are dense: no sort, and one byte for each key.

The runs are read from the newest to the oldest. A row is the newest one of its key if no run before had the key.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.fileio.parallel import ahead
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.memory import MemoryShares
from paimon_core.merge.normalized_keys import comparable
from paimon_core.predicate.expr import And, Leaf, Predicate
from paimon_core.row.binary_row import decode_rows
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import INTEGER_ROOTS
from paimon_core.types.row_kind import is_retract
from paimon_core.types.selection import Mask

_KEYS_PER_ROW = 16
"""The largest range of keys for each row; beyond that, a sort is as fast."""
_FEW_KEYS = 1 << 16
"""A range of at most this number of keys is always dense enough."""


def key_span(store: FileStore, files: Sequence[DataFileMeta], rows: int) -> range | None:
    """Return the range of the keys of files; `None`: keys are not single integers, or the range is too large.

    Dates and times count as integers.

    Args:
        store: a table with a primary key.
        files: files of one bucket, at least one.
        rows: the number of rows that are compared, of these and other files.
    """
    schema = store.schema.key_arrow
    if len(schema) != 1 or not _is_integer(schema.field(0).type):
        return None
    bounds = decode_rows([f.min_key for f in files] + [f.max_key for f in files], schema)
    column = comparable(bounds.column(0), schema.names[0])
    if column.null_count:
        return None
    least, largest = (bound.as_py() for bound in pc.min_max(column).values())
    most = min(MemoryShares.of(store.options).dense_keys, max(_FEW_KEYS, _KEYS_PER_ROW * rows))
    return range(least, largest + 1) if largest - least < most else None


def find_newest(
    oldest: Iterator[pa.RecordBatch], newer: Sequence[Iterator[pa.RecordBatch]], span: range, live: Mask
) -> bool:
    """Set ``live[p]`` for each row at position ``p``: True if the row is the newest of its key and deletes no key.

    The batches have the key, ``_VALUE_KIND`` and the position of each row, in this order.
    Returns False if a run is not sorted or a newer run has a key outside of the range. Then a merge raises the error,
    if it is one. Memory: a byte for each key of the range, and two batches.

    Args:
        oldest: the rows of the oldest run; the run may leave out rows whose key is outside of the range.
        newer: the rows of the other runs, from the oldest to the newest; each run holds a key once.
        span: the range of the keys of the newer runs, from `key_span`.
        live: a bool for each row of all files.
    """
    seen = np.zeros(len(span), np.bool_)
    for run in (*reversed(newer), oldest):
        last = None
        for batch in ahead(run):
            if not batch.num_rows:
                continue
            column = batch.column(0)
            if column.null_count:
                return False
            keys = comparable(column, batch.schema.names[0]).to_numpy().astype(np.int64, copy=False)
            if (last is not None and keys[0] <= last) or (keys[1:] <= keys[:-1]).any():
                return False
            last = keys[-1]
            low, high = np.searchsorted(keys, span.start), np.searchsorted(keys, span.stop - 1, "right")
            if run is not oldest and high - low < len(keys):
                return False
            inside = keys[low:high] - span.start
            newest = np.ones(len(keys), np.bool_)
            newest[low:high] = ~seen[inside]
            if run is not oldest:
                seen[inside] = True
            kinds = batch.column(1).to_numpy()
            if kinds.any():
                newest &= ~is_retract(kinds)
            positions = batch.column(2).to_numpy()
            first, end = int(positions[0]), int(positions[-1]) + 1
            if end - first == len(positions):
                live[first:end] = newest
            else:
                live[positions] = newest
    return True


def within(store: FileStore, span: range) -> Predicate | None:
    """Return the condition that the key is in a range; `None`: only for keys of integer types.

    Args:
        store: a table whose key is a single column.
        span: the range, from `key_span`.
    """
    (field,) = store.schema.key_fields
    if getattr(field.type, "root", None) not in INTEGER_ROOTS:
        return None
    return And((Leaf(">=", field.name, (span.start,)), Leaf("<=", field.name, (span.stop - 1,))))


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_duration(kind)))
