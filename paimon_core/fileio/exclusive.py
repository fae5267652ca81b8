"""Create a file only if it is not there: the one atomic step every commit rests on (format 13.2).

Both ways make the complete content visible under the final name at once, or not at all, whoever else
tries at the same time, from any process or machine.
"""

import errno
import os
from typing import Any
from uuid import uuid4

from paimon_core.fileio.durable import sync_directory

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def temporary_name(path: str) -> str:
    """Return a fresh hidden sibling, ``.<name>.<uuid>.tmp``: other readers of the directory skip this form."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.{uuid4()}.tmp")


def write_synced(path: str, data: bytes) -> None:
    """Write a new file and push it to the disk."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def link_exclusive(path: str, data: bytes) -> bool:
    """Publish by hard link on a local file system; False if the name is taken.

    ``link`` fails where the target exists, unlike ``rename``, and the content is complete and synced
    before it gets its name. File systems without hard links (exFAT, some FUSE mounts) get ``O_EXCL``: still
    one winner, but a reader may see the file while it is being written, and a crash may leave it torn.
    """
    temporary = temporary_name(path)
    try:
        write_synced(temporary, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return os.stat(temporary).st_nlink == 2  # on NFS a repeated request may find its own link
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            return _open_exclusive(path, data)
        sync_directory(os.path.dirname(path))
        return True
    finally:
        _unlink(temporary)


def put_if_absent(filesystem: Any, path: str, data: bytes) -> bool:
    """Publish by conditional put (``If-None-Match: *``) on S3; False if the key is taken.

    An ``OSError`` leaves it open whether the file is there. So does False in one case: the client repeats a
    put whose answer was lost and is then told that its own file exists. Only the content can tell: a caller
    that must know reads it.
    """
    try:
        filesystem.pipe_file(path, data, mode="create")
    except FileExistsError:
        return False
    except OSError as error:
        if _failed_precondition(error):
            return False
        raise
    return True


def _failed_precondition(error: OSError) -> bool:
    """Whether the store answered 412; not every store says which condition failed, and only one was sent."""
    response = getattr(error.__cause__, "response", None) or {}
    return response.get("Error", {}).get("Code") in ("PreconditionFailed", "412")


def _open_exclusive(path: str, data: bytes) -> bool:
    try:
        write_synced(path, data)
    except FileExistsError:
        return False
    return True


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
