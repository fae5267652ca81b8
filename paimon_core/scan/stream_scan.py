"""A stream of changes: where it starts, how far a batch goes, and what there is to read between two positions."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.options.scan import (
    SCAN_BOUNDED_WATERMARK,
    STREAMING_READ_SNAPSHOT_DELAY,
)
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import split_by
from paimon_core.scan.change_units import ChangeUnit, RowSource, all_units, changed_units
from paimon_core.scan.entries import PartitionFilter
from paimon_core.scan.position import ALL, Position
from paimon_core.scan.split_plan import Packing, pack
from paimon_core.scan.starting_scanner import (
    created_since,
    expired,
    find_change,
    incremental_bounds,
    raise_if_changes_expired,
    snapshot_fingerprint,
    starting_position,
    without_start,
)
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.support import check_readable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField

__all__ = ["ChangeSplit", "Limits", "StreamScan"]

_REMEMBERED = 4  # lists of pieces: planning asks again for what admission has just looked at


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one batch takes: no further piece once one of these is reached. None is no limit."""

    files: int | None = None
    bytes: int | None = None
    rows: int | None = None

    def reached(self, files: int, size: int, rows: int) -> bool:
        """Whether so much is enough."""
        pairs = ((self.files, files), (self.bytes, size), (self.rows, rows))
        return any(most is not None and taken >= most for most, taken in pairs)


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ChangeSplit:
    """What one task reads of a batch, in this order."""

    pieces: tuple[ChangeUnit, ...]

    @property
    def row_count(self) -> int:
        """Rows stored; merging and filters may leave fewer."""
        return sum(piece.split.row_count for piece in self.pieces)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(piece.split.size for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class StreamScan:
    """The changes of a table as its options ask for them, for one query.

    ``fields`` are the columns it chose, those of its filter included; None: all. ``predicate`` (bound to the store's
    schema) leaves out partitions. Positions and snapshots are all there is to know: nothing is kept from call to call
    but what saves reading the same metadata again.
    """

    store: FileStore
    fields: tuple[DataField, ...] | None = None
    predicate: Predicate | None = None
    _known: dict[tuple[str, bool], list[ChangeUnit]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        check_readable(without_start(self.store).schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels without what it remembers."""
        return StreamScan, (self.store, self.fields, self.predicate)

    def start(self) -> Position:
        """Where a new query starts (see `stream_start.start_of`)."""
        return replace(starting_position(self.store), table=self._table())

    def latest(self) -> Position:
        """The end of all there is now, or of what the options let the stream see."""
        latest, bounds = self.store.snapshots.latest(), incremental_bounds(self.store)
        if latest is None:
            return Position(0, ALL, table=self._table())
        if bounds is not None and bounds[1] < latest.id:
            latest = find_change(self.store, bounds[1]) or latest
        return Position(latest.id, ALL, mark=snapshot_fingerprint(latest), table=self._table())

    def advance(self, after: Position, limits: Limits = NO_LIMITS, until: Position | None = None) -> Position:
        """How far a batch that starts behind ``after`` may go; ``after`` itself where there is nothing new.

        It takes one piece at least, and others up to ``limits`` and ``until``. All rows of a snapshot, where the stream
        begins with them, are never in one batch with the changes after it. Raises OutOfRangeError where the next
        snapshot has expired or the table was rolled back, InvalidInputError where its columns have changed, or another
        table is in its place.
        """
        self._check_table(after)
        if after.undecided:
            begun = starting_position(self.store)
            if begun.undecided:
                return after
            after = replace(begun, table=after.table)
        if after.scan_snapshot and after.index != ALL:
            return self._through_scan(after, limits, until)
        return self._through_changes(after, limits, until)

    def plan(self, after: Position, through: Position) -> list[ChangeSplit]:
        """What there is to read behind ``after`` up to ``through``: the same whenever it is asked for.

        Changes of one bucket are in one split, in the order they happened; those of a table whose keys may move between
        partitions all are. Raises as :meth:`advance` does.
        """
        self._check_table(through)
        if through.order <= after.order:
            return []
        if after.undecided and not through.scan_snapshot:
            raise InvalidInputError(f"no batch goes from {after} to {through}: its first snapshot is not decided")
        pieces: list[ChangeUnit] = []
        if through.scan_snapshot or (after.scan_snapshot and after.index != ALL):
            scanned, end = (through, through.index) if through.scan_snapshot else (after, ALL)
            first = after.index + 1 if after.snapshot_id == scanned.snapshot_id else 0
            pieces += self._pieces(self._scanned(scanned), scan=True)[first : end + 1]
        if through.scan_snapshot:
            return self._dealt(pieces)
        first_id = after.snapshot_id + 1 if after.scan_snapshot else after.next_snapshot
        snapshots = self._snapshots(first_id, through.snapshot_id)
        for snapshot, changes in parallel_map(lambda s: (s, self._pieces(s, scan=False)), snapshots):
            self._check_mark(through, snapshot)
            if problem := self._altered(snapshot):
                raise InvalidInputError(problem)
            first = after.index + 1 if snapshot.id == after.snapshot_id and not after.scan_snapshot else 0
            end = through.index if snapshot.id == through.snapshot_id else ALL
            pieces += changes[first : end + 1]
        return self._dealt(pieces)

    # ---- how far

    def _through_scan(self, after: Position, limits: Limits, until: Position | None) -> Position:
        """All rows of the snapshot the stream begins with; an ``until`` among the changes says nothing of them."""
        snapshot = self._scanned(after)
        among = until is not None and until.scan_snapshot and until.snapshot_id == snapshot.id
        end = until.index if until is not None and among else ALL
        pieces = () if limits == NO_LIMITS else self._pieces(snapshot, scan=True)
        return replace(after, index=max(after.index, _Budget(limits).take(pieces, after.index + 1, end)))

    def _through_changes(self, after: Position, limits: Limits, until: Position | None) -> Position:
        latest, bounds = self.store.snapshots.latest(), incremental_bounds(self.store)
        if after.snapshot_id > (0 if latest is None else latest.id):
            raise self._rolled_back(after)
        if latest is None:
            return after
        known = latest if latest.id == after.snapshot_id else find_change(self.store, after.snapshot_id)
        if known is not None:
            self._check_mark(after, known)
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
            pieces = () if limits == NO_LIMITS else self._pieces(snapshot, scan=False)
            index = budget.take(pieces, first, end)
            if index >= first:
                position = Position(snapshot.id, index, mark=snapshot_fingerprint(snapshot), table=after.table)
            if index < end:
                break
        return position

    def _is_closed(self, snapshot: Snapshot) -> bool:
        """Whether the stream ends before this snapshot, or has to wait for it to be old enough."""
        options = self.store.options
        bound, delay = options.value(SCAN_BOUNDED_WATERMARK), options.value(STREAMING_READ_SNAPSHOT_DELAY)
        if bound is not None and snapshot.watermark is not None and snapshot.watermark > bound:
            return True
        return delay is not None and self.store.now() - snapshot.time_millis < delay.total_seconds() * 1000

    # ---- what there is

    def _pieces(self, snapshot: Snapshot, *, scan: bool) -> list[ChangeUnit]:
        key = snapshot_fingerprint(snapshot), scan
        found = self._known.get(key)
        if found is None:
            store, before = self.store, snapshot.id - 1
            with raise_if_changes_expired(store, snapshot.id):
                if scan:
                    found = all_units(store, snapshot, created_since(store))
                else:
                    found = changed_units(store, snapshot, lambda: store.snapshots.find(before))
            while self._known and len(self._known) >= _REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
            self._known[key] = found
        return found

    def _dealt(self, pieces: Sequence[ChangeUnit]) -> list[ChangeSplit]:
        """The pieces as splits. Where rows may be changed again, all that may concern one key is in one of them."""
        schema, options = self.store.schema, self.store.options
        pieces = self._in_partitions(pieces)
        free = all(piece.way is RowSource.INSERTED for piece in pieces) or (
            not schema.primary_keys and schema.bucket == -1
        )
        waiting = any(piece.split.bucket < 0 for piece in pieces)
        groups: dict[tuple[bytes, int] | bytes | None, list[ChangeUnit]] = {}
        for piece in pieces:
            place = piece.split.partition if waiting else (piece.split.partition, piece.split.bucket)
            groups.setdefault(None if schema.is_cross_partition and not free else place, []).append(piece)
        packing = Packing.of(options)
        bins = (pack(group, _size, packing) if free else [group] for group in groups.values())
        return [ChangeSplit(tuple(one)) for one in itertools.chain.from_iterable(bins)]

    def _in_partitions(self, pieces: Sequence[ChangeUnit]) -> Sequence[ChangeUnit]:
        """The pieces in partitions with rows that may match."""
        keys = self.store.schema.partition_keys
        on_partition = split_by(self.predicate, set(keys))[0] if self.predicate is not None and keys else None
        if on_partition is None:
            return pieces
        test = PartitionFilter(on_partition, self.store.schema.partition_arrow)
        kept = test.matching({piece.split.partition for piece in pieces})
        return [piece for piece in pieces if piece.split.partition in kept]

    def _snapshots(self, first: int, last: int) -> Iterator[Snapshot]:
        """These snapshots, or what is kept of them. OutOfRangeError for the first that is gone."""
        for snapshot_id, found in enumerate(
            parallel_map(lambda i: find_change(self.store, i), range(first, last + 1)), first
        ):
            if found is None:
                raise OutOfRangeError(expired(self.store, snapshot_id))
            yield found

    def _scanned(self, position: Position) -> Snapshot:
        found = self.store.snapshots.find(position.snapshot_id)
        if found is None:
            raise OutOfRangeError(expired(self.store, position.snapshot_id))
        self._check_mark(position, found)
        return found

    # ---- what cannot be gone on with

    def _table(self) -> str:
        """What tells this table from another made in its place: when its oldest schema was."""
        schemas = Schemas(self.store.io, self.store.branch_root)
        ids = schemas.ids()
        if not ids:
            raise NotFoundError(f"there is no table at {self.store.root} any more: it was dropped while being read")
        return str(schemas.get(ids[0]).time_millis)

    def _check_table(self, position: Position) -> None:
        if position.table not in ("", self._table()):
            raise InvalidInputError(
                f"the stream came to {position.to_json()} of a table at {self.store.root} that is not there any more: "
                "another one was made in its place. Start a new query, with a checkpoint of its own"
            )

    def _check_mark(self, position: Position, found: Snapshot) -> None:
        if found.id == position.snapshot_id and position.mark not in ("", snapshot_fingerprint(found)):
            raise self._rolled_back(position)

    def _rolled_back(self, position: Position) -> OutOfRangeError:
        return OutOfRangeError(
            f"{self.store.root} was rolled back: snapshot {position.snapshot_id}, up to which it was read, is no part "
            "of it any more. What was read since the snapshot it was rolled back to holds no longer: start a new "
            "query, with a checkpoint of its own"
        )

    def _altered(self, snapshot: Snapshot) -> str | None:
        """Why a query that began before the table was altered cannot read this snapshot; None where it can."""
        store = self.store
        then, now = store.schemas.get(snapshot.schema_id), store.schemas.get(store.schema.id)
        told, tells = then.options.value(CHANGELOG_PRODUCER), now.options.value(CHANGELOG_PRODUCER)
        if told != tells == store.options.value(CHANGELOG_PRODUCER):
            return (
                f"{CHANGELOG_PRODUCER.key!r} of {store.root} was {told!r} at snapshot {snapshot.id}, and is {tells!r} "
                "to this query: what it reads would not join on. Start a new query, with a checkpoint of its own; to "
                f"read up to there first, give it the option {CHANGELOG_PRODUCER.key!r} = {told!r}"
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
        names = ", ".join(one[0] for one in differing if one is not None)
        return (
            f"the columns of {store.root} changed at snapshot {snapshot.id}, of schema {then.id} where the query has "
            f"{now.id}: {names}. Restart the query to go on with the new columns"
        )


class _Budget:
    """What a batch has taken so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._files, self._bytes, self._rows = limits, 0, 0, 0

    def take(self, pieces: Sequence[ChangeUnit], first: int, end: int) -> int:
        """Takes pieces from ``first`` on; the index of the last one taken, or ``end`` where none up to it is left."""
        for index in range(first, min(end + 1, len(pieces))):
            if self._files and self._limits.reached(self._files, self._bytes, self._rows):
                return index - 1
            split = pieces[index].split
            self._files += len(split.files)
            self._bytes += split.size
            self._rows += split.row_count
        return end


def _size(piece: ChangeUnit) -> int:
    return piece.split.size
