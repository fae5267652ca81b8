"""`FileIO`: the eleven verbs through which all bytes of a table pass."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.fileio.local import LocalStorage
from paimon_core.fileio.paths import absolute, join, scheme_of
from paimon_core.fileio.remote import RemoteStorage, open_filesystem
from paimon_core.fileio.s3 import SCHEMES, is_proven, is_s3_option, s3_arguments
from paimon_core.fileio.storage import UNKNOWN_MODIFIED, FileStatus, OutputStream, Storage

__all__ = ["UNKNOWN_MODIFIED", "FileIO", "FileStatus", "OutputStream", "absolute", "join"]


class FileIO:
    """Bytes in and out, on whatever store a path names.

    Paths are absolute strings in the user's spelling (``/a/b``, ``file:///a/b``, ``s3://bucket/a``). One
    FileIO serves every store its paths mention, for a table may keep data files elsewhere. A missing file is a
    ``FileNotFoundError``, any other failure of a store an ``OSError``.

    Travels to other processes as URL and options; connections are made where they are used, anew after
    a fork. Options (credentials!) are never shown.
    """

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._options = dict(storage_options or {})
        self._storages: dict[str, Storage] = {}
        self._process = os.getpid()

    @classmethod
    def of(cls, path: str, storage_options: Mapping[str, Any] | None = None) -> "FileIO":
        """Return the FileIO of a warehouse, table or file, without opening anything."""
        return cls(path, storage_options)

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        return self._storage(path).read(path)

    def open(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a seekable file for reading; a known ``size`` saves a request to remote stores."""
        return self._storage(path).open(path, size)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace, atomically on local disks and object stores; parent directories are made."""
        self._storage(path).write(path, data)

    def create(self, path: str) -> OutputStream:
        """Open a stream to a file of a fresh name; make its parent directories.

        Leaving a ``with`` block normally completes the file. It may be visible, incomplete, before.
        """
        return self._storage(path).create(path)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Create with this content unless the name is taken: False then, and nothing has changed.

        Atomic among all processes and machines. After an ``OSError`` the file may be there or not, and on S3
        False may mean this very call (`exclusive.put_if_absent`). UnsupportedError where no way is known.
        """
        return self._storage(path).create_exclusive(path, data)

    def sync(self, paths: Iterable[str], root: str) -> None:
        """Make files and their names survive a power cut, in parallel; directories up to ``root`` are included.

        Object stores do that by themselves. A missing file is passed over, but the directory that held it is synced:
        so a file that was deleted stays deleted. Raises OSError where a disk does not take what was written.
        """
        there: dict[str, list[str]] = {}
        for path in paths:
            there.setdefault(_place(path), []).append(path)
        for together in there.values():
            self._storage(together[0]).sync(together, root)

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return self._storage(path).exists(path)

    def list(self, directory: str) -> list[FileStatus]:
        """Return the entries of the directory, unordered; none if the directory is missing."""
        return self._storage(directory).list(directory)

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is fine."""
        self._storage(path).delete(path)

    def delete_directory(self, path: str) -> None:
        """Remove a directory and all below; a missing one is fine."""
        self._storage(path).delete_directory(path)

    def rename_directory(self, source: str, target: str) -> None:
        """Move; ``FileExistsError`` if the target exists. Atomic on local disks and HDFS only."""
        if scheme_of(source) != scheme_of(target):
            raise InvalidInputError(f"cannot rename {source} to {target}: they are on different stores")
        self._storage(source).rename_directory(source, target)

    @property
    def can_commit(self) -> bool:
        """Whether snapshots can be published safely on the store of the root; decided without I/O."""
        return self._storage(self._url).why_no_commit() is None

    def check_can_commit(self) -> None:
        """UnsupportedError, with the reason, where `can_commit` is false."""
        reason = self._storage(self._url).why_no_commit()
        if reason is not None:
            raise UnsupportedError(reason)

    def _storage(self, path: str) -> Storage:
        if self._process != os.getpid():  # connections and their threads do not survive a fork
            self._storages, self._process = {}, os.getpid()
        place = _place(path)
        found = self._storages.get(place)
        if found is None:
            found = self._storages.setdefault(place, self._make_storage(path))
        return found

    def _make_storage(self, path: str) -> Storage:
        scheme = scheme_of(path)
        if scheme == "file":
            return LocalStorage()
        if scheme in SCHEMES:
            arguments = s3_arguments(self._options)
            return RemoteStorage(open_filesystem("s3://", arguments), None, is_proven(arguments))
        options = {key: value for key, value in self._options.items() if not is_s3_option(key)}
        reason = (
            f"cannot commit to {hide_secrets(self._url)}: no safe way to create a snapshot file exactly once "
            f"is known for {scheme}:// stores; committing works on local disks and S3, reading everywhere"
        )
        return RemoteStorage(open_filesystem(path, options), reason)

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self._url, "options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._url, self._options = state["url"], state["options"]
        self._storages, self._process = {}, os.getpid()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileIO):
            return NotImplemented
        return type(self) is type(other) and (self._url, self._options) == (other._url, other._options)

    def __hash__(self) -> int:
        return hash(self._url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({hide_secrets(self._url)!r})"


def _place(path: str) -> str:
    """Return the storage that serves a path: all local files, all of S3, elsewhere one host or container."""
    scheme = scheme_of(path)
    if scheme == "file":
        return scheme
    return "s3" if scheme in SCHEMES else "/".join(path.split("/", 3)[:3])
