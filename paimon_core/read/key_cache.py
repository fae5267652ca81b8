"""A bounded cache of decoded keys of data files, and the search for keys in them."""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.memory import LruCache
from paimon_core.types.float_order import in_key_order
from paimon_core.types.sorted_values import dense_ranks

Positions = npt.NDArray[np.int64]


class KeyCache(LruCache[Hashable, pa.Table]):
    """A thread-safe LRU cache of up to ``bound`` bytes.

    A value holds the key columns of a data file in row order, by file. For a small file it holds all requested columns,
    by (file, columns).
    """

    def __init__(self, bound: int) -> None:
        super().__init__(bound, lambda keys: keys.nbytes)


def group_codes(rows: pa.Table, names: Sequence[str]) -> tuple[Positions, Positions]:
    """Return for each row the number of its value in these columns, and the first row of each number."""
    code: Positions = np.zeros(rows.num_rows, np.int64)
    for name in names:
        column = in_key_order(rows.column(name).combine_chunks()).dictionary_encode()
        code = dense_ranks(
            code * (len(column.dictionary) + 1) + column.indices.fill_null(len(column.dictionary)).to_numpy()
        )
    _, first = np.unique(code, return_index=True)
    return code, first


def search_keys(keys: pa.Table, requested: pa.Table) -> tuple[Positions, Positions]:
    """Match keys like :func:`match_keys`, in any order. REQUIRES: ``keys`` are sorted and distinct, as in a file."""
    if len(requested.column_names) == 1 and keys.num_rows and _searchable(keys.column(0).type):
        stored, values = keys.column(0).to_numpy(), requested.column(0).to_numpy()
        position = np.minimum(np.searchsorted(stored, values), len(stored) - 1)
        which = np.flatnonzero(stored[position] == values)
        return position[which], which
    return match_keys(keys, requested)


def _searchable(kind: pa.DataType) -> bool:
    """Return True for types whose order in files is certain: Java may leave floating keys unsorted around NaN."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def match_keys(keys: pa.Table, requested: pa.Table) -> tuple[Positions, Positions]:
    """Return the positions of the rows of ``keys`` that are in ``requested``, and their positions in ``requested``.

    REQUIRES: both have the same columns; the rows of ``requested`` are distinct. Exact for any types. Cost: one pass
    over the first column, and one over the still matching rows of each further column.
    """
    keys, requested = _exact(keys), _exact(requested)
    if len(requested.column_names) == 1:
        number = _numbers(keys.column(0), requested.column(0).combine_chunks())
        matching: Positions = np.flatnonzero(number >= 0)
        return matching, number[matching]
    rows: Positions = np.arange(keys.num_rows)
    codes, requested_codes = np.zeros(keys.num_rows, np.int64), np.zeros(requested.num_rows, np.int64)
    for name in requested.column_names:
        values = pc.unique(requested.column(name))
        column = keys.column(name)
        number = _numbers(column if len(rows) == keys.num_rows else column.take(pa.array(rows)), values)
        matches = number >= 0
        rows, codes = rows[matches], codes[matches] * len(values) + number[matches]
        requested_codes = requested_codes * len(values) + _numbers(requested.column(name), values)
        distinct = np.unique(requested_codes)
        position = np.searchsorted(distinct, codes)
        matches = np.append(distinct, -1)[position] == codes
        rows, codes = rows[matches], position[matches]
        requested_codes = np.searchsorted(distinct, requested_codes)
    which = np.empty(requested.num_rows, np.int64)
    which[requested_codes] = np.arange(requested.num_rows)
    return rows, which[codes]


def _exact(keys: pa.Table) -> pa.Table:
    """Return the keys with integers for floating columns, which distinguish zeros and NaN."""
    return pa.table({name: in_key_order(keys.column(name)) for name in keys.column_names})


def _numbers(column: pa.ChunkedArray, values: pa.Array) -> Positions:
    """Return the position of each value in ``values``; -1: not in ``values``."""
    positions: Positions = pc.index_in(column, value_set=values).fill_null(-1).to_numpy().astype(np.int64)
    return positions
