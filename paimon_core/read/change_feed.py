"""The rows of a change feed: the changes of commits, with their type, version and time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.memory import MemoryShares
from paimon_core.options.scan import SCAN_IGNORE_CORRUPT_FILES, SCAN_IGNORE_LOST_FILES
from paimon_core.predicate.expr import Predicate
from paimon_core.read.difference import difference_batches
from paimon_core.read.row_numbers import row_numbers
from paimon_core.read.table_read import TableRead
from paimon_core.row.bucket import buckets
from paimon_core.scan.change_feed import CHANGE_FIELDS, CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, FeedSplit
from paimon_core.scan.difference import DiffSplit
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import without_start
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, INSERT

_TYPES = ("insert", "delete", "insert", "delete")
_TYPES_WITH_UPDATES = ("insert", "update_preimage", "update_postimage", "delete")
_SKIPPING = (SCAN_IGNORE_LOST_FILES.key, SCAN_IGNORE_CORRUPT_FILES.key)
_DECODED = 8
"""The most bytes of decoded rows for each byte of a file, as an estimate."""
"""Bytes of the rows that are compared at a time. More rows are read in several parts."""


@dataclass(frozen=True, slots=True)
class FeedRead:
    """A reader of the splits of a feed: the columns ``fields``, which may include `CHANGE_FIELDS`.

    ``predicate`` (bound to the store's schema, on columns of the table) may leave out rows for which it is not true.
    With ``updates``, the two rows of an updated key have the types ``update_preimage`` and ``update_postimage``;
    without, they are a ``delete`` and an ``insert``, as for tables without a primary key.
    """

    store: FileStore
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None
    updates: bool = False
    _columns: tuple[DataField, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        store = without_start(self.store)
        skipping = [key for key in _SKIPPING if key in store.options]
        if skipping:  # the rows of a file that is left out would count as deleted or inserted
            store = store.with_schema(store.schema.copy(dict.fromkeys(skipping)))
        object.__setattr__(self, "store", store)
        object.__setattr__(self, "_columns", tuple(f for f in self.fields if f not in CHANGE_FIELDS))

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return arrow_schema(self.fields)

    def to_batches(self, split: FeedSplit) -> Iterator[pa.RecordBatch]:
        """Yield the changes of one split; batches are never empty.

        Memory: the same as a batch read. For commits that rewrote rows of a table without a primary key, also about
        256 MiB; such files are read more than once if they are larger.
        """
        for kinds, rows in self._changes(split):
            if rows.num_rows:
                yield self._with_change_columns(kinds, rows, split)

    def _changes(self, split: FeedSplit) -> Iterator[tuple[npt.NDArray[np.int8], pa.RecordBatch]]:
        """Yield the kinds and the rows of changes."""
        names = [f.name for f in self._columns]
        if self.store.traits.keyed:
            compared = DiffSplit(split.before, split.after)
            for batch in difference_batches(self.store, compared, self.predicate):
                yield batch.column(0).to_numpy(), batch.select(names)
        elif split.before and split.after:
            yield from self._compared_rows(split)
        else:
            kind = np.int8(DELETE if split.before else INSERT)
            read = TableRead(self.store, self._columns, self.predicate, skip_bad_files=False)
            for batch in _batches(read, (*split.before, *split.after)):
                yield np.full(batch.num_rows, kind), batch

    def _compared_rows(self, split: FeedSplit) -> Iterator[tuple[npt.NDArray[np.int8], pa.RecordBatch]]:
        """Yield the rows that only one side has; of several equal rows, as many as the other side lacks."""
        parts = -(-split.size * _DECODED // MemoryShares.of(self.store.options).compared) or 1
        hashed = [f.name for f in self.store.schema.fields if _is_hashable(f)]
        read = TableRead(self.store, self.store.schema.fields, self.predicate, skip_bad_files=False)
        for number in range(parts if hashed else 1):
            sides = []
            for splits in (split.before, split.after):
                batches: Iterable[pa.RecordBatch] = _batches(read, splits)
                if parts > 1 and hashed:
                    batches = (_part(batch, hashed, parts, number) for batch in batches)
                sides.append(pa.Table.from_batches(batches, read.schema))
            for kind, rows in zip((DELETE, INSERT), _unmatched(*sides), strict=True):
                chosen = rows.select([f.name for f in self._columns])
                for batch in _as_batches(chosen, rows.num_rows):
                    yield np.full(batch.num_rows, np.int8(kind)), batch

    def _with_change_columns(
        self, kinds: npt.NDArray[np.int8], rows: pa.RecordBatch, split: FeedSplit
    ) -> pa.RecordBatch:
        """Return the requested columns of some changes."""
        schema, found = self.schema, []
        for wanted, column in zip(self.fields, schema, strict=True):
            if wanted == CHANGE_TYPE:
                texts = pa.array(_TYPES_WITH_UPDATES if self.updates else _TYPES, column.type)
                found.append(texts.take(pa.array(kinds)))
            elif wanted == COMMIT_VERSION:
                found.append(pa.repeat(pa.scalar(split.snapshot_id, column.type), len(kinds)))
            elif wanted == COMMIT_TIMESTAMP:
                micros = pa.repeat(pa.scalar(split.time_millis * 1000, pa.int64()), len(kinds))
                found.append(micros.view(column.type))
            else:
                found.append(rows.column(wanted.name))
        return pa.RecordBatch.from_arrays(found, schema=schema)


def _batches(read: TableRead, splits: Sequence[DataSplit]) -> Iterator[pa.RecordBatch]:
    return itertools.chain.from_iterable(map(read.to_batches, splits))


def _as_batches(rows: pa.Table, count: int) -> Sequence[pa.RecordBatch]:
    """Return the rows as batches; a table without columns gives one batch."""
    if rows.num_columns:
        batches: Sequence[pa.RecordBatch] = rows.to_batches()
        return batches
    return [pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))]


def _is_hashable(field: DataField) -> bool:
    kind = arrow_schema((field,)).types[0]
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))


def _part(batch: pa.RecordBatch, columns: Sequence[str], parts: int, number: int) -> pa.RecordBatch:
    """Return the rows of one of several parts; equal rows are in the same part."""
    return batch.filter(pa.array(buckets(batch.select(columns), parts) == number))


def _unmatched(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of each table that the other lacks, as ``EXCEPT ALL`` does."""
    rows = pa.concat_tables([before, after]).combine_chunks()
    columns = [c.chunk(0) if c.num_chunks == 1 else pa.concat_arrays(c.chunks) for c in rows.columns]
    numbers = row_numbers(columns, rows.num_rows) if rows.num_rows else np.zeros(0, np.int32)
    sides = numbers[: before.num_rows], numbers[before.num_rows :]
    count = int(numbers.max(initial=-1)) + 1
    matched = np.minimum(*(np.bincount(side, minlength=count) for side in sides))
    return (
        before.filter(pa.array(_occurrence(sides[0], count) >= matched[sides[0]])),
        after.filter(pa.array(_occurrence(sides[1], count) >= matched[sides[1]])),
    )


def _occurrence(numbers: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
    """Return for each row how many rows before it have the same number."""
    order = np.argsort(numbers, kind="stable")
    sizes = np.bincount(numbers, minlength=count)
    starts = np.cumsum(sizes) - sizes
    found = np.empty(len(numbers), np.int64)
    found[order] = np.arange(len(numbers)) - starts[numbers[order]]
    return found
