"""A cache of decoded metadata: a table is planned again and again, and most of its manifests do not change."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_ENTRIES = 20_000
"""Maximum number of cached entries: some 20 MB for a table with few columns. A larger manifest is not cached."""


class DecodedFiles(Generic[T]):
    """A cache of the most recently used manifests or manifest lists, by the content of their files. Thread-safe.

    A file that was damaged or replaced under the same name counts as another file. ``most``: the limit of entries.
    """

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most, self._count = most, 0
        self._entries: OrderedDict[tuple[bytes, bool], Sequence[T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, data: bytes, with_stats: bool, decode: Callable[[], list[T]]) -> list[T]:
        """Return the entries of a file.

        Args:
            data: the bytes of the file.
            with_stats: True if the entries have statistics.
            decode: a function that returns the entries if they are not cached.
        """
        key = hashlib.blake2b(data, digest_size=16).digest(), with_stats
        with self._lock:
            cached = self._entries.get(key)
            if cached is not None:
                self._entries.move_to_end(key)
        if cached is not None:
            return list(cached)
        entries = decode()
        if len(entries) <= self._most:
            self._add(key, tuple(entries))
        return entries

    def _add(self, key: tuple[bytes, bool], entries: Sequence[T]) -> None:
        with self._lock:
            if key not in self._entries:
                self._entries[key] = entries
                self._count += len(entries)
            while self._count > self._most:
                _, oldest = self._entries.popitem(last=False)
                self._count -= len(oldest)
