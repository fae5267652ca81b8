"""Consumers: the next snapshot of each named stream, stored with the table (format 10.3)."""

import builtins
import json
from dataclasses import dataclass, field

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import load_object

_PREFIX = "consumer-"
_NEXT = "nextSnapshot"


@dataclass(frozen=True, slots=True)
class Consumers:
    """The consumers below ``root``, the directory of a table or branch.

    A consumer stores the first snapshot that its stream has not read. Expiry keeps this snapshot and all newer ones.
    """

    io: FileIO
    root: str = field(repr=False)

    def path(self, consumer_id: str) -> str:
        """Return the path of a consumer's file. Raises InvalidInputError for an id that cannot name a consumer."""
        if not consumer_id.strip() or "/" in consumer_id:
            raise InvalidInputError(f"a consumer's id must not be blank or contain '/', but is {consumer_id!r}")
        return join(self._directory, _PREFIX + consumer_id)

    def get(self, consumer_id: str) -> int | None:
        """Return the next snapshot that a consumer has to read; `None`: no such consumer."""
        path = self.path(consumer_id)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        next_snapshot = load_object(data, path).get(_NEXT)
        if not isinstance(next_snapshot, int) or isinstance(next_snapshot, bool):
            raise CorruptedError(f"{path}: {_NEXT!r} must be a whole number, found {next_snapshot!r}")
        return next_snapshot

    def record(self, consumer_id: str, next_snapshot: int) -> None:
        """Store ``next_snapshot`` as the first snapshot that the consumer has not read, replacing its older record."""
        document = json.dumps({_NEXT: next_snapshot}, indent=2, separators=(",", " : "))
        self.io.write(self.path(consumer_id), document.encode())
        self.io.sync([self.path(consumer_id)], self.root)

    def delete(self, consumer_id: str) -> None:
        """Delete a consumer. Deleting a missing consumer is not an error."""
        self.io.delete(self.path(consumer_id))

    def list(self) -> dict[str, int]:
        """Return the next snapshot of each consumer by id, without consumers that are deleted during the call."""
        ids = sorted(self.modified())
        next_snapshots = zip(ids, parallel_map(self.get, ids), strict=True)
        return {consumer_id: following for consumer_id, following in next_snapshots if following is not None}

    def min_next(self) -> int | None:
        """Return the oldest snapshot that a consumer still has to read; `None`: no consumers."""
        return min(self.list().values(), default=None)

    def expire(self, older_than: int) -> "builtins.list[str]":
        """Delete the consumers last recorded before ``older_than`` (epoch ms), and return their ids, sorted."""
        expired = sorted(consumer_id for consumer_id, modified in self.modified().items() if modified < older_than)
        for consumer_id in expired:
            self.delete(consumer_id)
        return expired

    def modified(self) -> dict[str, int]:
        """Return the time (epoch ms) when each consumer was last recorded, by id."""
        files = (f for f in self.io.list(self._directory) if not f.is_directory and f.name.startswith(_PREFIX))
        return {f.name.removeprefix(_PREFIX): f.modified_ms for f in files}

    @property
    def _directory(self) -> str:
        return join(self.root, "consumer")
