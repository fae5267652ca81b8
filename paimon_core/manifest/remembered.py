"""The files of metadata that a statement or a catalog has read or written, so that it reads none of them twice."""

from typing import Any

from paimon_core.memory import LruCache

MOST_BYTES = 16 << 20
"""The most bytes of the files that are remembered."""


class RememberedFiles(LruCache[str, bytes]):
    """The content of manifests and manifest lists by path, the most recently used ones. Thread-safe.

    REQUIRES: no file is written twice under one path. Snapshots and schemas are not such files: a rollback, or a new
    table in the same directory, writes other files under their names.

    Args:
        most: the limit of bytes of all files.
        most_of_file: the bytes of the largest file that is remembered; `None`: ``most``.
    """

    def __init__(self, most: int = MOST_BYTES, most_of_file: int | None = None) -> None:
        super().__init__(most, len, most_of_file)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the files: a task starts without them."""
        return RememberedFiles, (self._most, self._most_of_one)
