"""Files of this machine, by plain system calls."""

import os
import shutil
from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa

from paimon_core.fileio.durable import make_directories, sync_all
from paimon_core.fileio.exclusive import link_exclusive, temporary_name
from paimon_core.fileio.paths import join, local_path, scheme_of
from paimon_core.fileio.storage import FileStatus, OutputStream

T = TypeVar("T")


class LocalStorage:
    """The local file system (or anything mounted)."""

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with open(local_path(path), "rb") as file:
            return file.read()

    def open(self, path: str, size: int | None) -> pa.NativeFile:
        """Open for reads by ``pread``, without holding the interpreter, from many threads at once."""
        return pa.OSFile(local_path(path), "rb")

    def write(self, path: str, data: bytes) -> None:
        """Replace atomically: readers see the old content or the new one."""
        place = local_path(path)
        temporary = temporary_name(place)
        try:
            _with_parents(place, lambda: _write(temporary, data), make_directories)
            os.replace(temporary, place)
        except BaseException:
            self.delete(temporary)
            raise

    def create(self, path: str) -> OutputStream:
        """Write in place: the name is fresh and nobody looks before a commit mentions it."""
        place = local_path(path)
        stream: OutputStream = _with_parents(place, lambda: pa.OSFile(place, "wb"))
        return stream

    def create_exclusive(self, path: str, data: bytes) -> bool:
        """By hard link, see `link_exclusive`. Directories made for it are durable as well."""
        place = local_path(path)
        return _with_parents(place, lambda: link_exclusive(place, data), make_directories)

    def sync(self, paths: Sequence[str], root: str) -> None:
        """Push the files and their directories, up to the root, to the disk."""
        sync_all([local_path(path) for path in paths], local_path(root) if scheme_of(root) == "file" else None)

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there; failing to look is an error, not a no."""
        try:
            os.stat(local_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, directory: str) -> list[FileStatus]:
        """Files and directories directly below; what vanishes meanwhile is left out."""
        found: list[FileStatus] = []
        try:
            with os.scandir(local_path(directory) or ".") as entries:
                for entry in entries:
                    try:
                        status = entry.stat()
                    except FileNotFoundError:
                        continue
                    modified = status.st_mtime_ns // 1_000_000
                    place = join(directory, entry.name)
                    found.append(FileStatus(place, entry.name, status.st_size, entry.is_dir(), modified))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return found

    def delete(self, path: str) -> None:
        """Remove one file."""
        try:
            os.unlink(local_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return

    def delete_directory(self, path: str) -> None:
        """Remove with everything below."""
        try:
            shutil.rmtree(local_path(path))
        except FileNotFoundError:
            if self.exists(path):  # something below vanished under the walk: once more
                shutil.rmtree(local_path(path), ignore_errors=True)

    def rename_directory(self, source: str, target: str) -> None:
        """Atomic within one file system."""
        if self.exists(target):
            raise FileExistsError(f"cannot rename {source} to {target}: the target exists")
        place = local_path(target)
        _with_parents(place, lambda: os.rename(local_path(source), place))

    def why_no_commit(self) -> str | None:
        """Hard links decide races: safe."""
        return None


def _write(place: str, data: bytes) -> None:
    with open(place, "wb") as file:
        file.write(data)


def _make(directory: str) -> None:
    os.makedirs(directory, exist_ok=True)


def _with_parents(place: str, action: Callable[[], T], make: Callable[[str], None] = _make) -> T:
    """Act; where the directory is missing, make it and act again. Cheaper than making it every time."""
    try:
        return action()
    except FileNotFoundError:
        parent = os.path.dirname(place)
        if not parent:
            raise
        make(parent)
        return action()
