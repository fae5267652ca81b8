"""The names in manifests that this process has read: manifests never change, and each deleted tag needs them again."""

import numpy as np
import numpy.typing as npt

from paimon_core.memory import LruCache

Names = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8]]
"""The hashes of the names in a manifest, and their signs."""
Key = tuple[str, str, int]
"""The identity of the FileIO, and the path and the size (bytes) of a manifest."""
_MOST_BYTES = 16 << 20
_OVERHEAD = 500  # bytes of a key and two arrays


class RememberedNames(LruCache[Key, Names]):
    """The names in the manifests that were read last. Thread-safe."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        """Remember nothing yet. ``most``: the limit in bytes; a manifest with more than an eighth is not remembered."""
        super().__init__(most, _size, most // 8)


def _size(names: Names) -> int:
    hashes, signs = names
    return hashes.nbytes + signs.nbytes + _OVERHEAD
