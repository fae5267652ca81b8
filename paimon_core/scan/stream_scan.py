"""A stream of changes: its start, the end of each batch, and the splits between two positions."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.options.scan import SCAN_BOUNDED_WATERMARK, STREAMING_READ_SNAPSHOT_DELAY
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import split_by
from paimon_core.scan.batch_limits import NO_LIMITS, Limits
from paimon_core.scan.change_units import ChangeUnit, RowSource, all_units, changed_units
from paimon_core.scan.difference import DiffSplit, added_files, compared_buckets
from paimon_core.scan.entries import PartitionFilter
from paimon_core.scan.interval import DIFF, Interval
from paimon_core.scan.position import ALL, Position
from paimon_core.scan.split_plan import Packing, pack
from paimon_core.scan.starting_scanner import (
    created_since,
    incremental_bounds,
    own_branch,
    position_before,
    starting_position,
    without_start,
)
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.change_range import changes_expired, find_change, raise_if_changes_expired
from paimon_core.store.current_schema import check_columns, check_same_table
from paimon_core.store.file_store import FileStore
from paimon_core.store.traits import TableTraits
from paimon_core.types.datatype import DataField

_CACHED = 4  # lists of units: `plan` needs the lists that `advance` has just read


@dataclass(frozen=True, slots=True)
class ChangeSplit:
    """The change units that one task of a batch reads, in this order."""

    units: tuple[ChangeUnit, ...]

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files of all units."""
        return tuple(file for unit in self.units for file in unit.split.files)

    @property
    def row_count(self) -> int:
        """Return the number of stored rows; merging and filters may return fewer."""
        return sum(unit.split.row_count for unit in self.units)

    @property
    def size(self) -> int:
        """Return the bytes of the files."""
        return sum(unit.split.size for unit in self.units)


BatchSplit: TypeAlias = ChangeSplit | DiffSplit
"""The unit of work of one task in a batch of changes."""


def difference_splits(
    store: FileStore, interval: Interval, predicate: Predicate | None = None
) -> Sequence[ChangeSplit | DiffSplit]:
    """Return the splits of an interval in mode ``diff``, in partitions that can match a bound predicate.

    Raises InvalidInputError if the table was altered after it was opened, as `check_columns`.
    """
    if interval.is_empty or interval.compared is None:
        return []
    check_columns(store.schemas, store.schema, interval.compared[1])
    keys = store.schema.partition_keys
    partition = split_by(predicate, set(keys))[0] if predicate is not None and keys else None
    if store.traits.keyed:
        return compared_buckets(store, *interval.compared, partition)
    return [ChangeSplit((unit,)) for unit in added_files(store, *interval.compared, partition)]


class StreamScan:
    """A planner of the changes that a table's options select, for one reader.

    ``fields`` are the columns of the reader and of its filter (`None`: all columns). ``predicate``, which is bound to
    the store's schema, prunes partitions. Results depend only on the arguments and the table; calls share only a small
    cache of metadata.
    """

    def __init__(
        self, store: FileStore, fields: tuple[DataField, ...] | None = None, predicate: Predicate | None = None
    ) -> None:
        without_start(store).check_readable()
        store = own_branch(store)
        self.store, self.fields, self.predicate = store, fields, predicate
        self._cached: dict[tuple[str, bool], list[ChangeUnit]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cache of metadata."""
        return StreamScan, (self.store, self.fields, self.predicate)

    def start(self) -> Position:
        """Return the position at which a new reader starts. Raises the errors of `starting_position`."""
        started = replace(starting_position(self.store), table=self._table())
        check_same_table(self.store.schemas, self.store.schema)
        return started

    def latest(self) -> Position:
        """Return the end of the newest snapshot, or of the last snapshot that the options allow."""
        latest, bounds = self.store.snapshots.latest(), incremental_bounds(self.store)
        if latest is None:
            return Position(0, ALL, table=self._table())
        if bounds is not None and bounds[1] == 0:
            return Position(0, ALL, table=self._table())
        if bounds is not None and bounds[1] < latest.id:
            latest = find_change(self.store, bounds[1]) or latest
        return Position.end_of(latest, self._table())

    def advance(self, after: Position, limits: Limits = NO_LIMITS, until: Position | None = None) -> Position:
        """Return the end of the batch that starts after ``after``; ``after`` itself if there is nothing new.

        A batch has at least one change unit, and more up to ``limits`` and ``until``. A batch never mixes rows of the
        snapshot with which the stream begins and changes after that snapshot.
        Raises OutOfRangeError if the next snapshot has expired or the table was rolled back; InvalidInputError if its
        columns have changed, or another table has replaced it.
        """
        self._check_table(after)
        self.store.check_still_readable()
        if after.undecided:
            start = starting_position(self.store)
            if start.undecided:
                return after
            after = replace(start, table=after.table)
        if after.scan_snapshot and after.index != ALL:
            return self._advance_in_scan(after, limits, until)
        return self._advance_in_changes(after, limits, until)

    def plan(self, after: Position, through: Position) -> list[ChangeSplit]:
        """Return the splits after ``after`` up to ``through``; every call returns the same splits.

        One split has all changes of a bucket, in the order of their commits. For a cross-partition table, one split has
        all changes. Raises the errors of :meth:`advance`.
        """
        self._check_table(through)
        if through.order <= after.order:
            return []
        if after.undecided and not through.scan_snapshot:
            raise InvalidInputError(f"cannot plan a batch from {after} to {through}: its first snapshot is undecided")
        units: list[ChangeUnit] = []
        if through.scan_snapshot or (after.scan_snapshot and after.index != ALL):
            scanned, end = (through, through.index) if through.scan_snapshot else (after, ALL)
            first = after.index + 1 if after.snapshot_id == scanned.snapshot_id else 0
            units += self._units(self._scanned(scanned), scan=True)[first : end + 1]
        if through.scan_snapshot:
            return self._as_splits(units)
        first_id = after.snapshot_id + 1 if after.scan_snapshot else after.next_snapshot
        snapshots = self._snapshots(first_id, through.snapshot_id)
        for snapshot, changes in parallel_map(lambda s: (s, self._units(s, scan=False)), snapshots):
            self._check_fingerprint(through, snapshot)
            if problem := self._altered(snapshot):
                raise InvalidInputError(problem)
            first = after.index + 1 if snapshot.id == after.snapshot_id and not after.scan_snapshot else 0
            end = through.index if snapshot.id == through.snapshot_id else ALL
            units += changes[first : end + 1]
        return self._as_splits(units)

    def between(self, interval: Interval) -> Sequence[BatchSplit]:
        """Return the splits of a batch of changes. Raises the errors of :meth:`advance`.

        REQUIRES: the table is the interval's ``source``.
        """
        if interval.mode == DIFF:
            return difference_splits(without_start(self.store), interval, self.predicate)
        if interval.is_empty:
            return []
        check_same_table(self.store.schemas, self.store.schema)
        last = find_change(self.store, interval.last)
        if last is None:
            raise changes_expired(self.store, interval.last)
        return self.plan(position_before(self.store, interval.first + 1), Position.end_of(last))

    # ---- the end of a batch

    def _advance_in_scan(self, after: Position, limits: Limits, until: Position | None) -> Position:
        """Advance in the snapshot with which the stream begins; an ``until`` in later changes does not limit it."""
        snapshot = self._scanned(after)
        end = until.index if until and until.scan_snapshot and until.snapshot_id == snapshot.id else ALL
        units = () if limits == NO_LIMITS else self._units(snapshot, scan=True)
        return replace(after, index=max(after.index, _Budget(limits).take(units, after.index + 1, end)))

    def _advance_in_changes(self, after: Position, limits: Limits, until: Position | None) -> Position:
        """Advance in the changes, up to the newest snapshot that the options allow, like :meth:`advance`."""
        latest, bounds = self.store.snapshots.latest(), incremental_bounds(self.store)
        if after.snapshot_id > (0 if latest is None else latest.id):
            raise self._rolled_back(after)
        if latest is None:
            return after
        reached = latest if latest.id == after.snapshot_id else find_change(self.store, after.snapshot_id)
        if reached is not None:
            self._check_fingerprint(after, reached)
        ends = [latest.id, *(() if bounds is None else bounds[1:]), *(() if until is None else (until.snapshot_id,))]
        position, budget = after, _Budget(limits)
        for snapshot in self._snapshots(after.next_snapshot, min(ends)):
            if self._is_closed(snapshot):
                break
            if problem := self._altered(snapshot):
                if position is after:
                    raise InvalidInputError(problem)
                break
            first = after.index + 1 if snapshot.id == after.snapshot_id else 0
            end = until.index if until is not None and snapshot.id == until.snapshot_id else ALL
            units = () if limits == NO_LIMITS else self._units(snapshot, scan=False)
            index = budget.take(units, first, end)
            if index >= first:
                position = replace(Position.end_of(snapshot, after.table), index=index)
            if index < end:
                break
        return position

    def _is_closed(self, snapshot: Snapshot) -> bool:
        """Return True if the stream ends before this snapshot, or must wait until the snapshot is old enough."""
        options = self.store.options
        bound, delay = options.value(SCAN_BOUNDED_WATERMARK), options.value(STREAMING_READ_SNAPSHOT_DELAY)
        if bound is not None and snapshot.watermark is not None and snapshot.watermark > bound:
            return True
        return delay is not None and self.store.now() - snapshot.time_millis < delay.total_seconds() * 1000

    # ---- change units

    def _units(self, snapshot: Snapshot, *, scan: bool) -> list[ChangeUnit]:
        """Return the units of all rows of the snapshot if ``scan``, else the units of its changes."""
        key = snapshot.fingerprint, scan
        units = self._cached.get(key)
        if units is None:
            store, before = self.store, snapshot.id - 1
            with raise_if_changes_expired(store, snapshot.id):
                if scan:
                    units = all_units(store, snapshot, created_since(store))
                else:
                    units = changed_units(store, snapshot, lambda: store.snapshots.find(before))
            while self._cached and len(self._cached) >= _CACHED:
                self._cached.pop(next(iter(self._cached)), None)  # another thread may have removed the oldest
            self._cached[key] = units
        return units

    def _as_splits(self, units: Sequence[ChangeUnit]) -> list[ChangeSplit]:
        """Group units into splits. Unless all rows are inserts, all units that can hold a key are in one split."""
        schema, options = self.store.schema, self.store.options
        units = self._in_partitions(units)
        unordered = all(unit.source is RowSource.INSERTED for unit in units) or (
            not schema.primary_keys and schema.bucket == -1
        )
        postponed = any(unit.split.bucket < 0 for unit in units)
        groups: dict[BucketRef | bytes | None, list[ChangeUnit]] = {}
        for unit in units:
            bucket = unit.split.partition if postponed else unit.split.bucket_ref
            groups.setdefault(None if schema.is_cross_partition and not unordered else bucket, []).append(unit)
        packing = Packing.of(options)
        bins = (pack(group, _size, packing) if unordered else [group] for group in groups.values())
        return [ChangeSplit(tuple(units)) for units in itertools.chain.from_iterable(bins)]

    def _in_partitions(self, units: Sequence[ChangeUnit]) -> Sequence[ChangeUnit]:
        """Return the units in partitions whose rows can match the predicate."""
        keys = self.store.schema.partition_keys
        on_partition = split_by(self.predicate, set(keys))[0] if self.predicate is not None and keys else None
        if on_partition is None:
            return units
        test = PartitionFilter(on_partition, self.store.schema.partition_arrow)
        matching = test.matching({unit.split.partition for unit in units})
        return [unit for unit in units if unit.split.partition in matching]

    def _snapshots(self, first: int, last: int) -> Iterator[Snapshot]:
        """Yield the snapshots, or their changelogs. OutOfRangeError for the first expired snapshot."""
        for snapshot_id, snapshot in enumerate(
            parallel_map(lambda i: find_change(self.store, i), range(first, last + 1)), first
        ):
            if snapshot is None:
                raise changes_expired(self.store, snapshot_id)
            yield snapshot

    def _scanned(self, position: Position) -> Snapshot:
        """Return the snapshot with which the stream begins. OutOfRangeError if it has expired or was rolled back."""
        snapshot = self.store.snapshots.find(position.snapshot_id)
        if snapshot is None:
            raise changes_expired(self.store, position.snapshot_id)
        self._check_fingerprint(position, snapshot)
        return snapshot

    # ---- checks

    def _table(self) -> str:
        """Return the creation time of the oldest schema, which differs if another table has replaced this one."""
        return str(self._oldest_schema().time_millis)

    def _oldest_schema(self) -> TableSchema:
        schemas = Schemas(self.store.io, self.store.branch_root)
        ids = schemas.ids()
        if not ids:
            raise NotFoundError(f"the table at {self.store.root} no longer exists: it was dropped during the read")
        return schemas.get(ids[0])

    def _check_table(self, position: Position) -> None:
        oldest, opened = self._oldest_schema(), self.store.schema
        if position.table not in ("", str(oldest.time_millis)):
            raise InvalidInputError(
                f"the stream state {position.to_json()} belongs to a table at {self.store.root} that was dropped and "
                "replaced by another table. Start a new reader with new stream state"
            )
        if (oldest.id, oldest.time_millis) != (opened.id, opened.time_millis):
            check_same_table(self.store.schemas, opened)

    def _check_fingerprint(self, position: Position, snapshot: Snapshot) -> None:
        if snapshot.id == position.snapshot_id and position.fingerprint not in ("", snapshot.fingerprint):
            raise self._rolled_back(position)

    def _rolled_back(self, position: Position) -> OutOfRangeError:
        return OutOfRangeError(
            f"{self.store.root} was rolled back: snapshot {position.snapshot_id}, up to which it was read, no longer "
            "belongs to it. Rows read after the snapshot of the rollback are no longer valid: start a new reader with "
            "new stream state"
        )

    def _altered(self, snapshot: Snapshot) -> str | None:
        """Return the reason why a reader that started before an ALTER cannot read this snapshot; `None`: it can."""
        store = self.store
        then, now = store.schemas.get(snapshot.schema_id), store.schemas.get(store.schema.id)
        then_producer, now_producer = (TableTraits(schema).changelog_producer for schema in (then, now))
        if then_producer != now_producer == store.traits.changelog_producer:
            return (
                f"{CHANGELOG_PRODUCER.key!r} of {store.root} was {then_producer!r} at snapshot {snapshot.id}, but is "
                f"{now_producer!r} for this reader: their changes do not form one stream. Start a new reader with new "
                "stream state; to read up to that snapshot first, start it with the option "
                f"{CHANGELOG_PRODUCER.key!r} = {then_producer!r}"
            )
        if then.id <= now.id or then.fields == now.fields:
            return None
        read = {f.id for f in now.fields} & {f.id for f in self.fields or now.fields}
        before, after = ({f.id: (f.name, f.type) for f in fields} for fields in (now.fields, then.fields))
        added = () if self.fields is not None else after.keys() - before.keys()
        differing = [
            after.get(i, before.get(i)) for i in (*sorted(read), *sorted(added)) if before.get(i) != after.get(i)
        ]
        if not differing:
            return None
        names = ", ".join(column[0] for column in differing if column is not None)
        return (
            f"the columns of {store.root} changed at snapshot {snapshot.id}, with schema {then.id}; the reader has "
            f"schema {now.id}: {names}. Restart the reader to continue with the new columns"
        )


class _Budget:
    """The files, bytes and rows of a batch so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._files, self._bytes, self._rows = limits, 0, 0, 0

    def take(self, units: Sequence[ChangeUnit], first: int, end: int) -> int:
        """Take units starting at ``first``. Return the index of the last unit taken, or ``end`` if all are taken."""
        for index in range(first, min(end + 1, len(units))):
            if self._files and self._limits.reached(self._files, self._bytes, self._rows):
                return index - 1
            split = units[index].split
            self._files += len(split.files)
            self._bytes += split.size
            self._rows += split.row_count
        return end


def _size(unit: ChangeUnit) -> int:
    return unit.split.size
