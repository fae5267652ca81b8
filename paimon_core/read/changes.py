"""What changed, as rows: each with its kind, or only those that came where nothing else may have happened."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lsm.intervals import sections
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns, restrict
from paimon_core.read.cross_partition_changes import keys_with_last_kind
from paimon_core.read.table_read import TableRead
from paimon_core.scan.change_units import ChangeUnit, RowSource, changed_units
from paimon_core.scan.split_plan import may_delete
from paimon_core.scan.starting_scanner import earliest_change, find_change, raise_if_changes_expired, without_start
from paimon_core.scan.stream_scan import ChangeSplit
from paimon_core.schema.support import check_readable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT, is_retract, kind_names
from paimon_core.types.system_fields import ROW_KIND, VALUE_KIND

__all__ = ["ChangeRead", "changes", "changes_schema"]


@dataclass(frozen=True, slots=True)
class ChangeRead:
    """Rows of the splits of a stream: the columns ``fields``, of rows matching ``predicate`` (bound to the store's
    schema).

    With ``kinds`` every row that changed comes, its kind ("+I", "-U", "+U", "-D") in a first column ``rowkind``.
    Without it rows that came, or came instead of others, do; one that went is an UnsupportedError, or left out where
    the user says so by ``ignore_deletes``.
    """

    store: FileStore
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None
    kinds: bool = False
    ignore_deletes: bool = False
    _at_any_place: FileStore = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_at_any_place", without_start(self.store))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return arrow_schema((ROW_KIND, *self.fields) if self.kinds else self.fields)

    def to_batches(self, split: ChangeSplit) -> Iterator[pa.RecordBatch]:
        """The rows of one split in their order; batches are never empty. Memory as of a batch read.

        Where keys may move from one partition to another, those that left a place come before those that came to one.
        Raises OutOfRangeError where the snapshot expires meanwhile.
        """
        for snapshot_id, group in itertools.groupby(split.units, lambda piece: piece.split.snapshot_id):
            with raise_if_changes_expired(self.store, snapshot_id):
                pieces = list(group)
                for batch in self._of_snapshot(pieces):
                    shaped = self._with_kinds(batch) if self.kinds else self._came(batch, snapshot_id)
                    if shaped.num_rows:
                        yield shaped

    def _of_snapshot(self, pieces: Sequence[ChangeUnit]) -> Iterator[pa.RecordBatch]:
        if not self._moves(pieces):
            for piece in pieces:
                yield from self._told(piece)
            return
        keys = self.store.schema.trimmed_primary_keys
        for alive in (False, True):
            for piece in pieces:
                yield from keys_with_last_kind(self._told(piece, keys), keys, alive=alive)

    def _moves(self, pieces: Sequence[ChangeUnit]) -> bool:
        """Whether keys may have left one of these places for another. Refuses what would not tell in which order."""
        stored: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        for piece in pieces:
            as_stored = piece.source is RowSource.STORED_KINDS and piece.split.raw_convertible
            found = stored.setdefault((piece.split.partition, piece.split.bucket), [])
            found.extend(piece.split.files if as_stored else ())
        went = any(piece.source is RowSource.DELETED or any(map(may_delete, piece.split.files)) for piece in pieces)
        if not self.store.schema.is_cross_partition or len(stored) < 2 or not went:
            return False
        for files in stored.values():
            if any(len(runs) > 1 for runs in sections(files, self.store.schema.key_arrow)):
                raise UnsupportedError(
                    f"snapshot {pieces[0].split.snapshot_id} of {self.store.root} changed keys more than once, some of "
                    "them across partitions: it does not tell in which order. Use 'changelog-producer' = 'lookup', "
                    "which tells what came of it"
                )
        return True

    def _told(self, piece: ChangeUnit, keys: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """``_VALUE_KIND``, the columns asked for, ``keys``, and where deletes are refused those the filter looks at."""
        store, fields = self._at_any_place, self._read_fields(keys)
        if store.schema.primary_keys and piece.source is RowSource.STORED_KINDS:
            yield from TableRead(store, fields, self._read_predicate(), forgiving=True).told(piece.split)
            return
        kind = pa.scalar(DELETE if piece.source is RowSource.DELETED else INSERT, pa.int8())
        schema = arrow_schema((VALUE_KIND, *fields))
        for batch in TableRead(store, fields, self.predicate, forgiving=True).to_batches(piece.split):
            columns = [pa.repeat(kind, batch.num_rows), *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    @property
    def _refuses_deletes(self) -> bool:
        return not self.kinds and not self.ignore_deletes

    def _read_fields(self, keys: Sequence[str]) -> tuple[DataField, ...]:
        needed = columns(self.predicate) if self.predicate is not None and self._refuses_deletes else set()
        extra = {*keys, *needed} - {f.name for f in self.fields}
        return (*self.fields, *(f for f in self.store.schema.fields if f.name in extra))

    def _read_predicate(self) -> Predicate | None:
        """A row that went need not say more than its key: whether a delete is meant cannot be told by other columns."""
        if self.predicate is None or not self._refuses_deletes:
            return self.predicate
        return restrict(self.predicate, set(self.store.schema.primary_keys))

    def _with_kinds(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        asked = batch.columns[1 : 1 + len(self.fields)]
        return pa.RecordBatch.from_arrays([kind_names(batch.column(0)), *asked], schema=self.schema)

    def _came(self, batch: pa.RecordBatch, snapshot_id: int) -> pa.RecordBatch:
        kinds = batch.column(0).to_numpy()
        alone = self.store.options.value(CHANGELOG_PRODUCER) == "none"  # then no -U has a +U beside it: the row is gone
        if self._refuses_deletes and (is_retract(kinds) if alone else kinds == DELETE).any():
            raise UnsupportedError(
                f"rows of {self.store.root} were deleted at snapshot {snapshot_id}, which a stream of rows "
                "cannot tell: read changes with their kinds ('read.changelog' = 'true'), or leave deletes out "
                "('read.ignore-deletes' = 'true')"
            )
        came = ~is_retract(kinds)
        rows = batch if came.all() else batch.filter(pa.array(came))
        if self.predicate is not None and self._refuses_deletes:
            rows = rows.filter(evaluate(self.predicate, rows))
        return rows.select(range(1, 1 + len(self.fields)))


def changes_schema(store: FileStore) -> pa.Schema:
    """The columns of changes: ``rowkind`` (text such as "+I"), then those of the table."""
    return ChangeRead(store, store.schema.fields, kinds=True).schema


def changes(store: FileStore, after: int, through: int | None = None) -> Iterator[pa.RecordBatch]:
    """The changes of every snapshot from ``after``, which does not count, ``through`` one that does (None: the newest).

    Where the table has a changelog producer they are what it told; else the rows that were written, once per key and
    commit. Snapshot by snapshot; of one key in the order they happened. Overwriting tells nothing, unless the table's
    options ask for it. What has expired is read as long as its changelog is kept. Memory: as of a batch read.
    OutOfRangeError for snapshots that are not there.
    """
    check_readable(store.schema)
    read = ChangeRead(store, store.schema.fields, kinds=True)
    for snapshot in _snapshots(store, after, through):
        before = partial(store.snapshots.find, snapshot.id - 1)
        yield from read.to_batches(ChangeSplit(tuple(changed_units(store, snapshot, before))))


def _snapshots(store: FileStore, after: int, through: int | None) -> Iterator[Snapshot]:
    latest = store.snapshots.latest_id() or 0
    first, last = earliest_change(store) or 1, latest if through is None else through
    if not first - 1 <= after <= last <= latest:
        raise OutOfRangeError(
            f"{store.root} has no changes after snapshot {after} through {last}: it has snapshots {first} to {latest}, "
            f"so the first number must be at least {first - 1}, and the second one neither below it nor above {latest}"
        )

    def find(snapshot_id: int) -> Snapshot:
        return find_change(store, snapshot_id) or store.snapshots.get(snapshot_id)

    return parallel_map(find, range(after + 1, last + 1))
