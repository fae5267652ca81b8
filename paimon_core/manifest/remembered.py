"""The files of metadata that a statement or a catalog has read or written, so that it reads none of them twice."""

import threading
from collections import OrderedDict
from typing import Any

MOST_BYTES = 16 << 20
"""The most bytes of the files that are remembered."""


class RememberedFiles:
    """The content of manifests and manifest lists by path, the most recently used ones. Thread-safe.

    REQUIRES: no file is written twice under one path. Snapshots and schemas are not such files: a rollback, or a new
    table in the same directory, writes other files under their names.

    Args:
        most: the limit of bytes of all files.
        most_of_file: the bytes of the largest file that is remembered; `None`: ``most``.
    """

    def __init__(self, most: int = MOST_BYTES, most_of_file: int | None = None) -> None:
        self._most, self._size = most, 0
        self._most_of_file = most if most_of_file is None else min(most, most_of_file)
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the files: a task starts without them."""
        return RememberedFiles, (self._most, self._most_of_file)

    def get(self, path: str) -> bytes | None:
        """Return the content of a file; `None`: it is not remembered."""
        with self._lock:
            data = self._files.get(path)
            if data is not None:
                self._files.move_to_end(path)
            return data

    def put(self, path: str, data: bytes) -> None:
        """Remember a file that is not too large, and forget the least recently used files beyond the limit."""
        if len(data) > self._most_of_file:
            return
        with self._lock:
            self._size += len(data) - len(self._files.pop(path, b""))
            self._files[path] = data
            while self._size > self._most:
                _, oldest = self._files.popitem(last=False)
                self._size -= len(oldest)

    def forget(self, path: str) -> None:
        """Forget a file that is about to be deleted."""
        with self._lock:
            self._size -= len(self._files.pop(path, b""))
