"""The methods of `Table.consumers`: stored positions of streams, which expiry respects (behaviour 7.16)."""

import builtins
import re
from dataclasses import dataclass

from paimon_core.errors import CorruptedError, InvalidInputError, NotFoundError, listed_names
from paimon_core.scan.stream_lag import StreamLag, lag_of
from paimon_core.scan.stream_scan import StreamScan
from paimon_core.snapshot.consumers import Consumers
from paimon_core.store.current_schema import check_same_table
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class TableConsumers:
    """The consumers of one table or branch."""

    store: FileStore

    def list(self) -> dict[str, int]:
        """Return the next snapshot id by consumer id."""
        return self._consumers.list()

    def lag(self) -> dict[str, StreamLag]:
        """Return how far each consumer is behind the newest snapshot, by consumer id.

        The lag counts rows of the whole table, regardless of the stream's filter; `None` if unread snapshots have
        expired. Cost: reading the manifests of the snapshots that a consumer has not read.
        """
        scan = StreamScan(self.store)
        return {consumer_id: lag_of(scan, following) for consumer_id, following in self.list().items()}

    def reset(self, consumer_id: str, next_snapshot: int | None = None, *, dry_run: bool = False) -> None:
        """Set the next snapshot that a consumer reads.

        Args:
            consumer_id: the name of the consumer.
            next_snapshot: the snapshot id; `None`: delete the consumer.
            dry_run: True to check without changing anything.

        Raises InvalidInputError for an id below 1, NotFoundError when deleting a consumer that does not exist.
        """
        check_same_table(self.store.schemas, self.store.schema)
        consumers = self._consumers
        if next_snapshot is None:
            if not self._exists(consumer_id):
                names = listed_names(consumer_id, consumers.list())
                raise NotFoundError(f"no consumer {consumer_id!r} of {self.store.branch_root}; there are: {names}")
            if not dry_run:
                consumers.delete(consumer_id)
            return
        if next_snapshot < 1:
            raise InvalidInputError(f"the next snapshot of a consumer must be 1 or more, not {next_snapshot}")
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
        """Delete consumers and return their ids.

        Args:
            including: a regular expression that matches the full id; `None` or blank: all consumers.
            excluding: a regular expression for ids to keep; `None` or blank: keep none.
            dry_run: True to delete nothing and return the ids that would be deleted.
        """
        check_same_table(self.store.schemas, self.store.schema)
        included, spared = _pattern(including or ".*"), _pattern(excluding or "")
        ids = [
            consumer
            for consumer in self.list()
            if included.fullmatch(consumer) and not (excluding and spared.fullmatch(consumer))
        ]
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
        raise InvalidInputError(f"{text!r} is not a regular expression: {error}") from error
