"""Keys of data files, decoded and kept within a bound; and where in them the keys asked for lie."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.types.float_order import in_key_order

Positions = npt.NDArray[np.int64]


class KeyCache:
    """The key columns of data files, in the order of their rows, by file; of small files all columns that were read, by
    file and columns. Beyond ``bound`` bytes those go that were asked for longest ago. May be used from several threads.
    """

    def __init__(self, bound: int) -> None:
        self._bound, self._held = bound, 0
        self._blocks: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Bytes of what is kept."""
        return self._held

    def get(self, file: Hashable) -> pa.Table | None:
        """The keys of a file, if they are kept."""
        with self._lock:
            if file in self._blocks:
                self._blocks.move_to_end(file)
            return self._blocks.get(file)

    def put(self, file: Hashable, keys: pa.Table) -> None:
        """Keep the keys of a file, unless they alone take more than the bound."""
        size = keys.nbytes
        with self._lock:
            if size > self._bound or file in self._blocks:
                return
            self._blocks[file] = keys
            self._held += size
            while self._held > self._bound:
                self._held -= self._blocks.popitem(last=False)[1].nbytes


def group_codes(rows: pa.Table, names: Sequence[str]) -> tuple[Positions, Positions]:
    """For every row the number of its values in these columns among the distinct ones, and a row that has each."""
    found: Positions = np.zeros(rows.num_rows, np.int64)
    for name in names:
        column = in_key_order(rows.column(name).combine_chunks()).dictionary_encode()
        found = _dense(
            found * (len(column.dictionary) + 1) + column.indices.fill_null(len(column.dictionary)).to_numpy()
        )
    _, first = np.unique(found, return_index=True)
    return found, first


def search_keys(keys: pa.Table, wanted: pa.Table) -> tuple[Positions, Positions]:
    """What :func:`match_keys` gives, in any order, for keys that are sorted and distinct, as those of a file."""
    if len(wanted.column_names) == 1 and keys.num_rows and _searchable(keys.column(0).type):
        there, values = keys.column(0).to_numpy(), wanted.column(0).to_numpy()
        place = np.minimum(np.searchsorted(there, values), len(there) - 1)
        which = np.flatnonzero(there[place] == values)
        return place[which], which
    return match_keys(keys, wanted)


def _searchable(kind: pa.DataType) -> bool:
    """Return True for types whose order in files is sure: Java may leave floating keys unsorted around NaN."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def match_keys(keys: pa.Table, wanted: pa.Table) -> tuple[Positions, Positions]:
    """Positions of the rows of ``keys`` that are among the rows of ``wanted``, each with the number it has there.

    Both have the same columns; a row of ``wanted`` occurs in it once. Exact for any types; the cost is one pass over
    the first column, and over the others of what is left.
    """
    keys, wanted = _exact(keys), _exact(wanted)
    if len(wanted.column_names) == 1:
        number = _numbers(keys.column(0), wanted.column(0).combine_chunks())
        found: Positions = np.flatnonzero(number >= 0)
        return found, number[found]
    at: Positions = np.arange(keys.num_rows)
    here, there = np.zeros(keys.num_rows, np.int64), np.zeros(wanted.num_rows, np.int64)
    for name in wanted.column_names:
        values = pc.unique(wanted.column(name))
        column = keys.column(name)
        number = _numbers(column if len(at) == keys.num_rows else column.take(pa.array(at)), values)
        kept = number >= 0
        at, here = at[kept], here[kept] * len(values) + number[kept]
        there = there * len(values) + _numbers(wanted.column(name), values)
        known = np.unique(there)
        place = np.searchsorted(known, here)
        kept = np.append(known, -1)[place] == here
        at, here, there = at[kept], place[kept], np.searchsorted(known, there)
    which = np.empty(wanted.num_rows, np.int64)
    which[there] = np.arange(wanted.num_rows)
    return at, which[here]


def _exact(keys: pa.Table) -> pa.Table:
    """Return the keys with integers for floating columns, as they are told apart."""
    return pa.table({name: in_key_order(keys.column(name)) for name in keys.column_names})


def _numbers(column: pa.ChunkedArray, values: pa.Array) -> Positions:
    """The number of each value among ``values``, -1 for others."""
    found: Positions = pc.index_in(column, value_set=values).fill_null(-1).to_numpy().astype(np.int64)
    return found


def _dense(numbers: Positions) -> Positions:
    inverse: Positions = np.unique(numbers, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return inverse
