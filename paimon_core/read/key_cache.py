"""A bounded cache of decoded keys of data files, and the search for keys in them."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.types.float_order import in_key_order
from paimon_core.types.sorted_values import dense_ranks

Positions = npt.NDArray[np.int64]


class KeyCache:
    """An LRU cache of up to ``bound`` bytes, safe for threads.

    It holds the key columns of data files, in row order, by file; of small files all columns read, by file and columns.
    """

    def __init__(self, bound: int) -> None:
        self._bound, self._held = bound, 0
        self._blocks: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Bytes of the cached tables."""
        return self._held

    def get(self, file: Hashable) -> pa.Table | None:
        """Return the keys of a file; `None`: they are not cached."""
        with self._lock:
            if file in self._blocks:
                self._blocks.move_to_end(file)
            return self._blocks.get(file)

    def put(self, file: Hashable, keys: pa.Table) -> None:
        """Add the keys of a file, unless they are larger than the bound."""
        size = keys.nbytes
        with self._lock:
            if size > self._bound or file in self._blocks:
                return
            self._blocks[file] = keys
            self._held += size
            while self._held > self._bound:
                self._held -= self._blocks.popitem(last=False)[1].nbytes


def group_codes(rows: pa.Table, names: Sequence[str]) -> tuple[Positions, Positions]:
    """Return a number for each row, equal if the values in these columns are, and the first row of each number."""
    found: Positions = np.zeros(rows.num_rows, np.int64)
    for name in names:
        column = in_key_order(rows.column(name).combine_chunks()).dictionary_encode()
        found = dense_ranks(
            found * (len(column.dictionary) + 1) + column.indices.fill_null(len(column.dictionary)).to_numpy()
        )
    _, first = np.unique(found, return_index=True)
    return found, first


def search_keys(keys: pa.Table, asked: pa.Table) -> tuple[Positions, Positions]:
    """Match keys as :func:`match_keys` does, in any order. REQUIRES: ``keys`` are sorted and distinct, as in a file."""
    if len(asked.column_names) == 1 and keys.num_rows and _searchable(keys.column(0).type):
        there, values = keys.column(0).to_numpy(), asked.column(0).to_numpy()
        place = np.minimum(np.searchsorted(there, values), len(there) - 1)
        which = np.flatnonzero(there[place] == values)
        return place[which], which
    return match_keys(keys, asked)


def _searchable(kind: pa.DataType) -> bool:
    """Return True for types whose order in files is certain: Java may leave floating keys unsorted around NaN."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def match_keys(keys: pa.Table, asked: pa.Table) -> tuple[Positions, Positions]:
    """Return the positions of the rows of ``keys`` that are in ``asked``, and the position of each in ``asked``.

    REQUIRES: both have the same columns; the rows of ``asked`` are distinct. Exact for any types. Cost: one pass over
    the first column, and over the remaining rows of the others.
    """
    keys, asked = _exact(keys), _exact(asked)
    if len(asked.column_names) == 1:
        number = _numbers(keys.column(0), asked.column(0).combine_chunks())
        found: Positions = np.flatnonzero(number >= 0)
        return found, number[found]
    at: Positions = np.arange(keys.num_rows)
    here, there = np.zeros(keys.num_rows, np.int64), np.zeros(asked.num_rows, np.int64)
    for name in asked.column_names:
        values = pc.unique(asked.column(name))
        column = keys.column(name)
        number = _numbers(column if len(at) == keys.num_rows else column.take(pa.array(at)), values)
        matches = number >= 0
        at, here = at[matches], here[matches] * len(values) + number[matches]
        there = there * len(values) + _numbers(asked.column(name), values)
        known = np.unique(there)
        place = np.searchsorted(known, here)
        matches = np.append(known, -1)[place] == here
        at, here, there = at[matches], place[matches], np.searchsorted(known, there)
    which = np.empty(asked.num_rows, np.int64)
    which[there] = np.arange(asked.num_rows)
    return at, which[here]


def _exact(keys: pa.Table) -> pa.Table:
    """Return the keys with integers for floating columns, which distinguish zeros and NaN."""
    return pa.table({name: in_key_order(keys.column(name)) for name in keys.column_names})


def _numbers(column: pa.ChunkedArray, values: pa.Array) -> Positions:
    """Return the position of each value among ``values``; -1: it is not among them."""
    found: Positions = pc.index_in(column, value_set=values).fill_null(-1).to_numpy().astype(np.int64)
    return found
