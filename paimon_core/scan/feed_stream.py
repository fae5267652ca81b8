"""A change feed as a stream: batches of whole commits, and the positions between them."""

from collections.abc import Iterator

from paimon_core.options.scan import CONSUMER_ID, SCAN_SNAPSHOT_ID
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.batch_limits import NO_LIMITS
from paimon_core.scan.change_feed import ChangeFeed, FeedRange, FeedSplit
from paimon_core.scan.position import Position
from paimon_core.scan.starting_scanner import without_start
from paimon_core.scan.stream_scan import StreamScan
from paimon_core.store.file_store import FileStore


class FeedStream:
    """A planner of the stream of changes from snapshot ``first`` on; see `ChangeFeed` for the other arguments.

    Results depend only on the arguments and the table. Raises the errors of `ChangeFeed`.
    """

    def __init__(
        self, store: FileStore, first: int, predicate: Predicate | None = None, *, cancel: bool = True
    ) -> None:
        self._planner, self._first = ChangeFeed(store, predicate, cancel), first
        plain = without_start(store)
        if CONSUMER_ID.key in plain.options:
            plain = plain.with_schema(plain.schema.copy({CONSUMER_ID.key: None}))
        self._scan = StreamScan(plain.with_options({SCAN_SNAPSHOT_ID.key: str(first)}))

    def start(self) -> Position:
        """Return the position before the first commit. Raises OutOfRangeError if the commit has expired."""
        oldest = self._planner.store.snapshots.earliest_id()
        if oldest is not None and self._first < oldest:
            raise self._planner.expired(self._first, self._first)
        return self._scan.start()

    def latest(self) -> Position:
        """Return the position after the newest commit."""
        return self._scan.latest()

    def advance(self, after: Position, until: Position | None = None) -> Position:
        """Return the position after the newest commit, or `until`; ``after`` itself if there is no new commit.

        Raises OutOfRangeError if the next commit has expired or the table was rolled back; InvalidInputError if its
        columns have changed, or another table has replaced it.
        """
        return self._scan.advance(after, NO_LIMITS, until)

    def plan(self, after: Position, through: Position) -> Iterator[FeedSplit]:
        """Yield the splits with the changes between two positions; every call yields the same splits.

        Raises the errors of `advance`.
        """
        self._scan.advance(through, NO_LIMITS, through)  # checks that the commit still exists
        yield from self._planner.plan(FeedRange(after.snapshot_id + 1, through.snapshot_id))
