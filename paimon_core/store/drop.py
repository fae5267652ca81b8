"""Delete a table or branch so that a process killed at any point leaves it complete or dropped (decision 31).

Local disks and HDFS rename a directory in one step: it moves to ``.dropped`` in the same parent, which no engine takes
for a table, and is deleted there. Object stores have no atomic rename. There the file ``schema/.dropping`` is written
first, which marks the table as dropped, and is deleted last. In between, snapshots are deleted before the files that
they name, and schemas at the end. So engines that do not know the mark never see rows of an older snapshot.
"""

import errno
import logging
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from paimon_core.errors import hide_secrets
from paimon_core.fileio.directory import numbers_in
from paimon_core.fileio.fileio import FileIO, FileStatus, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.schema.schemas import DROPPING, PREFIX

_log = logging.getLogger(__name__)

TRASH = ".dropped"
"""The directory of dropped tables in a database, and of dropped branches in ``branch``."""

UNBORN = ".new-"
"""Prefix of the directories in which branches are made; each then moves to its name."""

STAGED = "staged-"
"""Prefix of the names of branches that hold the rows of a new table or a replacement (`catalog.staged`)."""

_IMMOVABLE = {errno.EXDEV, errno.EBUSY}  # the directory is a mount point
_ADOPTED = ("snapshot", "changelog", "tag", "branch", "consumer", "intent", "copy-into")
"""Directories whose files a new table would take for its own. Files elsewhere have names that are never used twice."""


def drop_directory(io: FileIO, path: str, before: Callable[[str], None] | None = None) -> None:
    """Delete the table or branch in a directory, or finish a call that was killed.

    Args:
        io: the store.
        path: the directory. Nothing happens if it is missing.
        before: a function that is called with the directory of the files once the table is dropped, before the files
            are deleted. `None`: no call.
    """
    if not io.exists(path):
        return
    if io.renames_atomically:
        parent, _, name = path.rstrip("/").rpartition("/")
        trash = join(parent, TRASH)
        moved = join(trash, f"{name}-{uuid.uuid4().hex}")
        try:
            io.rename_directory(path, moved)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in _IMMOVABLE:
                raise
        else:
            if before is not None:
                before(moved)
            try:
                io.delete_directory(moved)
                io.delete_empty_directory(trash)
            except OSError as error:
                _log.warning(
                    "%s is dropped, but not all of its files are deleted; the next drop or creation in the same "
                    "directory deletes them: %s: %s",
                    hide_secrets(path),
                    type(error).__name__,
                    hide_secrets(str(error)),
                )
            return
    _delete_in_order(io, path, before)


def empty_trash(io: FileIO, parent: str, before: Callable[[str, str], None] | None = None) -> list[str]:
    """Finish the calls of `drop_directory` that were killed. Return the names of the dropped tables or branches.

    Args:
        io: the store.
        parent: the directory of a database, or of branches.
        before: a function that is called with the name and the directory of the files before they are deleted. `None`:
            no call.
    """
    if not io.renames_atomically:
        return []
    names = []
    trash = join(parent, TRASH)
    for entry in io.list(trash):
        name = entry.name.rpartition("-")[0]
        claimed = join(trash, f"{name}-{uuid.uuid4().hex}")
        with suppress(FileNotFoundError):  # another process was faster
            io.rename_directory(entry.path, claimed)
            if before is not None:
                before(name, claimed)
            io.delete_directory(claimed)
            names.append(name)
    io.delete_empty_directory(trash)
    return names


def delete_unborn(io: FileIO, parent: str, before_ms: int) -> None:
    """Delete what dead processes have left of branches that they were creating before ``before_ms`` (epoch ms).

    ``parent``: the directory of the branches.
    """
    for entry in io.list(parent):
        if entry.name.startswith(UNBORN) and 0 < entry.modified_ms < before_ms:  # 0: unknown
            drop_directory(io, entry.path)


def leftovers(io: FileIO, root: str) -> list[str]:
    """Return the names of the directories at ``root`` that a new table must not find there.

    REQUIRES: there is no table. Files of a staged table do not count.
    """
    present = {entry.name for entry in io.list(root) if entry.is_directory}
    names = [name for name in _ADOPTED if name in present and any(map(_is_adopted, io.list(join(root, name))))]
    if "schema" in present and _is_dropping(io.list(join(root, "schema"))):
        names.append("schema")
    return names


def is_half_dropped(io: FileIO, root: str) -> bool:
    """Return True if files of a dropped table are left at ``root``. REQUIRES: there is no table."""
    return bool(leftovers(io, root)) or bool(io.list(join(root, "manifest")))


def _is_adopted(entry: FileStatus) -> bool:
    return not entry.name.startswith((".", f"branch-{STAGED}"))


def _is_dropping(schemas: Iterable[FileStatus]) -> bool:
    return any(entry.name == DROPPING for entry in schemas)


def _delete_in_order(io: FileIO, root: str, before: Callable[[str], None] | None) -> None:
    schema = join(root, "schema")
    tombstone = join(schema, DROPPING)
    io.write(tombstone, b"")
    if before is not None:
        before(root)
    dropping = partial(io.exists, tombstone)  # False: another call has finished, and there may be a new table by now
    _delete_files(io, join(root, "changelog"), "changelog-", dropping)
    _delete_files(io, join(root, "snapshot"), "snapshot-", dropping)
    for entry in sorted(io.list(root), key=lambda item: item.name not in _ADOPTED):
        if entry.name != "schema" and dropping():
            (io.delete_directory if entry.is_directory else io.delete)(entry.path)
    _delete_files(io, schema, PREFIX, dropping)
    if not dropping():
        return
    io.delete(tombstone)
    for directory in (schema, root):
        io.delete_empty_directory(directory)


def _delete_files(io: FileIO, directory: str, prefix: str, dropping: Callable[[], bool]) -> None:
    """Delete the files of a directory while the table is being dropped, the largest number last. Keep the tombstone."""
    entries = [entry for entry in io.list(directory) if entry.name != DROPPING]
    newest = f"{prefix}{max(numbers_in(entries, prefix), default=-1)}"
    paths = [entry.path for entry in entries if entry.name != newest and not entry.is_directory]

    def delete(path: str) -> None:
        if dropping():
            io.delete(path)

    for _ in parallel_map(delete, paths):
        pass
    for entry in entries:
        if entry.name == newest:
            delete(entry.path)
