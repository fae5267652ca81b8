"""The sections of a bucket: files with connected key ranges, packed into sorted runs (behaviour 3.2)."""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.stored_values import nulls
from paimon_core.types.float_order import in_key_order
from paimon_core.types.sorted_values import dense_ranks


def sections(files: Sequence[DataFileMeta], key_schema: pa.Schema) -> list[list[SortedRun]]:
    """Split files into sections with disjoint key ranges, in key order.

    Each section is a list of sorted runs, as few as possible, and can be read independently. Files whose ranges touch
    are in one section. REQUIRES: files of level 0 are in the order of their commits, as manifests list them; ``ages``
    of the runs record this order. Cost: O(n log n); decodes each key once.
    """
    if not files:
        return []
    low, high = key_ranks(files, key_schema)
    order = np.lexsort((high, low))
    reach = np.maximum.accumulate(high[order])
    starts = np.flatnonzero(low[order][1:] > reach[:-1]) + 1
    return [list(_runs(part.tolist(), files, low, high)) for part in np.split(order, starts)]


def key_ranks(files: Sequence[DataFileMeta], key_schema: pa.Schema) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 ranks of the files' smallest and largest keys, which compare like the keys."""
    key_rank = ranks(decode_rows([f.min_key for f in files] + [f.max_key for f in files], key_schema))
    return key_rank[: len(files)], key_rank[len(files) :]


def ranks(rows: pa.RecordBatch) -> np.ndarray:
    """Return int64 ranks, which compare like the rows, column by column; NULL is smaller than all values."""
    result = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:  # a later column decides only between rows whose earlier columns are equal
        result = dense_ranks(result * (rows.num_rows + 1) + _column_ranks(column))
    return result


def _column_ranks(column: pa.Array) -> np.ndarray:
    result = pc.rank(in_key_order(column), sort_keys="ascending", tiebreaker="min")
    found = np.from_dlpack(result).astype(np.int64)  # to_numpy would import pandas, which costs more than most plans
    return np.where(nulls(column), 0, found) if column.null_count else found


def _runs(
    members: Sequence[int], files: Sequence[DataFileMeta], low: np.ndarray, high: np.ndarray
) -> Iterator[SortedRun]:
    """Pack files into runs: a file extends the run that ends earliest, if that run ends before the file begins."""
    runs: list[list[int]] = []
    ends: list[tuple[int, int]] = []  # (rank of the last key, run)
    for i in members:
        first, last = int(low[i]), int(high[i])
        if ends and first > ends[0][0]:
            run = ends[0][1]
            heapq.heapreplace(ends, (last, run))
            runs[run].append(i)
        else:
            heapq.heappush(ends, (last, len(runs)))
            runs.append([i])
    for run_members in runs:
        yield SortedRun(
            max(files[i].level for i in run_members), tuple(files[i] for i in run_members), tuple(run_members)
        )
