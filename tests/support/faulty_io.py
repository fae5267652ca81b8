"""A FileIO that fails at its N-th call, in each of the ways storage fails; and one in memory, to copy and compare.

::

    before        the call did nothing and raised
    lost-answer   the call did its work and raised
    torn          the call did half of its work; then the process died
    crash         the process died before the call
    interrupt     Ctrl-C before the call, in its thread

After a death the io is frozen: every further call, clean-up included, dies too, as a dead process does nothing.
"""

import errno
import io
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar

import pyarrow as pa

from paimon_core.fileio.exclusive import temporary_name
from paimon_core.fileio.fileio import FileIO, FileStatus, OutputStream, join

T = TypeVar("T")

Mode = Literal["before", "lost-answer", "torn", "crash", "interrupt"]
MODES: tuple[Mode, ...] = ("before", "lost-answer", "torn", "crash")


class Crash(BaseException):
    """The process died here; nothing after this point runs."""


class FaultyIO(FileIO):
    """Passes every call on to ``inner`` except call number ``at`` (from 0), which fails as ``mode`` says.

    A stream counts twice: when it is created, and when it is closed, where its bytes go out. ``log`` holds
    ``(method, path)`` of every call; a dry run with ``at=-1`` counts the calls.
    """

    def __init__(self, inner: FileIO, at: int = -1, mode: Mode = "before") -> None:
        super().__init__(inner._url, inner._options)
        self.inner = inner
        self.at = at
        self.mode = mode
        self.log: list[tuple[str, str]] = []
        self._death: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """Calls seen so far."""
        return len(self.log)

    @property
    def frozen(self) -> bool:
        """True after a death."""
        return bool(self._death)

    def inside(self, *directories: str) -> "FaultyIO":
        """Return a view of this io: it shares the counter, the log and the death."""
        inner = self.inner.inside(*directories)
        if inner is self.inner:
            return self
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found.inner = inner
        return found

    @property
    def identity(self) -> str:
        return self.inner.identity

    @property
    def renames_atomically(self) -> bool:
        return self.inner.renames_atomically

    def read(self, path: str) -> bytes:
        return self._call("read", path, lambda: self.inner.read(path))

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        return self._call("open", path, lambda: self.inner.open(path, size))

    def write(self, path: str, data: bytes) -> None:
        # replacing is atomic: what a death leaves is a temporary file
        self._call("write", path, lambda: self.inner.write(path, data), lambda: self._leave_temporary(path, data))

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        data = b"".join(parts)  # whose calls come first
        self._call("write", path, lambda: self.inner.write(path, data), lambda: self._leave_temporary(path, data))

    def copy_within(self, source: str, target: str, *, may_link: bool = False) -> bool:
        return self._call("copy_within", target, lambda: self.inner.copy_within(source, target, may_link=may_link))

    def create(self, path: str) -> OutputStream:
        return self._call("create", path, lambda: _FaultyStream(self, path))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        return self._call(
            "create_exclusive",
            path,
            lambda: self.inner.create_exclusive(path, data),
            lambda: self._leave_temporary(path, data),
        )

    def sync(self, paths: Iterable[str], root: str) -> None:
        self._call("sync", root, lambda: self.inner.sync(paths, root))

    def exists(self, path: str) -> bool:
        return self._call("exists", path, lambda: self.inner.exists(path))

    def list(self, directory: str) -> list[FileStatus]:
        return self._call("list", directory, lambda: self.inner.list(directory))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.inner.delete(path))

    def delete_directory(self, path: str) -> None:
        self._call("delete_directory", path, lambda: self.inner.delete_directory(path), lambda: self._delete_half(path))

    def delete_empty_directory(self, path: str) -> bool:
        return self._call("delete_empty_directory", path, lambda: self.inner.delete_empty_directory(path))

    def rename_directory(self, source: str, target: str) -> None:
        self._call("rename_directory", source, lambda: self.inner.rename_directory(source, target))

    @property
    def can_commit(self) -> bool:
        return self.inner.can_commit

    def check_can_commit(self) -> None:
        self.inner.check_can_commit()

    def _call(self, verb: str, path: str, act: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        with self._lock:
            if self.frozen:
                raise Crash(verb, path)
            number = len(self.log)
            self.log.append((verb, path))
            hit = number == self.at
            if hit and self.mode in ("torn", "crash"):
                self._death.append((verb, path))
        if not hit:
            return act()
        if self.mode == "before":
            raise OSError(errno.EIO, "injected: nothing was done", path)
        if self.mode == "interrupt":
            raise KeyboardInterrupt(verb, path)
        if self.mode == "lost-answer":
            act()
            raise OSError(errno.ETIMEDOUT, "injected: done, but the answer was lost", path)
        if self.mode == "torn" and half is not None:
            half()
        raise Crash(verb, path)

    def _leave_temporary(self, path: str, data: bytes) -> None:
        self.inner.write(temporary_name(path), data[: len(data) // 2])

    def _delete_half(self, path: str) -> None:
        entries = sorted(self.inner.list(path), key=lambda entry: entry.name)
        for entry in entries[: (len(entries) + 1) // 2]:
            (self.inner.delete_directory if entry.is_directory else self.inner.delete)(entry.path)


class _FaultyStream(io.BytesIO):
    """Holds its bytes back until closed, so that the fault decides how many arrive."""

    def __init__(self, owner: FaultyIO, path: str) -> None:
        super().__init__()
        self._owner = owner
        self._path = path

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        self._owner._call("close", self._path, lambda: self._put(data), lambda: self._put(data[: len(data) // 2]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Crash):
            super().close()
        else:
            self.close()

    def __del__(self) -> None:
        """Send nothing: the stream was never closed."""

    def _put(self, data: bytes) -> None:
        with self._owner.inner.create(self._path) as sink:
            sink.write(data)


SAVED = {"comment": "A database without tables is a file, and so among the files of a `MemoryIO`, on HDFS, too."}
"""Properties of such a database."""


class MemoryIO(FileIO):
    """Files in a dictionary, created exclusively under a lock; commits are allowed. Directories are prefixes.

    ``atomic_renames``: a directory is renamed in one step, as on a disk; False: as on an object store.
    """

    _numbers = itertools.count()

    def __init__(self, files: dict[str, bytes] | None = None, *, atomic_renames: bool = True) -> None:
        super().__init__("memory://")
        self._number = next(self._numbers)
        self.atomic_renames = atomic_renames
        self.files = dict(files or {})
        self._lock = threading.Lock()

    def copy(self) -> "MemoryIO":
        """The same files, from here on apart."""
        return MemoryIO(self.files, atomic_renames=self.atomic_renames)

    @property
    def identity(self) -> str:
        return f"memory {self._number}"

    @property
    def renames_atomically(self) -> bool:
        return self.atomic_renames

    def read(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self.files[path] = bytes(data)

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        self.write(path, b"".join(parts))

    def copy_within(self, source: str, target: str, *, may_link: bool = False) -> bool:
        """Like a disk: a file gets a second name."""
        if may_link:
            self.write(target, self.read(source))
        return may_link

    def create(self, path: str) -> OutputStream:
        return _MemoryStream(self, path)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        with self._lock:
            if path in self.files:
                return False
            self.files[path] = bytes(data)
            return True

    def sync(self, paths: Iterable[str], root: str) -> None:
        """Memory has nothing to be pushed to."""

    def exists(self, path: str) -> bool:
        return path in self.files or any(True for _ in self._below(path))

    def list(self, directory: str) -> list[FileStatus]:
        found: dict[str, FileStatus] = {}
        start = len(join(directory, "x")) - 1
        for path in self._below(directory):
            name, slash, _ = path[start:].partition("/")
            size = 0 if slash else len(self.files[path])
            found[name] = FileStatus(join(directory, name), name, size, bool(slash), 0)
        return list(found.values())

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

    def delete_directory(self, path: str) -> None:
        for below in self._below(path):
            self.delete(below)

    def delete_empty_directory(self, path: str) -> bool:
        return False

    def rename_directory(self, source: str, target: str) -> None:
        if self.exists(target):
            raise FileExistsError(errno.EEXIST, "the target exists", target)
        with self._lock:
            paths = self._below(source)
            if not paths:
                raise FileNotFoundError(errno.ENOENT, "no such directory", source)
            for path in paths:
                self.files[target.rstrip("/") + path[len(source.rstrip("/")) :]] = self.files.pop(path)

    @property
    def can_commit(self) -> bool:
        return True

    def check_can_commit(self) -> None:
        """Always possible."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("files in memory do not travel to other processes")

    def _below(self, directory: str) -> Sequence[str]:
        prefix = join(directory, "x")[:-1]
        return [path for path in list(self.files) if path.startswith(prefix)]


class _MemoryStream(io.BytesIO):
    def __init__(self, owner: MemoryIO, path: str) -> None:
        super().__init__()
        self._owner = owner
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._owner.write(self._path, self.getvalue())
        super().close()
