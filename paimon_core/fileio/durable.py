"""Files and their names pushed to the disk, so that they survive a power cut."""

import errno
import os
from collections.abc import Collection, Iterable

from paimon_core.fileio.parallel import parallel_map

THREADS = 32
"""Files pushed at a time: the disk writes many in about the time of one."""
_UNABLE = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EROFS}


def sync_all(places: Collection[str], root: str | None) -> None:
    """Push files and the directories that name them to the disk, those between a directory and ``root`` included.

    A directory that does not lie below ``root`` is pushed with all above it. Missing files are passed over, file
    systems that cannot sync as well. Raises OSError where the disk did not take the content.
    """
    wanted = [*dict.fromkeys(places), *_directories(places, root)]
    for _ in parallel_map(_sync, wanted, THREADS):
        pass


def sync_directory(directory: str) -> None:
    """Make new names in a directory survive, where directories can be synced."""
    _sync(directory or ".")


def make_directories(directory: str) -> None:
    """Make a directory with its parents, each of whose names survives a power cut."""
    missing = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for place in reversed(missing):
        os.makedirs(place, exist_ok=True)
        sync_directory(os.path.dirname(place))


def _directories(places: Iterable[str], root: str | None) -> list[str]:
    stop = None if root is None else os.path.normpath(root)
    found: dict[str, None] = {}
    for directory in {os.path.dirname(place) for place in places}:
        at = os.path.normpath(directory)
        while at not in found:
            found[at] = None
            if at in (stop, os.path.dirname(at)):
                break
            at = os.path.dirname(at)
    return list(found)


def _sync(place: str) -> None:
    try:
        handle = os.open(place, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        if os.path.isdir(place):  # a directory that is not ours to read, as one high above a table
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(handle)
