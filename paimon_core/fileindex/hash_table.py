"""The iteration order of Java's HashMap. Java stores indexes in this order, and equal files need an equal order.

No library reproduces Java's order, so this module does. Bins of eight entries or more are trees in Java; the order of
their entries may differ here, which does not affect readers.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from paimon_core.row.murmur import byte_hashes
from paimon_core.row.stored_values import is_bytes
from paimon_core.types.datatype import AtomicType

_LEAST = 16


def walk(hashes: np.ndarray, grown_for: int, *, newest_first: bool) -> np.ndarray:
    """Return the positions of entries in iteration order.

    Args:
        hashes: int32 hashes of the entries, in the order of insertion.
        grown_for: the number of entries when the table's size was last checked.
        newest_first: True if a bin takes new entries at its head, as ``computeIfAbsent`` does; ``put`` appends.
    """
    size = _LEAST
    while grown_for > size * 3 // 4:
        size *= 2
    unsigned = hashes.astype(np.int32).view(np.uint32)
    bins = (unsigned ^ (unsigned >> np.uint32(16))) & np.uint32(size - 1)
    age = np.arange(len(hashes))
    return np.lexsort((-age if newest_first else age, bins))


def walked(names: Iterable[str], *, newest_first: bool = False) -> list[str]:
    """Return the distinct names in iteration order."""
    distinct = list(dict.fromkeys(names))
    hashes = np.array([text_hash(name) for name in distinct], np.int64).astype(np.int32)
    return [distinct[i] for i in walk(hashes, len(distinct), newest_first=newest_first)]


def text_hash(text: str) -> int:
    """Return Java's hash of a String, which hashes UTF-16 units, as an unsigned 32-bit number."""
    result = 0
    for unit in np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2").tolist():
        result = result * 31 + unit & 0xFFFFFFFF
    return result


def key_hashes(keys: pa.Array, kind: AtomicType) -> np.ndarray:
    """Return Java's int32 hashes of keys from :func:`paimon_core.fileindex.values.stored`."""
    if is_bytes(keys.type):
        return byte_hashes(keys)
    numbers: np.ndarray = keys.to_numpy()
    if kind.root == "BOOLEAN":
        return np.where(numbers != 0, 1231, 1237).astype(np.int32)
    if numbers.dtype.itemsize == 8:
        unsigned = numbers.view(np.uint64)
        numbers = (unsigned ^ (unsigned >> np.uint64(32))).astype(np.uint32).view(np.int32)
    return numbers.astype(np.int32)
