"""Changes as rows: every changed row with its kind, or only added rows."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lsm.intervals import sections
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns, restrict
from paimon_core.read.cross_partition_changes import keys_with_last_kind
from paimon_core.read.difference import difference_batches
from paimon_core.read.table_read import TableRead
from paimon_core.scan.change_units import ChangeUnit, RowSource, changed_units
from paimon_core.scan.difference import DiffSplit
from paimon_core.scan.interval import DIFF, Interval
from paimon_core.scan.starting_scanner import own_branch, without_start
from paimon_core.scan.stream_scan import BatchSplit, ChangeSplit, difference_splits
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.change_range import find_change, raise_if_changes_expired
from paimon_core.store.current_schema import check_columns
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT, is_retract, kind_names
from paimon_core.types.selection import bits, filter_rows
from paimon_core.types.system_fields import ROW_KIND, VALUE_KIND


@dataclass(frozen=True, slots=True)
class ChangeRead:
    """A reader of the splits of a stream: the columns ``fields`` of the rows that match ``predicate``.

    ``predicate`` is bound to the store's schema. With ``kinds``, every changed row is read, with its kind ("+I", "-U",
    "+U", "-D") in a first column ``rowkind``. Without ``kinds``, added rows and the new rows of updates are read: a
    deleted row raises UnsupportedError, or is left out with ``ignore_deletes``.
    """

    store: FileStore
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None
    kinds: bool = False
    ignore_deletes: bool = False
    _without_start: FileStore = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "store", own_branch(self.store))
        object.__setattr__(self, "_without_start", without_start(self.store))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return arrow_schema((ROW_KIND, *self.fields) if self.kinds else self.fields)

    def to_batches(self, split: BatchSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split in order; batches are never empty. Memory: the same as a batch read.

        If keys may move between partitions, rows of keys that left a bucket precede rows of keys that entered a bucket.
        Without ``kinds``, a key that only the older of two compared snapshots has yields no row.
        Raises OutOfRangeError if the snapshot expires during the read.
        """
        if isinstance(split, DiffSplit):
            yield from self._differences(split)
            return
        for snapshot_id, group in itertools.groupby(split.units, lambda unit: unit.split.snapshot_id):
            with raise_if_changes_expired(self.store, snapshot_id):
                for batch in self._snapshot_batches(list(group)):
                    rows = self._with_kinds(batch) if self.kinds else self._added_rows(batch, snapshot_id)
                    if rows.num_rows:
                        yield rows

    def _differences(self, split: DiffSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows that differ between two snapshots."""
        names = [VALUE_KIND.name, *(field.name for field in self.fields)]
        for batch in difference_batches(self._without_start, split, self.predicate):
            rows = batch if self.predicate is None else filter_rows(batch, evaluate(self.predicate, batch))
            if not self.kinds:
                rows = filter_rows(rows, bits(~is_retract(rows.column(0).to_numpy())))
            if rows.num_rows:
                chosen = rows.select(names)
                yield self._with_kinds(chosen) if self.kinds else chosen.select(range(1, len(names)))

    def _snapshot_batches(self, units: Sequence[ChangeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the units of one snapshot; the first column holds the kinds (int8)."""
        if not self._may_move_keys(units):
            for unit in units:
                yield from self._unit_batches(unit)
            return
        keys = self.store.schema.trimmed_primary_keys
        for alive in (False, True):
            for unit in units:
                yield from keys_with_last_kind(self._unit_batches(unit, keys), keys, alive=alive)

    def _may_move_keys(self, units: Sequence[ChangeUnit]) -> bool:
        """Return True if keys may have moved between these buckets.

        Raises UnsupportedError if the files do not define the order of a key's changes.
        """
        stored: dict[BucketRef, list[DataFileMeta]] = {}
        for unit in units:
            as_stored = unit.source is RowSource.STORED_KINDS and unit.split.raw_convertible
            stored.setdefault(unit.split.bucket_ref, []).extend(unit.split.files if as_stored else ())
        deletes = any(unit.source is RowSource.DELETED or any(f.may_delete for f in unit.split.files) for unit in units)
        if not self.store.schema.is_cross_partition or len(stored) < 2 or not deletes:
            return False
        for files in stored.values():
            if any(len(runs) > 1 for runs in sections(files, self.store.schema.key_arrow)):
                raise UnsupportedError(
                    f"snapshot {units[0].split.snapshot_id} of {self.store.root} changed keys more than once, some of "
                    "them across partitions: the order of these changes is unknown. Use 'changelog-producer' = "
                    "'lookup', which records the changes that remain"
                )
        return True

    def _unit_batches(self, unit: ChangeUnit, keys: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield ``_VALUE_KIND``, the requested columns, ``keys`` and, if deletes are refused, the filter's columns."""
        store, fields = self._without_start, self._read_fields(keys)
        if store.schema.primary_keys and unit.source is RowSource.STORED_KINDS:
            yield from TableRead(store, fields, self._read_predicate(), skip_bad_files=True).changelog_batches(
                unit.split
            )
            return
        kind = pa.scalar(DELETE if unit.source is RowSource.DELETED else INSERT, pa.int8())
        schema = arrow_schema((VALUE_KIND, *fields))
        for batch in TableRead(store, fields, self.predicate, skip_bad_files=True).to_batches(unit.split):
            columns = [pa.repeat(kind, batch.num_rows), *batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    @property
    def _refuses_deletes(self) -> bool:
        return not self.kinds and not self.ignore_deletes

    def _read_fields(self, keys: Sequence[str]) -> tuple[DataField, ...]:
        """Return the requested columns, then the other columns that the key and the filter need."""
        needed = columns(self.predicate) if self.predicate is not None and self._refuses_deletes else set()
        extra = {*keys, *needed} - {f.name for f in self.fields}
        return (*self.fields, *(f for f in self.store.schema.fields if f.name in extra))

    def _read_predicate(self) -> Predicate | None:
        """Return the predicate to read with; if deletes are refused, only its part on the key.

        A deleted row may hold only its key, so a filter on other columns could hide the delete.
        """
        if self.predicate is None or not self._refuses_deletes:
            return self.predicate
        return restrict(self.predicate, set(self.store.schema.primary_keys))

    def _with_kinds(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the kinds of the rows as texts, and the requested columns."""
        chosen = batch.columns[1 : 1 + len(self.fields)]
        return pa.RecordBatch.from_arrays([kind_names(batch.column(0)), *chosen], schema=self.schema)

    def _added_rows(self, batch: pa.RecordBatch, snapshot_id: int) -> pa.RecordBatch:
        """Return the rows that are added, with the requested columns. UnsupportedError for refused deletes."""
        kinds = batch.column(0).to_numpy()
        deletes_by_update = self.store.traits.changelog_producer == "none"  # a -U comes without a +U and deletes
        if self._refuses_deletes and (is_retract(kinds) if deletes_by_update else kinds == DELETE).any():
            raise UnsupportedError(
                f"rows of {self.store.root} were deleted at snapshot {snapshot_id}, which a stream of rows "
                "cannot show: read changes with their kinds ('read.changelog' = 'true'), or leave deletes out "
                "('read.ignore-deletes' = 'true')"
            )
        adds = ~is_retract(kinds)
        rows = batch if adds.all() else batch.filter(pa.array(adds))
        if self.predicate is not None and self._refuses_deletes:
            rows = rows.filter(evaluate(self.predicate, rows))
        return rows.select(range(1, 1 + len(self.fields)))


def changes_schema(store: FileStore) -> pa.Schema:
    """Return the columns of changes: ``rowkind`` (text such as "+I"), then the columns of the table."""
    return ChangeRead(store, store.schema.fields, kinds=True).schema


def changes(store: FileStore, interval: Interval) -> Iterator[pa.RecordBatch]:
    """Yield the changes of an interval.

    With a changelog producer these are the rows of its changelog, else the written rows, once per key and commit. They
    are in the order of snapshots, and within a snapshot in the order of each key's changes. An overwrite yields rows
    only if the table's options ask for them. An expired snapshot is read if its changelog exists. In mode ``diff`` the
    changes are the difference between the rows of two snapshots, by key. Memory: the same as a batch read.
    """
    source = interval.source(without_start(store))
    read = ChangeRead(source, store.schema.fields, kinds=True)
    for split in change_splits(source, interval):
        yield from read.to_batches(split)


def change_splits(store: FileStore, interval: Interval) -> Iterator[BatchSplit]:
    """Yield one split for each snapshot with changes, in the order of commits; in mode ``diff`` the planned splits.

    Raises InvalidInputError as `check_columns` and `changed_units`.
    REQUIRES: ``store`` is the interval's ``source``.
    """
    store.check_readable()
    if interval.mode == DIFF:
        yield from difference_splits(store, interval)
        return
    for snapshot in _snapshots(store, interval):
        check_columns(store.schemas, store.schema, snapshot)
        before = partial(store.snapshots.find, snapshot.id - 1)
        units = tuple(changed_units(store, snapshot, before))
        if units:
            yield ChangeSplit(units)


def _snapshots(store: FileStore, interval: Interval) -> Iterator[Snapshot]:
    """Yield the snapshots of an interval, or their changelogs. OutOfRangeError for an expired snapshot."""
    ids = range(interval.first + 1, interval.last + 1)
    return parallel_map(lambda i: find_change(store, i) or store.snapshots.get(i), ids)
