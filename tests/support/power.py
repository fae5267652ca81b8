"""A local disk that loses power: what was not synced is gone, as on a disk whose cache is lost.

Inside `watched` every ``os.fsync`` is noted. `cut` copies a directory as it would be found after a power cut: a name
is there if its directory was synced since it was given, and a file has the bytes that it had when it was synced.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock


class Disk:
    """The synced state of a disk, by inode. Open handles prevent that an inode is reused."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.names: dict[int, set[str]] = {}
        self.synced: Counter[int] = Counter()
        self._handles: list[int] = []

    def fsync(self, handle: int) -> None:
        """Note what a sync of this handle makes durable."""
        status = os.fstat(handle)
        self._handles.append(os.dup(handle))
        self.synced[status.st_ino] += 1
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            self.names[status.st_ino] = set(os.listdir(handle))
        else:
            self.sizes[status.st_ino] = status.st_size

    def cut(self, source: Path, target: Path) -> Path:
        """Copy a directory, which is itself durable, as a power cut would leave it."""
        target.mkdir()
        known = self.names.get(source.stat().st_ino, set())
        for entry in sorted(source.iterdir()):
            if entry.name not in known:
                continue
            if entry.is_dir():
                self.cut(entry, target / entry.name)
            else:
                kept = self.sizes.get(entry.stat().st_ino, 0)
                (target / entry.name).write_bytes(entry.read_bytes()[:kept])
        return target

    def close(self) -> None:
        """Let go of the handles."""
        for handle in self._handles:
            os.close(handle)


@contextmanager
def watched() -> Iterator[Disk]:
    """Inside, what is synced is noted, and not done: tests need no disk for it."""
    disk = Disk()
    try:
        with mock.patch("os.fsync", disk.fsync):
            yield disk
    finally:
        disk.close()


def remade(disk: Disk, source: Path, target: Path) -> Path:
    """Cut the power into ``target``, which may be there from an earlier cut."""
    shutil.rmtree(target, ignore_errors=True)
    return disk.cut(source, target)
