"""The interface of a kind of store behind `FileIO`, and the entries of its listings."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from paimon_core.errors import NotFoundError

UNKNOWN_MODIFIED = 2**63 - 1
"""The modification time of a file whose store reports no time, so that the file never counts as old."""


class FileStatus(NamedTuple):
    """One entry of a listing; ``path`` begins with the directory as the caller wrote it; ``modified_ms``: epoch ms.

    A tuple: directories may have millions of entries, and a frozen dataclass needs three times the CPU time.
    """

    path: str
    name: str
    size: int
    is_directory: bool
    modified_ms: int

    def __repr__(self) -> str:
        """Return a text without the path, which may contain a password."""
        others = f"size={self.size}, is_directory={self.is_directory}, modified_ms={self.modified_ms}"
        return f"FileStatus(name={self.name!r}, {others})"


class MissingDirectoryError(NotFoundError, FileNotFoundError):
    """A write into a directory that is missing and must not be created, because its table or branch was dropped.

    Nothing was written. Like every failure of a store it is an ``OSError``, with a message like a `NotFoundError`.
    """


class OutputStream(Protocol):
    """A file being written. Leaving its ``with`` block without an error completes the file."""

    @property
    def closed(self) -> bool:
        """True after `close`."""

    def write(self, data: Any, /) -> object:
        """Append bytes (any buffer)."""

    def tell(self) -> int:
        """Return the number of bytes written so far."""

    def flush(self) -> object:
        """Send buffered bytes, as far as the store can."""

    def close(self) -> object:
        """Complete the file."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


class Storage(Protocol):
    """A kind of store, with the same methods as `FileIO`. Every failure of the store is an ``OSError``."""

    def read(self, path: str) -> bytes: ...  # noqa: D102 - documented once, in FileIO

    def open(self, path: str, size: int | None) -> pa.NativeFile: ...  # noqa: D102

    def write(self, path: str, data: bytes) -> None: ...  # noqa: D102

    def create(self, path: str) -> OutputStream: ...  # noqa: D102

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None: ...  # noqa: D102

    def copy_within(self, source: str, target: str, may_link: bool) -> bool: ...  # noqa: D102

    def create_exclusive(self, path: str, data: bytes) -> bool: ...  # noqa: D102

    def sync(self, paths: Sequence[str], root: str) -> None: ...  # noqa: D102

    def exists(self, path: str) -> bool: ...  # noqa: D102

    def list(self, directory: str) -> "list[FileStatus]": ...  # noqa: D102

    def delete(self, path: str) -> None: ...  # noqa: D102

    def delete_directory(self, path: str) -> None: ...  # noqa: D102

    def delete_empty_directory(self, path: str) -> bool: ...  # noqa: D102

    def rename_directory(self, source: str, target: str) -> None: ...  # noqa: D102

    def why_no_commit(self) -> str | None:
        """Return the reason why this store cannot publish snapshots safely; `None`: it can."""
