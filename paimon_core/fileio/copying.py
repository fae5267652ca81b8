"""Copies of whole files, byte by byte, between any two stores."""

from collections.abc import Iterator

from paimon_core.errors import CommitConflictError
from paimon_core.fileio.fileio import FileIO

THREADS = 8
"""The number of files that are copied at the same time."""
_PART = 4 << 20  # bytes


def copy_file(
    source_io: FileIO, source: str, target_io: FileIO, target: str, size: int | None, *, may_link: bool = False
) -> None:
    """Copy a file; the target is replaced, atomically where `FileIO.write` is.

    Memory: one part of 4 MiB, or the file itself on a store that reads small files whole.

    Args:
        source_io: the FileIO of the source.
        source: the path of the file.
        target_io: the FileIO of the target.
        target: the path of the copy.
        size: the size that the file must have, in bytes; `None`: any size.
        may_link: True if the copy may share its bytes with the source (`FileIO.copy_within`).

    Raises FileNotFoundError if the source is missing, CommitConflictError if it has another size.
    """
    if source_io == target_io and target_io.copy_within(source, target, may_link=may_link):
        return
    target_io.write_parts(target, _parts(source_io, source, size))


def _parts(io: FileIO, path: str, size: int | None) -> Iterator[bytes]:
    done = 0
    with io.open(path, size) as file:
        while part := file.read(_PART):
            done += len(part)
            yield part
    if size is not None and done != size:
        raise CommitConflictError(
            f"{path} has {done} bytes, but {size} were expected: it may have been replaced. Try again"
        )
