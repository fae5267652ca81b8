"""Intents of idempotent commits: files that a commit writes before it publishes anything (format 10.7).

``intent/user-<user>/batch-<n>`` below the table or branch holds ``{"version": 1, "base": <snapshot id>}``: any
snapshot of commit ``n`` is newer than ``base``. ``"fingerprint"`` identifies the base, because a rollback may give
its id to another snapshot. An optional ``"maker"`` names the source of the number, if several sources share one user.
The file is created exclusively and never changed, so two processes that commit the same number use the same base.

``landed-<n>`` next to it is written as soon as the snapshot of the commit is known, and saves later attempts the
search. The files of lower numbers are deleted when a new number begins. Other engines ignore the directory, because
files of the table are never stored there.
"""

import json
from dataclasses import dataclass, field

from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import CorruptedError
from paimon_core.fileio.directory import NumberedDirectory
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.store.layout import escape
from paimon_core.types.json_text import parse_object

_VERSION = 1
_DIRECTORY, _BEGUN, _FINISHED = "intent", "batch-", "landed-"


@dataclass(frozen=True, slots=True)
class Intent:
    """The intent of one commit.

    ``base``: the id of the newest snapshot that no attempt of the commit can have made. ``source``: the job that
    numbered the commit; ``None``: the user has a single source. ``fingerprint``: the fingerprint of the base; ``None``:
    unknown, or the table had no snapshot.
    """

    base: int
    source: str | None = None
    fingerprint: str | None = None


def newest_open(io: FileIO, root: str) -> int | None:
    """Return the time (epoch ms) of the newest intent whose commit may be unfinished. ``None``: no open intent.

    ``root``: the directory of a table or branch.
    """
    newest = None
    for user in io.list(join(root, _DIRECTORY)):
        files = {file.name: file.modified_ms for file in io.list(user.path)} if user.is_directory else {}
        for name, modified in files.items():
            if name.startswith(_BEGUN) and _FINISHED + name.removeprefix(_BEGUN) not in files:
                newest = modified if newest is None else max(newest, modified)
    return newest


@dataclass(frozen=True, slots=True)
class Intents:
    """The intents of one user in a table or branch."""

    io: FileIO
    root: str = field(repr=False)
    user: str

    def numbers(self) -> list[int]:
        """Return the numbers of the last one or two commits begun, ascending. Empty for a new user."""
        return self._files.ids()

    def find(self, number: int) -> Intent | None:
        """Return the intent of this commit. ``None``: no intent. Raises CorruptedError for an unreadable intent."""
        path = self._files.path(number)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        try:
            record = parse_object(data)
            version, base, source = record["version"], record["base"], record.get("maker")
            fingerprint = record.get("fingerprint")
        except (ValueError, KeyError) as error:
            raise CorruptedError(f"{path} is not an intent of a commit: {data[:100]!r}") from error
        if version != _VERSION or not isinstance(base, int):
            raise CorruptedError(f"{path} is an intent of version {version!r}, but this engine supports {_VERSION}")
        return Intent(base, source, fingerprint)

    def begin(self, number: int, intent: Intent) -> Intent | None:
        """Create the intent of ``number`` if it is absent. Return the valid intent, as `find` does.

        The result differs from ``intent`` if another process has begun the same commit.
        """
        optional = {"maker": intent.source, "fingerprint": intent.fingerprint}
        record = {"version": _VERSION, "base": intent.base} | {key: text for key, text in optional.items() if text}
        path = self._files.path(number)
        return intent if self.io.create_exclusive(path, json.dumps(record).encode()) else self.find(number)

    def finish(self, number: int, snapshot_id: int) -> None:
        """Store the id of the snapshot of the commit, best effort."""
        with best_effort(f"noting that commit {number} is done"):  # without the file, later attempts search
            self.io.write(self._finished.path(number), b"%d" % snapshot_id)

    def is_finished(self, number: int) -> bool:
        """Return True if the commit is known to be in the table. False: it is not, or `finish` was not reached."""
        return self._finished.exists(number)

    def forget(self, number: int) -> None:
        """Delete the files of a commit, best effort."""
        for files in (self._files, self._finished):
            with best_effort(f"deleting the intent of commit {number}"):  # a file that remains only takes space
                self.io.delete(files.path(number))

    @property
    def _files(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, self._directory, _BEGUN)

    @property
    def _finished(self) -> NumberedDirectory:
        return NumberedDirectory(self.io, self._directory, _FINISHED)

    @property
    def _directory(self) -> str:
        return join(self.root, _DIRECTORY, f"user-{escape(self.user)}")
