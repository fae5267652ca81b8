"""Dictionary encoding of a column over all rows of a file."""

import numpy as np
import pyarrow as pa

from paimon_core.fileindex.values import stored
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType


class Collected:
    """A dictionary-encoded column of a file. Memory: four bytes per row, and the distinct values of every batch."""

    def __init__(self, kind: AtomicType) -> None:
        self._kind = kind
        self._chunks: list[pa.DictionaryArray] = []

    def add(self, values: pa.Array) -> None:
        """Add the next rows."""
        self._chunks.append(stored(values, self._kind).dictionary_encode())

    def coded(self) -> tuple[pa.Array, np.ndarray]:
        """Return the distinct :func:`stored` values in order of occurrence, and each row's index in them (-1: null)."""
        chunks = self._chunks or [stored(pa.array([], to_arrow(self._kind)), self._kind).dictionary_encode()]
        whole = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        return whole.dictionary, whole.indices.fill_null(-1).to_numpy().astype(np.int64)


def grouped(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows by code. Return the codes and the row numbers, without rows whose code is -1."""
    order = np.argsort(codes, kind="stable")
    order = order[np.searchsorted(codes[order], 0) :]
    return codes[order], order
