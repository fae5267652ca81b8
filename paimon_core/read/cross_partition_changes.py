"""Order the changes of keys that move between partitions: deletes in the old bucket precede inserts in the new bucket.

So a consumer never deletes the new row.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.normalized_keys import comparable, filled
from paimon_core.types.float_order import in_key_order
from paimon_core.types.row_kind import is_retract


def keys_with_last_kind(
    batches: Iterator[pa.RecordBatch], keys: Sequence[str], *, alive: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the keys whose last row adds (``alive``), or the rows of all other keys.

    Memory: a batch, and the rows of its last key.

    Args:
        batches: rows in order of ``keys``; the first column holds the kinds (int8).
        keys: columns of the key.
        alive: selects the keys whose last row adds; False: the keys whose last row retracts.
    """
    last_key: pa.RecordBatch | None = None
    for batch in batches:
        rows = batch if last_key is None else pa.concat_batches([last_key, batch])
        starts = _starts(rows, keys)
        complete = int(starts[-1])
        if complete:
            yield from _chosen(rows.slice(0, complete), starts[:-1], alive=alive)
        last_key = rows.slice(complete)
    if last_key is not None:
        yield from _chosen(last_key, np.zeros(1, np.int64), alive=alive)


def _starts(rows: pa.RecordBatch, keys: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the position where each key begins."""
    differs = np.zeros(rows.num_rows - 1, bool)
    for key in keys:
        column = in_key_order(rows.column(key))
        parts = (column.is_valid(), filled(comparable(column, key))) if column.null_count else (column,)
        for part in parts:
            differs |= pc.not_equal(part.slice(1), part.slice(0, len(part) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(differs) + 1])


def _chosen(rows: pa.RecordBatch, starts: npt.NDArray[np.int64], *, alive: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the chosen keys; ``starts``: where each key begins. No batch if no key is chosen."""
    ends = np.append(starts[1:], rows.num_rows)
    chosen = is_retract(rows.column(0).to_numpy()[ends - 1]) != alive
    if chosen.any():
        yield rows if chosen.all() else rows.filter(pa.array(np.repeat(chosen, ends - starts)))
