"""What a numbered commit is about to do, written down before it does it (format 10.7).

``intent/user-<user>/batch-<n>`` below the table or branch holds ``{"version": 1, "base": <snapshot id>}``: an attempt
at ``n`` that landed has made a snapshot newer than ``base``. A ``"maker"`` beside it says whose number ``n`` is, where
several may count under one name. The file is created exclusively and never changed, so that of two processes at one
number both go by the same base. ``landed-<n>`` beside it is made as soon as a snapshot is
seen to have made the commit, and spares later attempts the search. Those of lower numbers go when a new one is begun.
Other engines know nothing of the directory, and leave it alone: it is none of those that hold files of the table.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field

from paimon_core.errors import CorruptedError
from paimon_core.fileio.directory import NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.store.layout import escape

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Intent:
    """``base``: the newest snapshot that no attempt at a commit can have made; ``maker``: who gave it its number."""

    base: int
    maker: str | None = None


@dataclass(frozen=True, slots=True)
class Intents:
    """The intents of one user in a table or branch."""

    io: FileIO
    root: str = field(repr=False)
    user: str

    def numbers(self) -> list[int]:
        """The commits begun last, ascending; one or two of them. Empty for a user never seen."""
        return self._files.ids()

    def find(self, number: int) -> Intent | None:
        """The intent of this commit; None if it is not there."""
        path = self._files.path(number)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        try:
            said = json.loads(data)
            version, base, maker = said["version"], said["base"], said.get("maker")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptedError(f"{path} is no intent of a commit: {data[:100]!r}") from error
        if version != _VERSION or not isinstance(base, int):
            raise CorruptedError(f"{path} is an intent of version {version!r}, this engine knows {_VERSION}")
        return Intent(base, maker)

    def begin(self, number: int, intent: Intent) -> Intent | None:
        """Write down that ``number`` is about to be committed; returns the intent that counts, as `find` does.

        That is another than ``intent`` where another process has begun the same commit.
        """
        said = {"version": _VERSION, "base": intent.base} | ({"maker": intent.maker} if intent.maker else {})
        path = self._files.path(number)
        return intent if self.io.create_exclusive(path, json.dumps(said).encode()) else self.find(number)

    def finish(self, number: int, snapshot_id: int) -> None:
        """Write down that this snapshot made the commit. Where that fails, later attempts have to search."""
        with suppress(OSError):
            self.io.write(self._landed.path(number), b"%d" % snapshot_id)

    def is_finished(self, number: int) -> bool:
        """Whether the commit is known to have landed; False where nobody came to write that down."""
        return self._landed.exists(number)

    def forget(self, number: int) -> None:
        """Remove what is of no use any more about a commit, as far as that can be done."""
        for files in (self._files, self._landed):
            with suppress(OSError):
                self.io.delete(files.path(number))

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, self._directory, "batch-")

    @property
    def _landed(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, self._directory, "landed-")

    @property
    def _directory(self) -> str:
        return join(self.root, "intent", f"user-{escape(self.user)}")
