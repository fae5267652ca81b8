"""Consumers: how far readers of changes have come, kept beside the table under names (format 10.3)."""

import builtins
import json
from dataclasses import dataclass, field

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import load_object

__all__ = ["Consumers"]

_PREFIX = "consumer-"
_NEXT = "nextSnapshot"


@dataclass(frozen=True, slots=True)
class Consumers:
    """Those below ``root``, a table's or a branch's. A consumer names the first snapshot it still has to read;
    expiry leaves that one and all younger ones alone."""

    io: FileIO
    root: str = field(repr=False)

    def path(self, consumer_id: str) -> str:
        """The file of this consumer. InvalidInputError for what cannot be the name of one."""
        if not consumer_id.strip() or "/" in consumer_id:
            raise InvalidInputError(f"a consumer's id must not be blank or hold '/', but is {consumer_id!r}")
        return join(self._directory, _PREFIX + consumer_id)

    def get(self, consumer_id: str) -> int | None:
        """The next snapshot it has to read; None where there is no such consumer."""
        path = self.path(consumer_id)
        try:
            data = self.io.read(path)
        except FileNotFoundError:
            return None
        found = load_object(data, path).get(_NEXT)
        if not isinstance(found, int) or isinstance(found, bool):
            raise CorruptedError(f"{path}: {_NEXT!r} must be a whole number, found {found!r}")
        return found

    def record(self, consumer_id: str, next_snapshot: int) -> None:
        """It has read all before this snapshot: replaces what was known of it."""
        document = json.dumps({_NEXT: next_snapshot}, indent=2, separators=(",", " : "))
        self.io.write(self.path(consumer_id), document.encode())
        self.io.sync([self.path(consumer_id)], self.root)

    def delete(self, consumer_id: str) -> None:
        """Forget it; one that is not there is fine."""
        self.io.delete(self.path(consumer_id))

    def list(self) -> dict[str, int]:
        """The next snapshot of each consumer, by id; those that go meanwhile are left out."""
        ids = sorted(self._modified())
        found = zip(ids, parallel_map(self.get, ids), strict=True)
        return {consumer_id: following for consumer_id, following in found if following is not None}

    def min_next(self) -> int | None:
        """The oldest snapshot any consumer has still to read; None where there are no consumers."""
        return min(self.list().values(), default=None)

    def expire(self, older_than: int) -> "builtins.list[str]":
        """Forget those that recorded nothing since this moment (epoch ms); their ids."""
        gone = sorted(consumer_id for consumer_id, modified in self._modified().items() if modified < older_than)
        for consumer_id in gone:
            self.delete(consumer_id)
        return gone

    def _modified(self) -> dict[str, int]:
        files = (f for f in self.io.list(self._directory) if not f.is_directory and f.name.startswith(_PREFIX))
        return {f.name.removeprefix(_PREFIX): f.modified_ms for f in files}

    @property
    def _directory(self) -> str:
        return join(self.root, "consumer")
