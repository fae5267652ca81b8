"""Syncing of files and their names to the disk, so that they survive a power cut."""

import errno
import os
from collections.abc import Collection, Iterable

from paimon_core.fileio.parallel import parallel_map

THREADS = 32
"""The number of files synced at the same time; the disk writes many files in about the time of one."""
_UNABLE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EROFS}


def sync_all(paths: Collection[str], root: str | None) -> None:
    """Sync files, their directories, and all parent directories up to ``root``.

    For a directory outside ``root``, all its parents are synced. Missing files and file systems that cannot sync are
    skipped. Raises OSError if the disk did not store the content.
    """
    for _ in parallel_map(_sync, [*dict.fromkeys(paths), *_directories(paths, root)], THREADS):
        pass


def sync_directory(directory: str) -> None:
    """Sync a directory, so that new names in it survive; do nothing where directories cannot be synced."""
    _sync(directory or ".")


def make_directories(directory: str) -> None:
    """Make a directory and its missing parents, and sync each of their names."""
    missing = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for path in reversed(missing):
        os.makedirs(path, exist_ok=True)
        sync_directory(os.path.dirname(path))


def _directories(paths: Iterable[str], root: str | None) -> list[str]:
    """Return the directories of the paths with their parents, up to ``root`` or the root of the file system."""
    top = None if root is None else os.path.normpath(root)
    found: dict[str, None] = {}
    for path in paths:
        directory = os.path.normpath(os.path.dirname(path))
        while directory not in found:
            found[directory] = None
            if directory in (top, os.path.dirname(directory)):
                break
            directory = os.path.dirname(directory)
    return list(found)


def _sync(path: str) -> None:
    """Sync a file or directory; skip a missing one, and a directory that this user may not read."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        if os.path.isdir(path):  # a directory far above a table
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(handle)
