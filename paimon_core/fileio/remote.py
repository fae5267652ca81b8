"""The storage of remote files, on every store that fsspec knows: object stores, HDFS, HTTP, memory."""

import errno
import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa

from paimon_core.errors import (
    InvalidInputError,
    MissingDependencyError,
    PaimonError,
    UnsupportedError,
    hide_secrets,
    user_info,
)
from paimon_core.fileio.exclusive import put_if_absent as put_by_condition
from paimon_core.fileio.paths import join
from paimon_core.fileio.storage import UNKNOWN_MODIFIED, FileStatus, OutputStream

WHOLE_FILE = 8 << 20
"""The size in bytes up to which a file is read in one request, because a second request costs more than these bytes."""

READ_AHEAD = 4 << 20
"""The size in bytes of the window through which a larger file is read."""

_DELETIONS = 3
"""Attempts to delete everything in a directory, to which others may still write."""

_MODIFIED_KEYS = ("LastModified", "mtime", "last_modified", "updated", "modified", "created")
PutIfAbsent: TypeAlias = Callable[[Any, str, bytes], bool]
"""A function that creates an object with a key and content; it returns False if the key is taken."""

_PASSED_ON = (OSError, PaimonError, TypeError, AttributeError, ImportError)
"""Errors that are not wrapped in an OSError, because they are OSErrors or bugs."""


class RemoteStorage:
    """The storage of one fsspec file system.

    Args:
        filesystem: the fsspec file system.
        no_commit: the reason why snapshots cannot be published on this store; `None`: `put_if_absent` is atomic.
        proven: False: the first `create_exclusive` tests that the store honours conditional puts, as some do not.
        flat: True if a directory is only a prefix of names.
        put_if_absent: the atomic step of commits; `None`: a conditional put as on S3.
    """

    def __init__(
        self,
        filesystem: Any,
        no_commit: str | None,
        proven: bool = True,
        *,
        flat: bool = False,
        put_if_absent: PutIfAbsent | None = None,
    ) -> None:
        self._fs, self._no_commit, self._proven = filesystem, no_commit, proven
        self._flat, self._put_if_absent = flat, put_if_absent or put_by_condition

    def read(self, path: str) -> bytes:
        """Return the whole file, in one request."""
        with storage_errors(path):
            return bytes(self._fs.cat_file(self._key(path)))

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        """Open a file: a small one is read at once, a larger one through a read-ahead window."""
        with storage_errors(path):
            key = self._key(path)
            known = self._fs.info(key).get("size") if size is None else size
            if known is not None and known <= WHOLE_FILE:
                return pa.BufferReader(self._fs.cat_file(key))
            cache = {"cache_type": "readahead", "block_size": READ_AHEAD}
            return pa.PythonFile(_RemoteSource(self._fs.open(key, "rb", **cache), path), "r")

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file; atomic on object stores."""
        with storage_errors(path):
            self._make_parents(path)
            self._fs.pipe_file(self._key(path), data)

    def create(self, path: str) -> OutputStream:
        """Open an upload in parts; the file is visible after ``close``."""
        with storage_errors(path):
            self._make_parents(path)
            return _RemoteSink(self._fs.open(self._key(path), "wb"), path)

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Upload a file in parts. It becomes visible when it is complete, except on HDFS and similar stores."""
        with self.create(path) as sink:
            for part in parts:
                sink.write(part)

    def copy_within(self, source: str, target: str, may_link: bool) -> bool:
        """Let an object store copy the object. For other stores, fsspec would send the bytes through this process."""
        if not self._flat:
            return False
        with storage_errors(source):
            self._fs.cp_file(self._key(source), self._key(target))
        return True

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Create a file by conditional put, see `exclusive.put_if_absent`."""
        if self._no_commit:
            raise UnsupportedError(self._no_commit)
        with storage_errors(path):
            if not self._proven:
                self._check_conditional_put(path)
                self._proven = True
            return self._put_if_absent(self._fs, self._key(path), data)

    def sync(self, paths: Sequence[str], root: str) -> None:
        """Do nothing: a store keeps every complete file."""

    def exists(self, path: str) -> bool:
        """Return True if the path exists. ``fs.exists`` is not used: it returns False if the request fails."""
        with storage_errors(path):
            try:
                self._fs.info(self._key(path))
            except FileNotFoundError:
                return False
            return True

    def list(self, directory: str) -> list[FileStatus]:
        """Return the entries of a directory, never from a cache."""
        with storage_errors(directory):
            key = self._key(directory)
            self._fs.invalidate_cache(key)
            try:
                entries = self._fs.ls(key, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [
                _status(directory, entry, is_directory=entry.get("type") == "directory")
                for entry in entries
                if entry["name"].strip("/") != key.strip("/")  # the marker object of the directory itself
            ]

    def delete(self, path: str) -> None:
        """Remove a file, if it exists."""
        with storage_errors(path), suppress(FileNotFoundError):
            self._fs.rm_file(self._key(path))

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it, if it exists.

        Clients hide failures of single objects, as s3fs ignores the errors of a batch. So a listing checks the result.
        Raises OSError if files are left.
        """
        left: list[FileStatus] = []
        for _ in range(_DELETIONS):
            with storage_errors(path), suppress(FileNotFoundError):
                self._fs.invalidate_cache(self._key(path))
                self._fs.rm(self._key(path), recursive=True)
            left = self.list(path)
            if not left:
                return
        names = ", ".join(sorted(status.name for status in left)[:3])
        text = f"the directory still has entries after {_DELETIONS} deletions, such as {names}; delete it again"
        raise OSError(errno.EIO, text, hide_secrets(path))

    def delete_empty_directory(self, path: str) -> bool:
        """Return False: most stores have no directories, and on other stores an empty directory is harmless."""
        return False

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory. On object stores this is not atomic: objects are copied, and then deleted."""
        if self.exists(target):
            raise FileExistsError(f"cannot rename {source} to {target}: the target exists")
        with storage_errors(source):
            if not self.exists(source):
                raise FileNotFoundError(errno.ENOENT, "no such directory", source)
            if not self._flat:
                self._make_parents(target)
                self._fs.mv(self._key(source), self._key(target), recursive=True)
                return
            old, new = self._key(source).rstrip("/"), self._key(target).rstrip("/")
            self._fs.invalidate_cache(old)
            keys = list(self._fs.find(old))
            for key in keys:  # object by object: fsspec's mv would copy prefixes as if they were objects
                self._fs.cp_file(key, new + key[len(old) :])
            for key in keys:
                with suppress(FileNotFoundError):  # a repeated request after a lost answer
                    self._fs.rm_file(key)

    def why_no_commit(self) -> str | None:
        """Return the reason given to this storage."""
        return self._no_commit

    def _key(self, path: str) -> str:
        return str(self._fs._strip_protocol(path))

    def _make_parents(self, path: str) -> None:
        """Create the parent directories on HDFS and similar stores; on S3, the call would try to create a bucket."""
        if not self._flat:
            self._fs.makedirs(self._fs._parent(self._key(path)), exist_ok=True)

    def _check_conditional_put(self, path: str) -> None:
        """Check that the store refuses to create a hidden probe in the directory of ``path`` a second time."""
        probe = self._key(join(path.rpartition("/")[0], f".probe.{uuid4()}.tmp"))
        try:
            try:
                put = self._put_if_absent  # a client that repeats the first put finds its own file
                first = put(self._fs, probe, b"1") or self._fs.cat_file(probe) == b"1"
                honoured = first and not put(self._fs, probe, b"2")
            except OSError as error:
                if error.errno == errno.ENOSYS:
                    raise UnsupportedError(_no_condition(path)) from error
                raise
            if not honoured:
                raise UnsupportedError(_no_condition(path))
        finally:
            self._fs.rm_file(probe)


def open_filesystem(url: str, options: Mapping[str, Any], package: str | None = None, client: str | None = None) -> Any:
    """Return the fsspec file system of a URL.

    Args:
        url: a path on the store.
        options: the arguments of the file system.
        package: the package that pip installs for the client; `None`: the fsspec package of the scheme.
        client: the file system's class as ``module:name``; `None`: fsspec's class of the scheme.

    Raises MissingDependencyError if the client is not installed, UnsupportedError if fsspec does not know the scheme,
    InvalidInputError if the client refuses the options.
    """
    import fsspec  # noqa: PLC0415 - local tables start a tenth faster without fsspec and its asyncio

    scheme = url.partition(":")[0]
    try:
        if client is not None:
            return _open_client(url, options, client)
        return fsspec.core.url_to_fs(url, **options)[0]
    except ImportError as error:
        needed = f"pip install '{package}'" if package else f"install the fsspec package for {scheme}"
        raise MissingDependencyError(f"a package for {scheme}:// paths is missing: {needed} ({error})") from error
    except ValueError as error:
        if client is not None:
            raise InvalidInputError(f"cannot connect to {hide_secrets(url)}: {error}") from None
        raise UnsupportedError(f"no store is known for {hide_secrets(url)}: {error}") from error


def _open_client(url: str, options: Mapping[str, Any], client: str) -> Any:
    """Return the file system of a class. Arguments that the URL gives, such as an account, win over the options."""
    module, _, name = client.partition(":")
    filesystem = getattr(importlib.import_module(module), name)
    return filesystem(**{**options, **filesystem._get_kwargs_from_urls(url)})


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Raise every failure of a store's client as an ``OSError`` that names the path.

    If the path holds a password, the error does not contain the password, and the client's error is not its cause.
    """
    secret = user_info(path)
    try:
        yield
    except _PASSED_ON as error:
        if secret is None:
            raise
        raise _without(secret, error) from None
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if secret is None:
            raise OSError(errno.EIO, text, path) from error
        raise OSError(errno.EIO, text.replace(secret, "***"), hide_secrets(path)) from None


def _without(secret: str, error: Exception) -> Exception:
    """Return the error with ``***`` in place of the secret."""
    parts = (error.errno, error.strerror, error.filename) if isinstance(error, OSError) and error.errno else error.args
    return type(error)(*(part.replace(secret, "***") if isinstance(part, str) else part for part in parts))


def _no_condition(path: str) -> str:
    return (
        f"the store of {hide_secrets(path)} does not honour conditional puts (such as If-None-Match: *), so two "
        "writers could both believe they committed; use a store or bucket that does, or upgrade it. Reading works"
    )


def _status(directory: str, entry: Mapping[str, Any], is_directory: bool) -> FileStatus:
    name = entry["name"].rstrip("/").rpartition("/")[2]
    size = 0 if is_directory else int(entry.get("size") or 0)
    return FileStatus(join(directory, name), name, size, is_directory, _modified_ms(entry))


def _modified_ms(entry: Mapping[str, Any]) -> int:
    value = next((entry[key] for key in _MODIFIED_KEYS if entry.get(key)), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return UNKNOWN_MODIFIED
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return int(aware.timestamp() * 1000)
    return int(value * 1000) if isinstance(value, (int, float)) else UNKNOWN_MODIFIED


class _RemoteSource(io.RawIOBase):
    """A remote file to read, whose failures are OSErrors; pyarrow serialises the calls."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        with storage_errors(self._path):
            return bytes(self._file.read(size))

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _RemoteSink(io.RawIOBase):
    """An upload that `close` completes, and that an error in its ``with`` block discards."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path, self._written = file, path, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with storage_errors(self._path):
            size = memoryview(data).nbytes
            self._file.write(bytes(data))
            self._written += size
            return size

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Do nothing: a part is sent when it is full."""

    def close(self) -> None:
        if self.closed:
            return
        try:
            with storage_errors(self._path):
                self._file.close()
        finally:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        discard: Callable[[], object] | None = getattr(self._file, "discard", None)
        if discard is not None:
            with storage_errors(self._path):
                discard()
            self._file.closed = True  # without this, the clean-up of the file would complete the upload
        super().close()
