"""The group `Table.consumers`: the positions of named streams, which expiry respects (behaviour 7.16)."""

import builtins
import re
from dataclasses import dataclass

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, listed_names
from paimon_core.scan.stream_lag import StreamLag, lag_of
from paimon_core.scan.stream_scan import StreamScan
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class TableConsumers:
    """The consumers of one table or branch."""

    store: FileStore

    def list(self) -> dict[str, int]:
        """Return the next snapshot of each consumer by id."""
        return self._consumers.list()

    def lag(self) -> dict[str, StreamLag]:
        """Return how far each consumer is behind the newest snapshot, by id.

        The rows are those of the whole table, without a filter of the stream; `None` if snapshots have expired before
        the consumer read them. Cost: the manifests of the snapshots that a consumer has not read.
        """
        scan = StreamScan(self.store)
        return {consumer_id: lag_of(scan, following) for consumer_id, following in self.list().items()}

    def reset(self, consumer_id: str, next_snapshot: int | None = None, *, dry_run: bool = False) -> None:
        """Set the first snapshot that a consumer has still to read.

        Args:
            consumer_id: the name of the consumer.
            next_snapshot: the snapshot; `None`: delete the consumer.
            dry_run: only check.

        Raises InvalidInputError for a number below 1, NotFoundError for the deletion of a consumer that does not exist.
        """
        consumers = self._consumers
        if next_snapshot is None:
            if not self._exists(consumer_id):
                known = listed_names(consumer_id, consumers.list())
                raise NotFoundError(f"no consumer {consumer_id!r} of {self.store.branch_root}; there are: {known}")
            if not dry_run:
                consumers.delete(consumer_id)
            return
        if next_snapshot < 1:
            raise InvalidInputError(f"the next snapshot of a consumer is 1 or more, not {next_snapshot}")
        if not dry_run:
            consumers.record(consumer_id, next_snapshot)

    def _exists(self, consumer_id: str) -> bool:
        try:
            return self._consumers.get(consumer_id) is not None
        except CorruptedError:
            return True

    def clear(
        self, including: str | None = None, excluding: str | None = None, *, dry_run: bool = False
    ) -> "builtins.list[str]":
        """Delete consumers, and return their ids.

        Args:
            including: a regular expression that the whole id matches; `None` or blank: all.
            excluding: a regular expression of the ids that stay; `None` or blank: none.
            dry_run: delete none, and return the ids.
        """
        chosen, spared = _pattern(including or ".*"), _pattern(excluding or "")
        ids = [one for one in self.list() if chosen.fullmatch(one) and not (excluding and spared.fullmatch(one))]
        for consumer_id in () if dry_run else ids:
            self._consumers.delete(consumer_id)
        return ids

    @property
    def _consumers(self) -> Consumers:
        return Consumers(self.store.io, self.store.branch_root)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.strip())
    except re.error as error:
        raise InvalidInputError(f"{text!r} is no regular expression: {error}") from error
