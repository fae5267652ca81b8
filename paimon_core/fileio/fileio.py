"""`FileIO`: the methods with which the engine reads and writes all bytes of a table."""

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.fileio.paths import absolute, join, scheme_of
from paimon_core.fileio.storage import UNKNOWN_MODIFIED, FileStatus, MissingDirectoryError, OutputStream, Storage
from paimon_core.fileio.stores import committing_stores, options_for, store_of

__all__ = ["UNKNOWN_MODIFIED", "FileIO", "FileStatus", "MissingDirectoryError", "OutputStream", "absolute", "join"]


class FileIO:
    """Input and output of bytes on the store that a path names.

    Paths are absolute strings in the user's spelling (``/a/b``, ``file:///a/b``, ``s3://bucket/a``). One FileIO serves
    several stores, because the data files of a table may be on another store. A missing file raises
    ``FileNotFoundError``; any other failure of a store raises ``OSError``.

    A pickled FileIO holds its URL and options. Each process opens separate connections, also after a fork. The repr
    hides the options, because they may hold credentials.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None, fixed: Sequence[str] = ()) -> None:
        self._url, self._fixed = url, tuple(fixed)
        self._options = dict(storage_options or {})
        self._storages: dict[str, Storage] = {}
        self._process = os.getpid()

    @classmethod
    def of(cls, path: str, storage_options: Mapping[str, Any] | None = None) -> "FileIO":
        """Return the FileIO of a warehouse, table or file, without any I/O."""
        return cls(path, storage_options)

    def inside(self, *directories: str) -> "FileIO":
        """Return a FileIO that never creates these directories or their parents.

        If one is missing, a write into it raises MissingDirectoryError. So a writer does not recreate a directory that
        was dropped or renamed. Stores without directories and subclasses without an override ignore the call.
        """
        store = store_of(self._url)
        if type(self) is not FileIO or not store.keeps_fixed or directories == self._fixed:
            return self
        found = FileIO(self._url, self._options, directories)
        own = store.client_key(self._url)
        found._storages = {key: storage for key, storage in self._storages.items() if key != own}
        found._process = self._process
        return found

    @property
    def identity(self) -> str:
        """A text that is equal for FileIOs of the same URL and options, and does not show the options."""
        return blake2b(repr((self._url, sorted(self._options.items()))).encode(), digest_size=16).hexdigest()

    @property
    def has_options(self) -> bool:
        """True if storage options change how the store of the URL is reached. They never do on local disks."""
        store = store_of(self._url)
        return scheme_of(self._url) != "file" and bool(options_for(store, self._options))

    @property
    def renames_atomically(self) -> bool:
        """True if `rename_directory` is one step on the store of the URL: local disks and HDFS."""
        return store_of(self._url).renames_atomically

    @property
    def high_latency(self) -> bool:
        """True if each request to the store of the URL waits for a network: object stores and HDFS."""
        return store_of(self._url).high_latency

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""
        return self._storage(path).read(path)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a seekable file for reading; a known ``size`` saves a request to remote stores."""
        return self._storage(path).open(path, size)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file, atomically on local disks and object stores; make its parent directories."""
        self._storage(path).write(path, data)

    def create(self, path: str) -> OutputStream:
        """Open a stream to a new file; make its parent directories.

        REQUIRES: no file has this name. Leaving a ``with`` block without an error completes the file. Before that the
        file may be visible and incomplete.
        """
        return self._storage(path).create(path)

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Create or replace a file with the concatenated parts; atomic where `write` is.

        A file that exists after a crash is complete. Memory: one part.
        """
        self._storage(path).write_parts(path, parts)

    def copy_within(self, source: str, target: str, *, may_link: bool = False) -> bool:
        """Let the store copy a file, without its bytes passing through this process; return False if it cannot.

        Atomic. ``may_link``: True if the copy may share its bytes with the source; then neither may be changed in
        place.
        """
        if _client_key(source) != _client_key(target):
            return False
        return self._storage(source).copy_within(source, target, may_link)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Create a file with this content; return False, and change nothing, if the name is taken.

        Atomic among all processes and machines. After an ``OSError`` the file may exist or not. On object stores, False
        may be the result of this call's own put (`exclusive.put_if_absent`): see `create_or_match`. Raises
        UnsupportedError if the store has no safe method.
        """
        return self._storage(path).create_exclusive(path, data)

    def create_or_match(self, path: str, data: bytes) -> bool:
        """Create a file as `create_exclusive` does; on object stores, return True also for a file of this content.

        There, the client may have repeated a put whose answer was lost. So if several processes create the same content
        at the same time, all may get True.
        """
        if self.create_exclusive(path, data):
            return True
        if not store_of(path).object_store:
            return False
        try:
            return self.read(path) == data
        except FileNotFoundError:  # deleted since
            return False

    def sync(self, paths: Iterable[str], root: str) -> None:
        """Sync files and their directories up to ``root``, in parallel, so that they survive a power cut.

        Object stores need no sync. A missing file is skipped, but its directory is synced, so that a deleted file stays
        deleted. Raises OSError if a disk does not store the content.
        """
        by_store: dict[str, list[str]] = {}
        for path in paths:
            by_store.setdefault(_client_key(path), []).append(path)
        for stored in by_store.values():
            self._storage(stored[0]).sync(stored, root)

    def exists(self, path: str) -> bool:
        """Return True if the path is a file or directory. Raises OSError if the store does not answer."""
        return self._storage(path).exists(path)

    def list(self, directory: str) -> list[FileStatus]:
        """Return the entries of a directory, unordered; `[]`: the directory is empty or missing."""
        return self._storage(directory).list(directory)

    def delete(self, path: str) -> None:
        """Remove a file, if it exists."""
        self._storage(path).delete(path)

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it, if it exists."""
        self._storage(path).delete_directory(path)

    def delete_empty_directory(self, path: str) -> bool:
        """Remove a directory if it is empty; return True if it was removed.

        Atomic: a file that another process creates at the same time stays. Object stores have no directories: False.
        """
        return self._storage(path).delete_empty_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory; atomic on local disks and HDFS only. Raises FileExistsError if the target exists."""
        if scheme_of(source) != scheme_of(target):
            raise InvalidInputError(f"cannot rename {source} to {target}: they are on different stores")
        self._storage(source).rename_directory(source, target)

    @property
    def can_commit(self) -> bool:
        """True if snapshots can be published safely on the store of the URL. Costs no I/O."""
        return self._storage(self._url).why_no_commit() is None

    def check_can_commit(self) -> None:
        """Raise UnsupportedError with the reason if `can_commit` is False."""
        reason = self._storage(self._url).why_no_commit()
        if reason is not None:
            raise UnsupportedError(reason)

    def _storage(self, path: str) -> Storage:
        if self._process != os.getpid():  # connections and their threads do not survive a fork
            self._storages, self._process = {}, os.getpid()
        key = _client_key(path)
        storage = self._storages.get(key)
        return storage or self._storages.setdefault(key, self._open_storage(path))

    def _open_storage(self, path: str) -> Storage:
        store = store_of(path)
        no_commit = (
            f"cannot commit to {hide_secrets(self._url)}: no safe way to create a snapshot file exactly once "
            f"is known for {scheme_of(path)}:// stores; committing works on {committing_stores()}, reading everywhere"
        )
        return store.open(path, options_for(store, self._options), self._fixed, None if store.commits else no_commit)

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self._url, "options": self._options, "fixed": self._fixed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._url, self._options, self._fixed = state["url"], state["options"], state["fixed"]
        self._storages, self._process = {}, os.getpid()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileIO):
            return NotImplemented
        return type(self) is type(other) and (self._url, self._options) == (other._url, other._options)

    def __hash__(self) -> int:
        return hash(self._url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({hide_secrets(self._url)!r})"


def _client_key(path: str) -> str:
    return store_of(path).client_key(path)
