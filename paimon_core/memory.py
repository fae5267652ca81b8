"""The memory of one read, one writer or one task, divided among its consumers (decision 41), and bounded caches."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from paimon_core.options.lsm import LOOKUP_CACHE_MAX_MEMORY_SIZE, MEMORY_LIMIT, WRITE_BUFFER_SIZE
from paimon_core.options.option import Options

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MIB = 1 << 20
_LEAST = 1 << 16  # of any share: smaller steps cost more than their rows


@dataclass(frozen=True, slots=True)
class MemoryShares:
    """The most bytes that each consumer takes. Rows count with their Arrow form.

    The defaults apply without ``memory-limit``. With it, a share is a fraction of the limit, and at most its default.
    The shares of options (`write_buffer`, `key_cache`, `key_index`) also grow.
    """

    batches: int = 32 * _MIB
    """Rows of one batch from each file that is read at the same time, in all; also the rows that a merge buffers."""
    decoders: int | None = None
    """Pages and dictionaries in the decoders of files that are merged. `None`: not limited."""
    write_buffer: int = 256 * _MIB
    """Rows in the buffers of a writer."""
    row_group: int = 32 * _MIB
    """Rows that the encoder of an open file holds."""
    footer: int | None = None
    """Metadata for the footers of open Parquet files: it grows with row groups and columns. `None`: not limited."""
    stripe: int = 64 * _MIB
    """Rows of a stripe, which the encoder of an open ORC file holds."""
    part: int = 16 * _MIB
    """Merged rows that a compaction passes to the encoder at once."""
    sort: int = 64 * _MIB
    """Rows that a clustering sorts at once."""
    sample: int = 64 * _MIB
    """Rows of the sample that divides a clustering into ranges."""
    key_cache: int = 256 * _MIB
    """Keys that `Table.get` keeps."""
    key_index: int = 1 << 30
    """Indexes of keys in a writer of dynamic or cross-partition buckets."""
    format_table: int = 128 * _MIB
    """Rows in the open files of a writer of a format table."""
    compared: int = 256 * _MIB
    """Rows that a change feed compares at once, without a primary key."""
    dense_keys: int = 64 * _MIB
    """Bytes that mark the keys that a masked read has seen."""
    threads: int | None = None
    """The most files, tasks or sections that one call works on at the same time. `None`: not limited."""

    @staticmethod
    def of(options: Options) -> "MemoryShares":
        """Return the shares of a table's options. An option for a single share wins over ``memory-limit``."""
        return _shares(
            options.value(MEMORY_LIMIT),
            options.value(WRITE_BUFFER_SIZE) if options.has(WRITE_BUFFER_SIZE) else None,
            options.value(LOOKUP_CACHE_MAX_MEMORY_SIZE) if options.has(LOOKUP_CACHE_MAX_MEMORY_SIZE) else None,
        )

    def at_most(self, threads: int) -> int:
        """Return the number of threads for work whose every call needs a share."""
        return threads if self.threads is None else min(threads, self.threads)


@lru_cache(maxsize=64)
def _shares(limit: int | None, write_buffer: int | None, lookup_cache: int | None) -> MemoryShares:
    """Return the shares. ``write_buffer``, ``lookup_cache``: the sizes that options set. `None`: not set."""
    of = MemoryShares()

    def share(default: int, parts: int) -> int:
        return default if limit is None else min(default, max(_LEAST, limit // parts))

    def free(default: int, parts: int) -> int:
        return default if limit is None else limit // parts

    return MemoryShares(
        batches=share(of.batches, 16),
        decoders=None if limit is None else limit // 4,
        write_buffer=free(of.write_buffer, 8) if write_buffer is None else write_buffer,
        row_group=share(of.row_group, 16),
        footer=None if limit is None else limit // 4,
        stripe=share(of.stripe, 8),
        part=share(of.part, 64),
        sort=share(of.sort, 16) if write_buffer is None else max(1, min(512 * _MIB, write_buffer // 4)),
        sample=share(of.sample, 16),
        key_cache=free(of.key_cache, 4) if lookup_cache is None else lookup_cache,
        key_index=free(of.key_index, 4) if lookup_cache is None else lookup_cache,
        format_table=share(of.format_table, 8),
        compared=share(of.compared, 8),
        dense_keys=share(of.dense_keys, 8),
        threads=None if limit is None else 1,
    )


class LruCache(Generic[K, V]):
    """The values that were used last, by key, within a limit of their sizes. Thread-safe."""

    def __init__(self, most: int, size_of: Callable[[V], int], most_of_one: int | None = None) -> None:
        """Create an empty cache.

        Args:
            most: the limit of the sizes of all values.
            size_of: returns the size of a value, always the same.
            most_of_one: the size of the largest value that is cached; `None`: ``most``.
        """
        self._most, self._size_of, self._size = most, size_of, 0
        self._most_of_one = most if most_of_one is None else min(most, most_of_one)
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The sizes of the cached values, in all."""
        return self._size

    def get(self, key: K) -> V | None:
        """Return the value of a key; `None`: it is not cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Cache a value that is not too large, and remove the values used longest ago beyond the limit."""
        size = self._size_of(value)
        if size > self._most_of_one:
            return
        with self._lock:
            self._remove(key)
            self._values[key] = value
            self._size += size
            while self._size > self._most:
                self._size -= self._size_of(self._values.popitem(last=False)[1])

    def forget(self, key: K) -> None:
        """Remove the value of a key, if it is cached."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: K) -> None:
        if key in self._values:
            self._size -= self._size_of(self._values.pop(key))
