"""The storage of local files, with plain system calls."""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from paimon_core.fileio.durable import make_directories, sync_all, sync_directory
from paimon_core.fileio.exclusive import NO_HARD_LINKS, link_exclusive, temporary_name
from paimon_core.fileio.paths import join, local_path, scheme_of
from paimon_core.fileio.storage import FileStatus, MissingDirectoryError, OutputStream, Storage
from paimon_core.fileio.store import Store

T = TypeVar("T")
_NO_LINK = NO_HARD_LINKS | {errno.EXDEV}
_TRIES = 5  # attempts to create a directory that other processes remove
_NOT_REMOVED = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY}


class LocalStorage:
    """The storage of the local file system and of everything mounted in it.

    Args:
        fixed: directories that writes must not create; see `FileIO.inside`.
    """

    def __init__(self, fixed: Sequence[str] = ()) -> None:
        self._fixed = tuple(os.path.normpath(local_path(directory)) for directory in fixed)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with open(local_path(path), "rb") as file:
            return file.read()

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        """Open a file; threads read it at the same time by ``pread`` and release the interpreter lock."""
        return pa.OSFile(local_path(path), "rb")

    def write(self, path: str, data: bytes) -> None:
        """Replace a file atomically: readers see the old content or the new one."""
        self._replace(path, (data,))

    def write_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Replace a file atomically; its bytes are synced before it gets its name."""
        self._replace(path, parts, synced=True)

    def copy_within(self, source: str, target: str, may_link: bool) -> bool:
        """Create a hard link as the copy, if that is allowed and possible."""
        old, new = local_path(source), local_path(target)
        if not may_link or os.path.islink(old):  # a link to a symbolic link may lead nowhere
            return False
        try:
            self._with_parents(new, lambda: os.link(old, new), synced=True)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            return False
        return True

    def _replace(self, path: str, parts: Iterable[bytes], *, synced: bool = False) -> None:
        """Write a file under a temporary name, and rename it when it is complete."""
        target = local_path(path)
        temporary = temporary_name(target)
        try:
            with self._with_parents(target, lambda: open(temporary, "wb"), synced=True) as file:
                for part in parts:
                    file.write(part)
                if synced:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            self.delete(temporary)
            raise

    def create(self, path: str) -> OutputStream:
        """Open a new file under its final name: no reader opens the file before a commit names it."""
        target = local_path(path)
        stream: OutputStream = self._with_parents(target, lambda: pa.OSFile(target, "wb"))
        return stream

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """Create a file with a hard link, see `link_exclusive`; sync the directories created for it."""
        target = local_path(path)
        return self._with_parents(target, lambda: link_exclusive(target, data), synced=True)

    def sync(self, paths: Sequence[str], root: str) -> None:
        """Sync the files and their directories, up to the root."""
        sync_all([local_path(path) for path in paths], local_path(root) if scheme_of(root) == "file" else None)

    def exists(self, path: str) -> bool:
        """Return True if the path is a file or directory. Raises OSError for any failure except a missing path."""
        try:
            os.stat(local_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, directory: str) -> list[FileStatus]:
        """Return the entries of a directory, without entries that are deleted during the call."""
        found: list[FileStatus] = []
        parent = join(directory, "x")[:-1]
        try:
            with os.scandir(local_path(directory) or ".") as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    modified = status.st_mtime_ns // 1_000_000
                    name = entry.name
                    found.append(FileStatus(parent + name, name, status.st_size, entry.is_dir(), modified))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return found

    def delete(self, path: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(local_path(path))

    def delete_directory(self, path: str) -> None:
        """Remove a directory with everything in it, if it exists; for a symbolic link, remove only the link."""
        if os.path.islink(local_path(path)):
            self.delete(path)
            return
        try:
            shutil.rmtree(local_path(path))
        except FileNotFoundError:
            if self.exists(path):  # another process removed a file during the walk: walk once more
                shutil.rmtree(local_path(path), ignore_errors=True)

    def delete_empty_directory(self, path: str) -> bool:
        """Remove a directory if it is empty, by ``rmdir``; return True if it was removed."""
        try:
            os.rmdir(local_path(path))
        except OSError as error:
            if error.errno in _NOT_REMOVED:
                return False
            raise
        return True

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory, atomically within one file system. Raises FileExistsError if the target exists."""
        if self.exists(target):
            raise FileExistsError(f"cannot rename {source} to {target}: the target exists")
        old, new = local_path(source), local_path(target)
        try:
            self._with_parents(new, lambda: os.rename(old, new), synced=True)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise FileExistsError(f"cannot rename {source} to {target}: the target exists") from error
        for parent in {os.path.dirname(old), os.path.dirname(new)}:
            sync_directory(parent)

    def why_no_commit(self) -> str | None:
        """Return `None`: a hard link lets one of several writers win."""
        return None

    def _with_parents(self, path: str, action: Callable[[], T], *, synced: bool = False) -> T:
        """Run an action; if the directory of ``path`` is missing, create it and run the action again.

        This is cheaper than creating the directory every time. Another process may remove an empty directory in
        between.

        Args:
            path: the file that the action creates.
            action: the action, which raises FileNotFoundError if the directory is missing.
            synced: True to sync the created directories.
        """
        parent = os.path.dirname(path)
        tries = 0
        while True:
            try:
                return action()
            except FileNotFoundError:
                if tries == _TRIES or not parent:
                    raise
            tries += 1
            self._make(parent, path, synced=synced)

    def _make(self, directory: str, path: str, *, synced: bool) -> None:
        """Create a directory and its missing parents. Raises MissingDirectoryError if a fixed directory is missing."""
        inner = os.path.normpath(directory)
        tops = [top for top in self._fixed if inner == top or inner.startswith(os.path.join(top, ""))]
        if not tops:
            make_directories(directory) if synced else os.makedirs(directory, exist_ok=True)
            return
        top = max(tops, key=len)
        level = top
        try:
            os.stat(top)
            for name in os.path.relpath(inner, top).split(os.sep) if inner != top else ():
                level = os.path.join(level, name)
                with suppress(FileExistsError):
                    os.mkdir(level)
                    if synced:
                        sync_directory(os.path.dirname(level))
        except FileNotFoundError:
            if os.path.isdir(top):
                return  # a directory in between was removed while empty: the caller tries again
            raise MissingDirectoryError(
                f"{path} cannot be written: there is no directory {top}. The table, database or branch there was "
                "dropped or renamed: open it by its name"
            ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStore(Store):
    """The local file system, which is used without fsspec: a hard link is the atomic step of commits."""

    @property
    def commits(self) -> bool:
        """True: `exclusive.link_exclusive` is safe."""
        return True

    def open(self, path: str, options: Mapping[str, Any], fixed: Sequence[str], no_commit: str | None) -> Storage:
        """See `Store.open`. Storage options have no effect."""
        return LocalStorage(fixed)


LOCAL: Final = LocalStore(
    title="local disks",
    schemes=("file",),
    same_files=True,
    one_client=True,
    renames_atomically=True,
    keeps_fixed=True,
)
