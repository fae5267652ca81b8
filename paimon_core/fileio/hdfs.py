"""The storage of HDFS. A rename that refuses an existing target is the atomic step of commits, as in Java.

The name node renames a file in one step. So writers of this engine and of Paimon's Java engine commit to one table at
the same time, without a lock.
"""

import errno
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar

import pyarrow as pa

from paimon_core.fileio.exclusive import temporary_name
from paimon_core.fileio.hdfs_client import PREFIXES, HdfsClient, hdfs_client, hdfs_settings
from paimon_core.fileio.paths import join
from paimon_core.fileio.remote import READ_AHEAD, WHOLE_FILE
from paimon_core.fileio.storage import FileStatus, MissingDirectoryError, OutputStream, Storage
from paimon_core.fileio.store import Store

T = TypeVar("T")
_PART = 1 << 20
"""The bytes that a stream collects before it sends them."""
_TRIES = 5  # attempts to create a directory that other processes remove
_WRITES = 4
"""Attempts to write a small file. With ``dfs.data.transfer.protection``, hdfs-native sometimes writes to a data node
that has everything and has closed the connection, and then reports that all nodes failed.
"""
_FAILED = "All nodes failed for write"


class HdfsStorage:
    """The storage of one name service of HDFS.

    Args:
        client: the client.
        fixed: directories that writes must not create; see `FileIO.inside`.
    """

    def __init__(self, client: HdfsClient, fixed: Sequence[str] = ()) -> None:
        self._client = client
        self._fixed = tuple(_key(directory) for directory in fixed)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        reader = self._reader(path)
        parts = [_part(self._client, path, reader, at, READ_AHEAD) for at in range(0, len(reader), READ_AHEAD)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        """Open a file: a small one is read at once, a larger one through a read-ahead window."""
        reader = self._reader(path)
        if len(reader) <= WHOLE_FILE:
            return pa.BufferReader(_part(self._client, path, reader, 0, WHOLE_FILE))
        return pa.PythonFile(_Source(self._client, path, reader), "r")

    def write(self, path: str, data: bytes) -> None:
        """Replace a file atomically: readers see the old content or the new one."""
        self.write_parts(path, (data,))

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Replace a file atomically; its bytes are synced before it gets its name."""
        temporary = temporary_name(path)
        with self.create(temporary) as sink:
            for part in parts:
                sink.write(part)
        try:
            self._rename(temporary, path, overwrite=True)
        except OSError:
            # If the hidden file is there, the rename never happens. If both are missing, the directory was removed.
            if self._discard(temporary) or not self.exists(path):
                raise

    def copy_within(self, source: str, target: str, may_link: bool) -> bool:
        """Return False: HDFS does not copy files."""
        return False

    def create(self, path: str) -> OutputStream:
        """Open a new file under its final name: no reader opens the file before a commit names it."""
        options = self._client.write_options()
        key = _key(path)

        def created() -> Any:
            return self._client.call(path, lambda client: client.create(key, options))

        return _Sink(self._client, path, self._with_parents(path, created), created)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Create a file by a rename that refuses an existing target.

        If the answer is lost, the hidden file is deleted. If it existed, the rename did not happen, and will not
        happen, because its source is missing. After a TimeoutError the file may exist.
        """
        temporary = temporary_name(path)
        with self.create(temporary) as sink:
            sink.write(data)
        try:
            self._rename(temporary, path, overwrite=False)
        except TimeoutError:
            raise
        except OSError as error:
            if self._discard(temporary):
                if isinstance(error, FileExistsError):
                    return False
                raise
            if self.read(path) != data:
                raise
        return True

    def sync(self, paths: Sequence[str], root: str) -> None:
        """Do nothing: each file is synced when it is closed, and the name node syncs names."""

    def exists(self, path: str) -> bool:
        """Return True if the path is a file or directory. Raises OSError for any failure except a missing path."""
        try:
            self._status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, directory: str) -> list[FileStatus]:
        """Return the entries of a directory, page by page."""
        key = _key(directory)
        try:
            found = self._client.call(directory, lambda client: list(client.list_status(key)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            FileStatus(join(directory, name), name, status.length, status.isdir, status.modification_time)
            for status in found
            if status.path != key and (name := status.path.rpartition("/")[2])  # a file lists itself
        ]

    def delete(self, path: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._discard(path)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it, if it exists, in one step."""
        key = _key(path)
        with suppress(FileNotFoundError, NotADirectoryError):
            deleted = self._client.call(path, lambda client: client.delete(key, True))
            if not deleted and self.exists(path):
                raise OSError(errno.EIO, "HDFS did not delete the directory", path)

    def delete_empty_directory(self, path: str) -> bool:
        """Remove a directory if it is empty; return True if it was removed."""
        key = _key(path)
        try:
            return bool(self._status(path).isdir and self._client.call(path, lambda client: client.delete(key, False)))
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.ENOENT, errno.ENOTDIR):
                return False
            raise

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory, atomically. Raises FileExistsError if the target exists."""
        self._status(source)
        taken = self.exists(target)
        try:
            if not taken:
                self._with_parents(target, lambda: self._rename(source, target, overwrite=False), lost=source)
        except FileExistsError:
            taken = True
        except OSError:  # the answer may be lost
            if self.exists(source) or not self.exists(target):
                raise
        if taken:
            raise FileExistsError(f"cannot rename {source} to {target}: the target exists")

    def why_no_commit(self) -> str | None:
        """Return `None`: a rename lets one of several writers win."""
        return None

    def _reader(self, path: str) -> Any:
        key = _key(path)
        return self._client.call(path, lambda client: client.read(key))

    def _status(self, path: str) -> Any:
        key = _key(path)
        return self._client.call(path, lambda client: client.get_file_info(key))

    def _discard(self, path: str) -> bool:
        """Delete a file; return True if it existed."""
        key = _key(path)
        return bool(self._client.call(path, lambda client: client.delete(key, False)))

    def _rename(self, source: str, target: str, *, overwrite: bool) -> None:
        old, new = _key(source), _key(target)
        self._client.call(target, lambda client: client.rename(old, new, overwrite))

    def _with_parents(self, path: str, action: Callable[[], T], lost: str | None = None) -> T:
        """Run an action; if the directory of ``path`` is missing, create it and run the action again.

        Args:
            path: the file or directory that the action creates.
            action: the action, which raises FileNotFoundError if the directory is missing.
            lost: a path whose absence is not the directory's; `None`: no such path.
        """
        parent = path.rpartition("/")[0]
        tries = 0
        while True:
            try:
                return action()
            except FileNotFoundError:
                if tries == _TRIES or (lost is not None and not self.exists(lost)):
                    raise
            tries += 1
            self._make(parent, path)

    def _make(self, directory: str, path: str) -> None:
        """Create a directory and its missing parents. Raises MissingDirectoryError if a fixed directory is missing."""
        inner = _key(directory)
        tops = [top for top in self._fixed if inner == top or inner.startswith(f"{top}/")]
        permission = 0o777 & ~self._client.settings.umask
        if not tops:
            self._client.call(path, lambda client: client.mkdirs(inner, permission, True))
            return
        top = max(tops, key=len)
        level = top
        try:
            self._client.call(path, lambda client: client.get_file_info(top))
            for name in inner[len(top) :].split("/")[1:]:
                level = f"{level}/{name}"
                self._client.call(path, partial(_make_directory, level, permission))
        except FileNotFoundError:
            try:
                self._client.call(path, lambda client: client.get_file_info(top))
            except FileNotFoundError:
                raise MissingDirectoryError(
                    f"{path} cannot be written: there is no directory {top}. The table, database or branch there was "
                    "dropped or renamed: open it by its name"
                ) from None


class _Source(io.RawIOBase):
    """A file to read through a window; pyarrow serialises the calls."""

    def __init__(self, client: HdfsClient, path: str, reader: Any) -> None:
        self._client, self._path, self._reader = client, path, reader
        self._size, self._at = len(reader), 0
        self._start, self._window = 0, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        wanted = self._size - self._at if size < 0 else min(size, self._size - self._at)
        if wanted <= 0:
            return b""
        begin = self._at - self._start
        if not 0 <= begin <= len(self._window) - wanted:
            size = max(wanted, READ_AHEAD)
            self._window = _part(self._client, self._path, self._reader, self._at, size)
            self._start, begin = self._at, 0
        self._at += wanted
        return self._window[begin : begin + wanted]

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


class _Sink(io.RawIOBase):
    """A new file that `close` completes and syncs, and that an error in its ``with`` block deletes.

    Args:
        client: the client.
        path: the path, which no other process writes to.
        writer: hdfs-native's writer of the file.
        again: replaces the failed file by an empty one, and returns its writer.
    """

    def __init__(self, client: HdfsClient, path: str, writer: Any, again: Callable[[], Any]) -> None:
        self._client, self._path, self._writer, self._again = client, path, writer, again
        self._written = 0
        self._buffer = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        self._written += view.nbytes
        self._buffer += view
        if len(self._buffer) >= _PART:
            self._send()
        return view.nbytes

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Do nothing: a part is sent when it is full."""

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._finish()
        finally:
            super().close()

    def _finish(self) -> None:
        """Send the rest, and complete the file. If that fails, write it again, unless parts were sent before."""
        data = bytes(self._buffer) if len(self._buffer) == self._written else None
        for left in reversed(range(_WRITES)):
            try:
                self._send()
                self._client.bounded(self._path, self._complete)
                return
            except OSError as error:
                if data is None or not left or _FAILED not in str(error):
                    raise
            self._writer = self._again()
            self._buffer += data

    def _send(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        for at in range(0, len(data), READ_AHEAD):
            part = data[at : at + READ_AHEAD]
            self._client.bounded(self._path, partial(self._writer.write, part))

    def _complete(self) -> None:
        if self._written:
            with suppress(NotImplementedError):  # files with erasure codes cannot be synced
                self._writer.hsync()
        self._writer.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        super().close()
        key = _key(self._path)
        with suppress(OSError):
            self._client.call(self._path, lambda client: client.delete(key, False))


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsStore(Store):
    """HDFS, through hdfs-native."""

    @property
    def commits(self) -> bool:
        """True: a rename that refuses an existing target is safe."""
        return True

    def client_key(self, path: str) -> str:
        """Return the scheme and the name service of a path."""
        return _authority(path)

    def open(self, path: str, options: Mapping[str, Any], fixed: Sequence[str], no_commit: str | None) -> Storage:
        """See `Store.open`."""
        client = hdfs_client(_authority(path), hdfs_settings(options))
        return HdfsStorage(client, [top for top in fixed if _authority(top) == _authority(path)])


def _authority(path: str) -> str:
    """Return ``hdfs://host:port`` of a path; ``hdfs://``: the path names no host, so the configuration does."""
    scheme, _, rest = path.partition(":")
    host = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    return f"{scheme.lower()}://{host}"


def _key(path: str) -> str:
    """Return the path of a file on its name service."""
    rest = path.partition(":")[2]
    inner = "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest
    return "/" + "/".join(name for name in inner.split("/") if name)


def _make_directory(path: str, permission: int, client: Any) -> None:
    client.mkdirs(path, permission, False)


def _part(client: HdfsClient, path: str, reader: Any, at: int, size: int) -> bytes:
    """Return at most ``size`` bytes from ``at`` (hdfs-native panics behind the end of a file)."""
    size = min(size, len(reader) - at)
    return client.bounded(path, lambda: bytes(reader.read_range(at, size))) if size > 0 else b""


HDFS: Final = HdfsStore(
    title="HDFS",
    schemes=("hdfs", "viewfs"),
    options=PREFIXES,
    own_options=True,
    renames_atomically=True,
    keeps_fixed=True,
    high_latency=True,
    package="pyspark-paimon[hdfs]",
)
