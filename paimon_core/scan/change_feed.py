"""The change feed of a table: for each commit, the files whose rows show what the commit changed.

A change is a row that batch reads show after a commit and did not show before, or the other way round. So the changes
of a range of commits, applied to the rows before the range, give the rows after it. Compactions change nothing, except
in tables whose batch reads show only compacted rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError, UnsupportedError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.merge import RECORD_LEVEL_EXPIRE_TIME
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import split_by
from paimon_core.scan.change_units import snapshot_entries
from paimon_core.scan.difference import ComparedSplits, compared_buckets, visible_buckets
from paimon_core.scan.entries import PartitionFilter
from paimon_core.scan.read_rules import check_not_replaced
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing, plan_splits
from paimon_core.scan.starting_scanner import BRANCH_OPTIONS, without_start
from paimon_core.scan.table_scan import snapshot_splits
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import AtomicType, DataField

CHANGE_TYPE = DataField(2147483601, "_change_type", AtomicType("VARCHAR", False, 2147483647))
"""The kind of a change: ``insert``, ``delete``, ``update_preimage`` or ``update_postimage``."""
COMMIT_VERSION = DataField(2147483602, "_commit_version", AtomicType("BIGINT", nullable=False))
"""The id of the snapshot that made the change."""
COMMIT_TIMESTAMP = DataField(2147483603, "_commit_timestamp", AtomicType("TIMESTAMP_LTZ", False, precision=6))
"""The time of this snapshot."""
CHANGE_FIELDS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""The columns of a change after the columns of the table."""

_ONE_BY_ONE = Packing(target_size=0, open_cost=1)
_POSTPONED = -2


@dataclass(frozen=True, slots=True)
class FeedSplit(ComparedSplits):
    """Files before and after a commit, whose rows differ by changes of the commit. No other split has these changes.

    With a primary key, each side holds all rows of its keys. ``time_millis``: the time of the commit (epoch ms).
    """

    snapshot_id: int
    time_millis: int


@dataclass(frozen=True, slots=True)
class FeedRange:
    """The commits from snapshot ``first`` through ``last``; none if ``first`` is greater. Both ids exist or follow."""

    first: int
    last: int


def version_range(
    store: FileStore,
    start: str | None,
    end: str | None,
    *,
    with_start: bool = True,
    with_end: bool = True,
) -> FeedRange:
    """Return the commits between two versions.

    Args:
        store: the table.
        start: a tag or a snapshot id; 0 and `None`: before the first commit of the table.
        end: a tag or a snapshot id; `None`: the newest snapshot.
        with_start: True to include the commit of ``start``.
        with_end: True to include the commit of ``end``.

    Raises NotFoundError for an unknown tag, OutOfRangeError for versions that do not exist or are in the wrong order.
    """
    newest = store.snapshots.latest_id() or 0
    first = 0 if start is None else _snapshot_id(store, start, newest)
    last = newest if end is None else _snapshot_id(store, end, newest)
    if end is not None and first > last:
        raise OutOfRangeError(f"the first version, {start}, is after the last version, {end}: swap them")
    return FeedRange(max(1, first if with_start else first + 1), last if with_end or end is None else last - 1)


def time_range(
    store: FileStore, start: int, end: int | None, *, with_start: bool = True, with_end: bool = True
) -> FeedRange:
    """Return the commits between two times (epoch microseconds); ``end``: `None`: through the newest snapshot.

    Raises InvalidInputError for times in the wrong order, OutOfRangeError if commits after ``start`` may have expired.
    """
    if end is not None and start > end:
        raise InvalidInputError("the first time is after the last time: swap them")
    oldest, newest = store.snapshots.earliest(), store.snapshots.latest_id() or 0
    if oldest is None:
        return FeedRange(1, 0)
    before_start = _newest_id_by(store, start, exclusive=with_start)
    if before_start is None and oldest.id > 1:
        raise OutOfRangeError(
            f"the changes of {store.root} since this time are not complete: snapshots before {oldest.id} have expired. "
            f"Start at version {oldest.id + 1} or later, and keep snapshots longer ('snapshot.time-retained')"
        )
    last = newest if end is None else _newest_id_by(store, end, exclusive=not with_end)
    return FeedRange((before_start or 0) + 1, last or 0)


def _newest_id_by(store: FileStore, micros: int, *, exclusive: bool) -> int | None:
    """Return the newest snapshot whose time is at most ``micros``, or less if ``exclusive``; `None`: no snapshot."""
    millis = (micros - 1) // 1000 if exclusive else micros // 1000
    found = store.snapshots.at_or_before(millis)
    return None if found is None else found.id


def _snapshot_id(store: FileStore, version: str, newest: int) -> int:
    """Return the snapshot of a tag, or a snapshot id in digits; 0 stands for the time before the first snapshot."""
    text = version.strip()
    tag = store.tags.find(text)
    if tag is not None:
        return tag.snapshot.id
    if not (text.isascii() and text.isdigit()):
        raise NotFoundError(f"{text!r} is neither a snapshot nor a tag of {store.root}: {store.tags.summary(text)}")
    if int(text) > newest:
        raise OutOfRangeError(f"version {text} of {store.root} does not exist: the newest is {newest}")
    return int(text)


@dataclass(frozen=True)
class ChangeFeed:
    """A planner of the changes of commits, with the columns of the table at ``store``; older rows are mapped to them.

    ``predicate`` (bound to the store's schema) leaves out partitions. Without ``cancel``, rows that a commit copied
    into other files are both removed and added. Raises UnsupportedError for a table whose changes do not follow from
    its snapshots, InvalidInputError for one with a column named like a column of the feed.
    """

    store: FileStore
    predicate: Predicate | None = None
    cancel: bool = True
    _tagged: dict[int, Snapshot] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_changes(self.store)
        object.__setattr__(self, "store", without_start(self.store))

    def plan(self, commits: FeedRange) -> Iterator[FeedSplit]:
        """Yield the splits with the changes of some commits, in the order of the commits.

        Raises OutOfRangeError if a snapshot that is needed has expired. Cost: one read of the delta of each commit, and
        for commits that rewrite or merge rows, of the metadata of the buckets that they touched, before and after.
        """
        for snapshot_id in range(commits.first, commits.last + 1):
            snapshot = self._find(snapshot_id)
            if snapshot is None:
                raise self.expired(snapshot_id, snapshot_id)
            with raise_if_expired(self.store, snapshot):
                yield from self._changes(snapshot)

    def _changes(self, snapshot: Snapshot) -> Iterator[FeedSplit]:
        store = self.store
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE) and not self._shows_compactions:
            return
        check_not_replaced(store, snapshot)
        entries = snapshot_entries(store, snapshot, changelog=False)
        adds = all(entry.kind == ADD for entry in entries)
        if adds and not (store.traits.keyed or store.traits.deletion_vectors or store.traits.data_evolution):
            splits = plan_splits(snapshot.id, self._matching(entries), _ONE_BY_ONE, None)
            yield from (self._split(snapshot, (), (split,)) for split in splits)
            return
        before = self._rows_before(snapshot)
        buckets = self._touched(before, snapshot, entries)
        if buckets:
            compare = self._compared_keys if store.traits.keyed else self._compared_rows
            yield from compare(before, snapshot, buckets)

    @cached_property
    def _shows_compactions(self) -> bool:
        """True if a compaction may show rows that no batch read showed before."""
        return self.store.traits.hides_level_0 or self.store.schema.bucket == _POSTPONED

    @cached_property
    def _on_partition(self) -> Predicate | None:
        keys = self.store.schema.partition_keys
        return split_by(self.predicate, set(keys))[0] if self.predicate is not None and keys else None

    def _matching(self, entries: Sequence[ManifestEntry]) -> Sequence[ManifestEntry]:
        """Return the entries in partitions whose rows can match the predicate."""
        if self._on_partition is None:
            return entries
        test = PartitionFilter(self._on_partition, self.store.schema.partition_arrow)
        matching = test.matching({entry.partition for entry in entries})
        return [entry for entry in entries if entry.partition in matching]

    def _touched(self, before: Snapshot | None, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> set[BucketRef]:
        """Return the buckets whose files or deletion vectors a commit changed."""
        vectors = [
            {(e.partition, e.bucket, e.file_name) for e in vector_entries(self.store, side)}
            for side in (before, snapshot)
        ]
        changed = {BucketRef(partition, bucket) for partition, bucket, _ in vectors[0] ^ vectors[1]}
        return changed | {BucketRef(entry.partition, entry.bucket) for entry in entries}

    def _compared_keys(
        self, before: Snapshot | None, snapshot: Snapshot, buckets: set[BucketRef]
    ) -> Iterator[FeedSplit]:
        for split in compared_buckets(self.store, before, snapshot, self._on_partition, buckets):
            yield self._split(snapshot, split.before, split.after)

    def _compared_rows(
        self, before: Snapshot | None, snapshot: Snapshot, buckets: set[BucketRef]
    ) -> Iterator[FeedSplit]:
        """Yield the files that only one side has, by partition, because a row never leaves its partition unchanged."""
        removed, added = (self._splits(side, buckets) for side in (before, snapshot))
        both = removed.keys() & added.keys()
        partitions: dict[bytes, tuple[list[DataSplit], list[DataSplit]]] = {}
        for number, side in enumerate((removed, added)):
            for key, split in side.items():
                if key not in both:
                    partitions.setdefault(split.partition, ([], []))[number].append(split)
        for old, new in partitions.values():
            if old and new and self.cancel:
                yield self._split(snapshot, tuple(old), tuple(new))
            else:
                yield from (self._split(snapshot, (split,), ()) for split in old)
                yield from (self._split(snapshot, (), (split,)) for split in new)

    def _splits(self, snapshot: Snapshot | None, buckets: set[BucketRef]) -> dict[object, DataSplit]:
        """Return the smallest splits of buckets by their content: files and deletion vectors."""
        if snapshot is None:
            return {}
        side = visible_buckets(self.store, snapshot, self._on_partition, buckets).values()
        entries = [entry for bucket in side for entry in bucket.entries]
        splits = snapshot_splits(self.store, snapshot, entries, _ONE_BY_ONE)
        return {(s.partition, s.bucket, tuple(f.file_name for f in s.files), frozenset(s.vectors)): s for s in splits}

    def _split(self, snapshot: Snapshot, before: tuple[DataSplit, ...], after: tuple[DataSplit, ...]) -> FeedSplit:
        return FeedSplit(before, after, snapshot.id, snapshot.time_millis)

    def _rows_before(self, snapshot: Snapshot) -> Snapshot | None:
        """Return the snapshot before a commit; `None`: the table had no rows. OutOfRangeError if it has expired."""
        if snapshot.id == 1:
            return None
        before = self._find(snapshot.id - 1)
        if before is None:
            raise self.expired(snapshot.id, snapshot.id - 1)
        return before

    def _find(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot, also an expired one that a tag keeps; `None`: it has expired."""
        found = self.store.snapshots.find(snapshot_id)
        if found is None:
            if not self._tagged:
                self._tagged.update({tag.snapshot.id: tag.snapshot for tag in self.store.tags.list()})
            found = self._tagged.get(snapshot_id)
        return found

    def expired(self, snapshot_id: int, missing: int) -> OutOfRangeError:
        """Return the error for changes of a snapshot that are unknown because snapshot ``missing`` has expired."""
        oldest = self.store.snapshots.earliest_id()
        return OutOfRangeError(
            f"the changes of version {snapshot_id} of {self.store.root} are unknown, because snapshot {missing} has "
            f"expired; the oldest snapshot is {oldest}. Start at version {(oldest or 0) + 1} or later, and keep "
            "snapshots longer ('snapshot.time-retained') or tag them"
        )


def check_changes(store: FileStore) -> None:
    """Raise an error for a table without a change feed; see `ChangeFeed`."""
    without_start(store).check_readable()
    taken = sorted({f.name for f in CHANGE_FIELDS} & {f.name for f in store.schema.fields})
    if taken:
        raise InvalidInputError(
            f"{store.root} has a column {taken[0]!r}, which is also a column of its changes: rename the column"
        )
    second = next((key for key in sorted(BRANCH_OPTIONS) if key in store.options), None)
    if second is not None:
        raise UnsupportedError(
            f"{store.root} shows rows of a second branch ({second!r}), whose changes its snapshots do not contain: "
            "unset the option, and read the changes of each branch"
        )
    if store.options.has(RECORD_LEVEL_EXPIRE_TIME):
        raise UnsupportedError(
            f"rows of {store.root} expire without a commit ({RECORD_LEVEL_EXPIRE_TIME.key!r}), so its commits do not "
            "show all changes: read the written rows with paimon_incremental_query"
        )
