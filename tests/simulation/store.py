"""The stores of the simulation: files in memory, behind the storage interface of `FileIO`.

Every call is one step, or several where a real store sends several requests: a directory is deleted file by file, and
an object store renames object by object. The scheduler decides at each step what happens.

Two flavours, after `LocalStorage` and `RemoteStorage`:

- ``local``: directories exist by themselves, a directory is renamed in one step, and a new file is visible while it is
  being written. A process that dies leaves temporary files.
- ``object``: directories are prefixes of names, a file is visible when it is complete, and a rename is a copy of each
  object and then a deletion of each.

Nothing is forgotten: `Disk.content` returns the last content of a name, also after the file was deleted. So the oracle
reads a snapshot that has expired since.
"""

import errno
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

import pyarrow as pa

from paimon_core.fileio import storage
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.paths import join
from paimon_core.fileio.storage import FileStatus, OutputStream

T = TypeVar("T")
MISSING: type[OSError] = getattr(storage, "MissingDirectoryError", FileNotFoundError)
"""The error of a write into a directory that must not be made."""
Flavour = Literal["local", "object"]
WAREHOUSES: dict[Flavour, str] = {"local": "/simulated/w", "object": "s3://simulated/w"}


@dataclass(frozen=True, slots=True)
class File:
    """One content of a name; ``number`` is unique, ``by`` the id of the operation that wrote it."""

    number: int
    data: bytes
    modified_ms: int
    by: int


@dataclass(frozen=True, slots=True)
class Change:
    """A file that appeared or vanished, by an operation."""

    path: str
    before: File | None
    after: File | None
    by: int


class Disk:
    """The files of a store, as a tree of names. Only `Storage` and the oracle know it.

    ``remembers``: False to forget the content of a file when it is deleted.
    """

    def __init__(self, flavour: Flavour, *, remembers: bool = True) -> None:
        self.flavour = flavour
        self._remembers = remembers
        self.files: dict[str, File] = {}
        self.on_change: Callable[[list[Change]], object] = len  # nothing
        self._children: dict[str, set[str]] = {"": set()}
        self._former: dict[str, File] = {}
        self._numbers = itertools.count(1)
        self._touched: dict[str, int] = {}

    def content(self, path: str) -> bytes:
        """Return the last content of a name, deleted or not."""
        found = self.files.get(path) or self._former.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found.data

    def put(self, path: str, data: bytes, now: int, by: int) -> None:
        """Create or replace a file and its directories."""
        parent, _, _ = path.rpartition("/")
        self.make_directories(parent)
        before = self.files.get(path)
        after = File(next(self._numbers), bytes(data), now, by)
        self._put(path, after)
        self._touched[parent] = now
        self.on_change([Change(path, before, after, by)])

    def remove(self, path: str, by: int) -> bool:
        """Remove a file; return False if it does not exist."""
        before = self.files.get(path)
        if before is None:
            return False
        self._take(path)
        self.on_change([Change(path, before, None, by)])
        return True

    def move(self, source: str, target: str, by: int) -> None:
        """Rename a directory in one step, with everything in it."""
        self.make_directories(target.rpartition("/")[0])
        moved = [path for path in self.files if path.startswith(source + "/")]
        names = [name for name in self._children if name == source or name.startswith(source + "/")]
        taken = {path: self.files[path] for path in moved}
        for path in moved:
            self._take(path)
        for name in sorted(names, reverse=True):
            self._drop_directory(name)
        for name in names:
            self.make_directories(target + name[len(source) :])
        for path, file in taken.items():
            self._put(target + path[len(source) :], file)
        gone = [Change(path, file, None, by) for path, file in taken.items()]
        new = [Change(target + path[len(source) :], None, file, by) for path, file in taken.items()]
        self.on_change([*gone, *new])

    def is_directory(self, path: str) -> bool:
        """Return True if the directory exists; on an object store: if an object is in it."""
        return path in self._children

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._children.get(directory, ()))

    def touched_ms(self, directory: str) -> int:
        """Return when a file was last put into a directory (epoch ms)."""
        return self._touched.get(directory, 0)

    def make_directories(self, path: str) -> None:
        """Make a directory and its parents."""
        if path not in self._children:
            parent, _, name = path.rpartition("/")
            self.make_directories(parent)
            self._children[path] = set()
            self._children[parent].add(name)

    def remove_directory(self, path: str) -> bool:
        """Remove a directory if it is empty; return False if it is not empty or not there."""
        if self._children.get(path) != set():
            return False
        self._drop_directory(path)
        return True

    def _put(self, path: str, file: File) -> None:
        parent, _, name = path.rpartition("/")
        self._children[parent].add(name)
        self.files[path] = file
        if self._remembers:
            self._former[path] = file

    def _take(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        del self.files[path]
        self._children[parent].discard(name)
        while self.flavour == "object" and parent and not self._children[parent]:
            self._drop_directory(parent)
            parent = parent.rpartition("/")[0]

    def _drop_directory(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        self._children.pop(path, None)
        if parent in self._children:
            self._children[parent].discard(name)


class Stepper(Protocol):
    """The scheduler, as a store sees it."""

    def step(self, verb: str, path: str, act: Callable[[], T], partly: Callable[[], object] | None = None) -> T:
        """Let the scheduler decide, then run ``act``, or fail; ``partly`` is what a death in the middle leaves."""

    @property
    def now(self) -> int:
        """Epoch milliseconds."""

    @property
    def operation(self) -> int:
        """The id of the operation that the caller runs."""

    def new_name(self) -> str:
        """Return a unique name."""


class SimulatedStorage:
    """The storage of one disk, which gives the turn to the scheduler at every request."""

    def __init__(self, disk: Disk, stepper: Stepper, fixed: Sequence[str] = ()) -> None:
        self._disk, self._stepper, self._fixed = disk, stepper, tuple(fixed)
        self._local = disk.flavour == "local"

    def inside(self, directories: Sequence[str]) -> "SimulatedStorage":
        """Return the storage that makes none of these directories."""
        return type(self)(self._disk, self._stepper, directories) if self._local else self

    @property
    def renames_atomically(self) -> bool:
        """True if a directory is renamed in one step."""
        return self._local

    # ---- files

    def read(self, path: str) -> bytes:
        return self._step("read", path, lambda: self._content(path))

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        return pa.BufferReader(self._step("open", path, lambda: self._content(path)))

    def write(self, path: str, data: bytes) -> None:
        self._step("write", path, lambda: self._put(path, data), lambda: self._leave_temporary(path, data))

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        self.write(path, b"".join(parts))

    def create(self, path: str) -> OutputStream:
        self._step("create", path, lambda: self._put(path, b"") if self._local else None)
        return _Sink(self, path)

    def finish(self, path: str, data: bytes) -> None:
        """Complete a stream."""
        half = (lambda: self._put(path, data[: len(data) // 2])) if self._local else None
        self._step("close", path, lambda: self._put(path, data), half)

    def copy_within(self, source: str, target: str, may_link: bool) -> bool:
        if self._local and not may_link:
            return False
        self._step("copy", target, lambda: self._put(target, self._content(source)))
        return True

    def create_exclusive(self, path: str, data: bytes) -> bool:
        def create() -> bool:
            if path in self._disk.files:
                return False
            self._put(path, data)
            return True

        return self._step("create_exclusive", path, create, lambda: self._leave_temporary(path, data))

    def sync(self, paths: Sequence[str], root: str) -> None:
        if self._local and paths:
            self._step("sync", paths[0], lambda: None)

    def exists(self, path: str) -> bool:
        return self._step("exists", path, lambda: path in self._disk.files or self._disk.is_directory(path))

    def list(self, directory: str) -> "list[FileStatus]":
        return self._step("list", directory, lambda: self._entries(directory))

    def delete(self, path: str) -> None:
        self._step("delete", path, lambda: self._remove(path))

    # ---- directories

    def delete_directory(self, path: str) -> None:
        path = path.rstrip("/")
        if not self._local:
            for key in self._step("list", path, lambda: self._below(path)):
                self.delete(key)
            return
        try:
            self._remove_tree(path)
        except FileNotFoundError:
            if self.exists(path):
                self._remove_tree(path, ignore_errors=True)

    def delete_empty_directory(self, path: str) -> bool:
        if not self._local:
            return False
        return self._step("rmdir", path, lambda: self._disk.remove_directory(path.rstrip("/")))

    def rename_directory(self, source: str, target: str) -> None:
        source, target = source.rstrip("/"), target.rstrip("/")
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "the target exists", target)
        if self._local:
            self._step("rename", source, lambda: self._move(source, target))
            return
        if not self.exists(source):
            raise FileNotFoundError(errno.ENOENT, "no such directory", source)
        keys = self._step("list", source, lambda: self._below(source))
        for key in keys:
            self.copy_within(key, target + key[len(source) :], may_link=False)
        for key in keys:
            self.delete(key)

    def why_no_commit(self) -> str | None:
        return None

    # ---- inside

    def _step(self, verb: str, path: str, act: Callable[[], T], partly: Callable[[], object] | None = None) -> T:
        return self._stepper.step(verb, path, act, partly)

    def _content(self, path: str) -> bytes:
        found = self._disk.files.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found.data

    def _put(self, path: str, data: bytes) -> None:
        missing = [top for top in self._fixed if path.startswith(top + "/") and not self._disk.is_directory(top)]
        if missing:
            raise MISSING(f"{path} cannot be written: there is no directory {missing[0]}")
        self._disk.put(path, data, self._stepper.now, self._stepper.operation)

    def _remove(self, path: str) -> bool:
        return self._disk.remove(path, self._stepper.operation)

    def _leave_temporary(self, path: str, data: bytes) -> None:
        """Leave what a local disk holds of a file that was being written under a hidden name."""
        if self._local:
            directory, _, name = path.rpartition("/")
            self._put(join(directory, f".{name}.{self._stepper.new_name()}.tmp"), data[: len(data) // 2])

    def _below(self, path: str) -> Sequence[str]:
        return sorted(key for key in self._disk.files if key.startswith(path + "/"))

    def _entries(self, directory: str) -> "list[FileStatus]":
        return list(_statuses(self._disk, directory.rstrip("/"), directory))

    def _move(self, source: str, target: str) -> None:
        if not self._disk.is_directory(source):
            raise FileNotFoundError(errno.ENOENT, "no such directory", source)
        if self._disk.names(target):
            raise OSError(errno.ENOTEMPTY, "the target is not empty", target)
        self._disk.remove_directory(target)
        self._disk.move(source, target, self._stepper.operation)

    def _remove_tree(self, path: str, *, ignore_errors: bool = False) -> None:
        """Remove a directory as `shutil.rmtree` does: list it, remove what was listed, then the directory."""

        def listed() -> Sequence[str]:
            if not self._disk.is_directory(path):
                raise FileNotFoundError(errno.ENOENT, "no such directory", path)
            return self._disk.names(path)

        def unlink(file: str) -> None:
            if not self._remove(file) and not ignore_errors:
                raise FileNotFoundError(errno.ENOENT, "no such file", file)

        def remove_directory() -> None:
            if not self._disk.remove_directory(path) and not ignore_errors:
                raise OSError(errno.ENOTEMPTY, "directory not empty", path)

        for name in self._step("list", path, listed):
            inner = join(path, name)
            if self._disk.is_directory(inner):
                self._remove_tree(inner, ignore_errors=ignore_errors)
            else:
                self._step("delete", inner, lambda inner=inner: unlink(inner))
        self._step("rmdir", path, remove_directory)


def _statuses(disk: Disk, key: str, shown: str) -> Iterator[FileStatus]:
    for name in disk.names(key):
        path = f"{key}/{name}"
        file = disk.files.get(path)
        if file is None:
            yield FileStatus(join(shown, name), name, 0, True, disk.touched_ms(path))
        else:
            yield FileStatus(join(shown, name), name, len(file.data), False, file.modified_ms)


class _Sink(io.BytesIO):
    """A stream that sends its bytes when it is closed; after an error in its block, as much as a real one would."""

    def __init__(self, storage: SimulatedStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        self._storage.finish(self._path, data)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._storage._local:
            super().close()  # the upload is discarded
        else:
            self.close()

    def __del__(self) -> None:
        """Send nothing: the stream was not closed."""


class SimulatedIO(FileIO):
    """A FileIO whose every path leads to one simulated storage."""

    _numbers = itertools.count()

    def __init__(self, storage: Any, identity: str | None = None) -> None:
        super().__init__("simulated")
        self._simulated = storage
        self._identity = identity or f"simulated {next(self._numbers)}"

    def __reduce__(self) -> tuple[type["SimulatedIO"], tuple[Any]]:
        """Pickle the storage as well."""
        return SimulatedIO, (self._simulated,)

    def _storage(self, path: str) -> Any:
        return self._simulated

    def inside(self, *directories: str) -> "SimulatedIO":
        """Return the same files, but none of these directories is made."""
        return SimulatedIO(self._simulated.inside(directories), self._identity)

    @property
    def identity(self) -> str:
        """The same text for all that `inside` returns."""
        return self._identity

    @property
    def renames_atomically(self) -> bool:
        """True if a directory is renamed in one step."""
        return self._simulated.renames_atomically

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class GodStorage:
    """The storage of the oracle: it reads and lists without a step.

    ``former``: it also reads files that were deleted, but does not list them.
    """

    def __init__(self, disk: Disk, *, former: bool) -> None:
        self._disk, self._former = disk, former

    def read(self, path: str) -> bytes:
        if self._former:
            return self._disk.content(path)
        found = self._disk.files.get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found.data

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def exists(self, path: str) -> bool:
        return path in self._disk.files or self._disk.is_directory(path.rstrip("/"))

    def list(self, directory: str) -> "list[FileStatus]":
        return list(_statuses(self._disk, directory.rstrip("/"), directory))

    def inside(self, directories: Sequence[str]) -> "GodStorage":
        return self

    def why_no_commit(self) -> str | None:
        return "the oracle only reads"
