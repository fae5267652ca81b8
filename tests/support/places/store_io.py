"""A FileIO with the files of a `MemoryIO` on a store: the engine's fault tests run with it on each store.

Times of files are 0, as in memory.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from uuid import uuid4

import pyarrow as pa

from paimon_core.fileio.fileio import FileIO, FileStatus, OutputStream
from tests.support.faulty_io import MemoryIO

_ROOT, _SCHEME = "memory://", "memory:/"
_THREADS = 16


class StoreIO(MemoryIO):
    """Files below a new directory of a store; paths begin with ``memory://`` all the same. See `store_io`."""

    place: ClassVar[Callable[[], tuple[FileIO, str]]]
    """Returns the FileIO of the store and a directory on it."""

    def __init__(self, files: MutableMapping[str, bytes] | None = None, *, atomic_renames: bool = True) -> None:
        self._store, self._parent = type(self).place()
        super().__init__(
            dict(files.items()) if files else {}, atomic_renames=atomic_renames and self._store.renames_atomically
        )

    @property  # type: ignore[override]
    def files(self) -> MutableMapping[str, bytes]:
        """The content of all files by path."""
        return _Files(self)

    @files.setter
    def files(self, files: MutableMapping[str, bytes]) -> None:
        if isinstance(files, _Files):  # as with dictionaries, both have the same files from now on
            self._base = files.io._base
            return
        self._base = f"{self._parent}/{uuid4().hex[:12]}"  # HDFS would keep the directories of deleted files
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self.write, files.keys(), files.values()))

    def copy(self) -> "StoreIO":
        return type(self)(dict(self.files.items()), atomic_renames=self.atomic_renames)

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
        return [FileStatus(f"{path}/{s.name}", s.name, s.size, s.is_directory, 0) for s in found]

    def delete(self, path: str) -> None:
        self._store.delete(self._real(path))

    def delete_directory(self, path: str) -> None:
        self._store.delete_directory(self._real(path))

    def delete_empty_directory(self, path: str) -> bool:
        return self._store.delete_empty_directory(self._real(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._store.rename_directory(self._real(source), self._real(target))

    def paths(self, directory: str = _ROOT) -> Iterator[str]:
        """Yield the paths of all files below a directory."""
        for status in self.list(directory):
            if status.is_directory:
                yield from self.paths(status.path)
            else:
                yield status.path

    def _real(self, path: str) -> str:
        assert path.startswith(_SCHEME), path
        return f"{self._base}{path[len(_SCHEME) :]}".rstrip("/")


class _Files(MutableMapping[str, bytes]):
    """The files of a `StoreIO` as a dictionary. Its length costs listings, and each value a read."""

    def __init__(self, io: StoreIO) -> None:
        self.io = io

    def __getitem__(self, path: str) -> bytes:
        try:
            return self.io.read(path)
        except FileNotFoundError as error:
            raise KeyError(path) from error

    def __setitem__(self, path: str, data: bytes) -> None:
        self.io.write(path, data)

    def __delitem__(self, path: str) -> None:
        self.io.delete(path)

    def __contains__(self, path: object) -> bool:
        return path in set(self)

    def __iter__(self) -> Iterator[str]:
        return self.io.paths()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (dict, _Files)) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def items(self):  # type: ignore[no-untyped-def]
        """Read all files, several at a time."""
        paths = list(self)
        with ThreadPoolExecutor(_THREADS) as pool:
            return dict(zip(paths, pool.map(self.io.read, paths), strict=True)).items()


def store_io(place: Callable[[], tuple[FileIO, str]]) -> type[StoreIO]:
    """Return a class like `MemoryIO` whose files are on a store.

    ``place``: returns the FileIO of the store and a directory on it; it is called for each instance.
    """
    return type("StoreIO", (StoreIO,), {"place": staticmethod(place)})
