"""What a kind of store must offer, and what its listings say: the inner side of `FileIO`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

UNKNOWN_MODIFIED = 2**63 - 1
"""The modification time of a file whose store does not tell: never mistaken for an old file."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a listing; ``path`` starts as the listed directory was spelled; ``modified_ms`` is epoch ms."""

    path: str = field(repr=False)
    name: str
    size: int
    is_directory: bool
    modified_ms: int


class OutputStream(Protocol):
    """A file being written. Leaving its ``with`` block normally completes it."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""

    def write(self, data: Any, /) -> object:
        """Append bytes (any buffer)."""

    def tell(self) -> int:
        """Bytes written so far."""

    def flush(self) -> object:
        """Hand over what is buffered, as far as the store can."""

    def close(self) -> object:
        """Complete the file."""

    def __enter__(self) -> Any: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


class Storage(Protocol):
    """One kind of store. The verbs mean what they mean in `FileIO`; every storage failure is an ``OSError``."""

    def read(self, path: str) -> bytes: ...  # noqa: D102 - documented once, in FileIO

    def open(self, path: str, size: int | None) -> pa.NativeFile: ...  # noqa: D102

    def write(self, path: str, data: bytes) -> None: ...  # noqa: D102

    def create(self, path: str) -> OutputStream: ...  # noqa: D102

    def create_exclusive(self, path: str, data: bytes) -> bool: ...  # noqa: D102

    def sync(self, paths: Sequence[str], root: str) -> None: ...  # noqa: D102

    def exists(self, path: str) -> bool: ...  # noqa: D102

    def list(self, directory: str) -> "list[FileStatus]": ...  # noqa: D102

    def delete(self, path: str) -> None: ...  # noqa: D102

    def delete_directory(self, path: str) -> None: ...  # noqa: D102

    def rename_directory(self, source: str, target: str) -> None: ...  # noqa: D102

    def why_no_commit(self) -> str | None:
        """Why this store cannot publish snapshots safely; None where it can."""
