"""The newest row of each key in overlapping runs, for integer keys that are dense: no sort, and one byte for each key.

The runs are read from the newest to the oldest. A row is the newest one of its key if no run before had the key.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.fileio.parallel import ahead
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.normalized_keys import comparable
from paimon_core.read.sections import ReadFile, run_batches
from paimon_core.row.binary_row import decode_rows
from paimon_core.store.file_store import FileStore
from paimon_core.types.row_kind import is_retract
from paimon_core.types.selection import Mask

_MOST_KEYS = 64 << 20
"""The most possible keys, each of which takes one byte of memory."""
_KEYS_PER_ROW = 16
"""The most possible keys for each row; beyond that, a sort is as fast."""
_FEW_KEYS = 1 << 16
"""As many possible keys are always dense enough."""


def key_span(store: FileStore, files: Sequence[DataFileMeta]) -> range | None:
    """Return the range of the keys of files; `None`: keys are not single integers, or the range is too large.

    Dates and times count as integers.

    Args:
        store: a table with a primary key.
        files: files of one bucket, at least one.
    """
    schema = store.schema.key_arrow
    if len(schema) != 1 or not _is_integer(schema.field(0).type):
        return None
    bounds = decode_rows([f.min_key for f in files] + [f.max_key for f in files], schema)
    column = comparable(bounds.column(0), schema.names[0])
    if column.null_count:
        return None
    least, largest = (bound.as_py() for bound in pc.min_max(column).values())
    most = min(_MOST_KEYS, max(_FEW_KEYS, _KEYS_PER_ROW * sum(f.row_count for f in files)))
    return range(least, largest + 1) if largest - least < most else None


def find_newest(runs: Sequence[SortedRun], read: ReadFile, span: range, live: Mask) -> bool:
    """Set ``live[p]`` to True for each row at position ``p`` that is the newest of its key and does not delete the key.

    Returns False if a run is not sorted or has a key outside of the range: a merge then raises the error, if any.
    Memory: a byte for each key of the range, and two batches.

    Args:
        runs: the runs, from the oldest to the newest; each holds a key once.
        read: reads the key, ``_VALUE_KIND`` and the position of each row, in this order.
        span: the range of `key_span`.
        live: a bool for each row of all files, at first False.
    """
    seen = np.zeros(len(span), np.bool_)
    for run in reversed(runs):
        last = -1
        for batch in ahead(run_batches(run, read, 1)):
            if not batch.num_rows:
                continue
            key = batch.column(0)
            if key.null_count:
                return False
            keys = comparable(key, batch.schema.names[0]).to_numpy().astype(np.int64, copy=False) - span.start
            # the sorted keys are in the range if the first and the last one are
            if keys[0] <= last or keys[-1] >= len(seen) or (keys[1:] <= keys[:-1]).any():
                return False
            last = int(keys[-1])
            newest = ~seen[keys]
            seen[keys] = True
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


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_duration(kind)))
