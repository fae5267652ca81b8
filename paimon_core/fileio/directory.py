"""Directories of small immutable files with a number in the name: snapshots, schemas, changelogs (format 1.4)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from paimon_core.fileio.fileio import FileIO, FileStatus, join

Hint = Literal["LATEST", "EARLIEST"]

_HINT_TRIES = 3
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


def numbers_in(listed: Iterable[FileStatus], prefix: str) -> list[int]:
    """Return the numbers of the files ``<prefix><number>`` in a listing, ascending.

    Other names are skipped, including ``<prefix>09``, because no engine writes leading zeros.
    """
    names = (status.name for status in listed if not status.is_directory)
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(tail) for tail in tails if _NUMBER.fullmatch(tail))


@dataclass(frozen=True, slots=True)
class NumberedDirectory:
    """A directory of files ``<directory>/<prefix><id>``, with optional hint files for the newest and the oldest id.

    A hint may be stale, missing or garbage. It only saves a listing: every hint is checked before it is used. Other
    names in the directory, such as temporary files, are skipped.
    """

    io: FileIO
    directory: str = field(repr=False)
    prefix: str

    def path(self, number: int) -> str:
        """Return the path of the file with this number."""
        return join(self.directory, f"{self.prefix}{number}")

    def ids(self) -> list[int]:
        """List the directory and return all numbers, ascending."""
        return numbers_in(self.io.list(self.directory), self.prefix)

    def exists(self, number: int) -> bool:
        """Return True if the file with this number exists."""
        return self.io.exists(self.path(number))

    def read(self, number: int) -> bytes:
        """Return the content of the file with this number. Raises FileNotFoundError if the file is missing."""
        return self.io.read(self.path(number))

    def latest_id(self) -> int | None:
        """Return the largest number; `None`: the directory is empty.

        The hint ``v`` is right if file ``v`` exists and file ``v + 1`` does not: the newest numbers have no gaps.
        """
        hint = self.hint("LATEST")
        if hint is not None and not self.exists(hint + 1) and self.exists(hint):
            return hint
        return max(self.ids(), default=None)

    def earliest_id(self) -> int | None:
        """Return the smallest number; `None`: the directory is empty.

        The hint ``v`` is right if file ``v`` exists and file ``v - 1`` does not: the oldest files are deleted first.
        """
        hint = self.hint("EARLIEST")
        if hint is not None and not self.exists(hint - 1) and self.exists(hint):
            return hint
        return min(self.ids(), default=None)

    def hint(self, which: Hint) -> int | None:
        """Return the number in the hint file, unchecked; `None`: the file is missing or holds no number."""
        try:
            text = self.io.read(join(self.directory, which)).strip()
        except OSError:  # callers list the directory next, which raises if the store is down
            return None
        return int(text) if text.isdigit() and len(text) < 20 and int(text) > 0 else None

    def write_hint(self, which: Hint, number: int) -> bool:
        """Replace the hint; return False if that failed, which only costs readers a listing."""
        for _ in range(_HINT_TRIES):
            try:
                self.io.write(join(self.directory, which), b"%d" % number)
            except OSError:
                continue
            return True
        return False
