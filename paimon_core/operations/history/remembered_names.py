"""The names in manifests that this process has read: manifests never change, and each deleted tag needs them again."""

import threading
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

Names = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8]]
"""The hashes of the names in a manifest, and their signs."""
Key = tuple[str, str, int]
"""The identity of the FileIO, and the path and the size (bytes) of a manifest."""
_MOST_BYTES = 16 << 20
_OVERHEAD = 500  # bytes of a key and two arrays


class RememberedNames:
    """The names in the manifests that were read last. Thread-safe."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        """Remember nothing yet. ``most``: the limit in bytes; a manifest with more than an eighth is not remembered."""
        self._most, self._held = most, 0
        self._names: OrderedDict[Key, Names] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Names | None:
        """Return the names in a manifest, or `None` if they are not remembered."""
        with self._lock:
            names = self._names.get(key)
            if names is not None:
                self._names.move_to_end(key)
            return names

    def add(self, key: Key, names: Names) -> None:
        """Remember the names in a manifest, and forget those used longest ago if there is no room for all."""
        size = _size(names)
        if size > self._most // 8:
            return
        with self._lock:
            if key not in self._names:
                self._names[key] = names
                self._held += size
            while self._held > self._most:
                self._held -= _size(self._names.popitem(last=False)[1])


def _size(names: Names) -> int:
    hashes, signs = names
    return hashes.nbytes + signs.nbytes + _OVERHEAD
