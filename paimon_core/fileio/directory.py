"""Directories of small immutable files numbered in their names: snapshots, schemas, changelogs (format 1.4)."""

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

    Names that no engine gives, such as ``<prefix>09``, are passed over.
    """
    names = (status.name for status in listed if not status.is_directory)
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(tail) for tail in tails if _NUMBER.fullmatch(tail))


@dataclass(frozen=True, slots=True)
class NumberedDirectory:
    """``<directory>/<prefix><id>``, with optional hint files holding the newest and the oldest id.

    Hints may be stale, missing or garbage: they save a listing, they never decide. Other names in the
    directory (temporary files of any writer) are passed over.
    """

    io: FileIO
    directory: str = field(repr=False)
    prefix: str

    def path(self, number: int) -> str:
        """Return the file of this number."""
        return join(self.directory, f"{self.prefix}{number}")

    def ids(self) -> list[int]:
        """All numbers by listing, ascending."""
        return numbers_in(self.io.list(self.directory), self.prefix)

    def exists(self, number: int) -> bool:
        """Whether the file of this number is there."""
        return self.io.exists(self.path(number))

    def read(self, number: int) -> bytes:
        """Return the content. Raises FileNotFoundError if the file is missing."""
        return self.io.read(self.path(number))

    def latest_id(self) -> int | None:
        """Return the largest number; ``None``: the directory is empty.

        The hint ``v`` is taken if ``v`` is there and ``v + 1`` is not: numbers are contiguous at the young end.
        """
        hint = self.hint("LATEST")
        if hint is not None and not self.exists(hint + 1) and self.exists(hint):
            return hint
        return max(self.ids(), default=None)

    def earliest_id(self) -> int | None:
        """Return the smallest number; ``None``: the directory is empty.

        The hint ``v`` is taken if ``v`` is there and ``v - 1`` is not: the oldest go first, so there are no gaps.
        """
        hint = self.hint("EARLIEST")
        if hint is not None and not self.exists(hint - 1) and self.exists(hint):
            return hint
        return min(self.ids(), default=None)

    def hint(self, which: Hint) -> int | None:
        """Return the number in the hint file, unchecked; ``None``: the file is missing or holds no number."""
        try:
            text = self.io.read(join(self.directory, which)).strip()
        except OSError:  # a listing follows, and raises if the store is really down
            return None
        return int(text) if text.isdigit() and len(text) < 20 and int(text) > 0 else None

    def write_hint(self, which: Hint, number: int) -> bool:
        """Replace the hint; its loss costs others a listing, so failing is an answer, not an error."""
        for _ in range(_HINT_TRIES):
            try:
                self.io.write(join(self.directory, which), b"%d" % number)
            except OSError:
                continue
            return True
        return False
