"""A FileIO with the files of a `MemoryIO` on an object store: the engine's fault tests run with it on each store."""

from collections.abc import Iterable
from uuid import uuid4

import pyarrow as pa

from paimon_core.fileio.fileio import FileIO, FileStatus, OutputStream
from tests.support.faulty_io import MemoryIO

_ROOT, _SCHEME = "memory://", "memory:/"


class StoreIO(MemoryIO):
    """Files below a new directory of ``store``; paths begin with ``memory://`` all the same.

    ``store``: the FileIO of the store; ``root``: a directory on it.
    """

    def __init__(self, store: FileIO, root: str, files: dict[str, bytes] | None = None) -> None:
        self._store, self._parent = store, root
        self._base = f"{root}/{uuid4().hex[:12]}"
        super().__init__(files, atomic_renames=False)

    @property  # type: ignore[override]
    def files(self) -> dict[str, bytes]:
        """The content of all files by path."""
        return {path: self.read(path) for path in self._paths(_ROOT)}

    @files.setter
    def files(self, files: dict[str, bytes]) -> None:
        for path, data in files.items():
            self.write(path, data)

    def copy(self) -> "StoreIO":
        return StoreIO(self._store, self._parent, self.files)

    def read(self, path: str) -> bytes:
        return self._store.read(self._real(path))

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        return self._store.open(self._real(path), size)

    def write(self, path: str, data: bytes) -> None:
        self._store.write(self._real(path), bytes(data))

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        self._store.write_parts(self._real(path), parts)

    def copy_within(self, source: str, target: str, *, may_link: bool = False) -> bool:
        return self._store.copy_within(self._real(source), self._real(target), may_link=may_link)

    def create(self, path: str) -> OutputStream:
        return self._store.create(self._real(path))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        return self._store.create_exclusive(self._real(path), data)

    def exists(self, path: str) -> bool:
        return self._store.exists(self._real(path))

    def list(self, directory: str) -> list[FileStatus]:
        found = self._store.list(self._real(directory))
        path = _SCHEME if directory == _ROOT else directory.rstrip("/")
        return [FileStatus(f"{path}/{s.name}", s.name, s.size, s.is_directory, s.modified_ms) for s in found]

    def delete(self, path: str) -> None:
        self._store.delete(self._real(path))

    def delete_directory(self, path: str) -> None:
        self._store.delete_directory(self._real(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._store.rename_directory(self._real(source), self._real(target))

    def _real(self, path: str) -> str:
        assert path.startswith(_SCHEME), path
        return f"{self._base}{path[len(_SCHEME) :]}".rstrip("/")

    def _paths(self, directory: str) -> Iterable[str]:
        for status in self.list(directory):
            if status.is_directory:
                yield from self._paths(status.path)
            else:
                yield status.path
