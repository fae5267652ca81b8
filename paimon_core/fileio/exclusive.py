"""Creation of a file only if it does not exist: the atomic step of every commit (format 13.2).

The step is a hard link on local disks and a conditional put on object stores. If several processes or machines try at
the same time, exactly one succeeds. Its complete content becomes visible under the final name in one step.
"""

import errno
import os
from contextlib import suppress
from typing import Any
from uuid import uuid4

from paimon_core.fileio.durable import sync_directory

NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of file systems that cannot link files."""


def temporary_name(path: str) -> str:
    """Return a new hidden name in the same directory, ``.<name>.<uuid>.tmp``, which readers of the directory skip."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.{uuid4()}.tmp")


def write_synced(path: str, data: bytes) -> None:
    """Write a new file and sync it. Raises FileExistsError if the name is taken."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def link_exclusive(path: str, data: bytes) -> bool:
    """Publish a file by hard link on a local file system; return False if the name is taken.

    Unlike ``rename``, ``link`` fails if the target exists. The content is complete and synced before the file gets its
    name. On file systems without hard links (exFAT, some FUSE mounts) the file is opened with ``O_EXCL``. There, too,
    one writer wins, but a reader may see a half-written file, and a crash may leave one.
    """
    temporary = temporary_name(path)
    try:
        write_synced(temporary, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return os.stat(temporary).st_nlink == 2  # on NFS the client may repeat the request and find its own link
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            return _open_exclusive(path, data)
        sync_directory(os.path.dirname(path))
        return True
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def put_if_absent(filesystem: Any, path: str, data: bytes) -> bool:
    """Publish a file by the client's conditional put; return False if the key is taken.

    REQUIRES: the client sends a condition with ``mode="create"``, as the clients of S3, Google Cloud Storage, Azure and
    OSS do here. fsspec's default looks first and writes later, so two writers may both succeed.

    After an ``OSError`` the file may exist or not. False does not prove that another process took the key: if the
    answer to a put is lost, the client repeats the put, and the store reports the client's own file. A caller that must
    know reads the content.
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
    """Return True if the store answered 412: only one condition was sent, so this condition failed."""
    response = getattr(error.__cause__, "response", None) or {}
    return response.get("Error", {}).get("Code") in ("PreconditionFailed", "412")


def _open_exclusive(path: str, data: bytes) -> bool:
    """Write a new file under its final name; return False if the name is taken."""
    try:
        write_synced(path, data)
    except FileExistsError:
        return False
    return True
