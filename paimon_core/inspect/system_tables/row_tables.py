"""The system tables of rows: ``audit_log``, ``binlog`` and ``row_tracking``."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import UnsupportedError
from paimon_core.inspect.system_tables.kind import Part, Request, SystemTableKind
from paimon_core.options.merge import TABLE_READ_SEQUENCE_NUMBER_ENABLED
from paimon_core.predicate.rewrite import restrict
from paimon_core.read.changed_rows import ChangeRead, change_splits
from paimon_core.read.table_read import TableRead
from paimon_core.scan.difference import DiffSplit
from paimon_core.scan.interval import DIFF, interval_of
from paimon_core.scan.split import DataSplit
from paimon_core.scan.starting_scanner import without_start
from paimon_core.scan.table_scan import TableScan
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import ArrayType, DataField, with_nullable
from paimon_core.types.row_kind import INSERT, SHORT_NAMES, UPDATE_AFTER, UPDATE_BEFORE, kind_names
from paimon_core.types.selection import bits, filter_rows
from paimon_core.types.system_fields import ROW_KIND, SEQUENCE_NUMBER


def _audit_fields(store: FileStore) -> tuple[DataField, ...]:
    return (ROW_KIND, *row_fields(store))


def _binlog_fields(store: FileStore) -> tuple[DataField, ...]:
    return (ROW_KIND, *map(listed, row_fields(store)))


def row_fields(store: FileStore) -> tuple[DataField, ...]:
    """Return the table's columns, preceded by the sequence number if the table's option asks for it."""
    numbered = store.options.value(TABLE_READ_SEQUENCE_NUMBER_ENABLED)
    return (SEQUENCE_NUMBER, *store.schema.fields) if numbered else store.schema.fields


def listed(field: DataField) -> DataField:
    """Return the column as an array of its values; the sequence number remains a single value."""
    if field == SEQUENCE_NUMBER:
        return field
    return DataField(field.id, field.name, ArrayType(with_nullable(field.type, True)), field.description)


def _tracking(store: FileStore) -> tuple[DataField, ...]:
    tracked = tracking_fields(store.schema)
    if not tracked:
        raise UnsupportedError(
            f"$row_tracking needs row ids, which {store.root} does not have: see the option 'row-tracking.enabled'"
        )
    return (*store.schema.fields, *tracked)


def _plan(request: Request) -> list[Part]:
    """Return the splits of the snapshot, or of the changes that an option ``incremental-*`` selects."""
    store = request.store
    interval = interval_of(store)
    if interval is not None:
        if interval.mode == DIFF and SEQUENCE_NUMBER.name in request.columns:
            raise UnsupportedError(
                f"the difference of two snapshots of {store.root} has no sequence numbers: do not select the column "
                f"{SEQUENCE_NUMBER.name}"
            )
        return list(change_splits(interval.source(without_start(store)), interval))
    keys = {f.name for f in store.schema.fields}
    predicate = None if request.predicate is None else restrict(request.predicate, keys)
    return list(TableScan(store, request.snapshot, predicate).plan().splits)


def _plan_arrays(request: Request) -> list[Part]:
    """Return the splits of `_plan`, without the filter, which applies to arrays of values."""
    return _plan(Request(request.store, request.snapshot, request.columns))


def _asked(request: Request) -> tuple[DataField, ...]:
    """Return the columns of the table to read: at least one."""
    fields = tuple(f for f in row_fields(request.store) if f.name in request.columns)
    return fields or request.store.schema.fields[:1]


def _read_audit(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield rows with their kinds.

    A row of a snapshot has the kind of its merged row (``+I`` in append tables), and deletes are shown until a
    compaction drops them. A change has the kind that its commit wrote. When two snapshots are compared, the old row of
    an update is left out, as in Java.
    """
    batches = _with_kinds(request, part)
    if not isinstance(part, DiffSplit):
        return batches
    return (filter_rows(batch, bits(~_is(batch.column(0), SHORT_NAMES[UPDATE_BEFORE]))) for batch in batches)


def _with_kinds(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the rows or changes of a split with their kinds."""
    store, fields = request.store, _asked(request)
    names = {f.name for f in store.schema.fields}
    predicate = None if request.predicate is None else restrict(request.predicate, names)
    if not isinstance(part, DataSplit):
        interval = interval_of(store)
        source = store if interval is None else interval.source(without_start(store))
        yield from ChangeRead(source, fields, predicate, kinds=True).to_batches(part)
        return
    read, schema = TableRead(store, fields, predicate, skip_bad_files=True), arrow_schema((ROW_KIND, *fields))
    if store.schema.primary_keys:
        for batch in read.batches_with_kinds(part):
            yield pa.RecordBatch.from_arrays([kind_names(batch.column(0)), *batch.columns[1:]], schema=schema)
        return
    kind = pa.scalar(SHORT_NAMES[INSERT], pa.string())
    for batch in read.to_batches(part):
        yield pa.RecordBatch.from_arrays([pa.repeat(kind, batch.num_rows), *batch.columns], schema=schema)


def _read_binlog(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `_read_audit` with arrays of values: an update is one row with its old and new values."""
    keys = request.store.schema.primary_keys
    unfiltered = Request(request.store, request.snapshot, request.columns | {ROW_KIND.name, *keys})
    return packed(_with_kinds(unfiltered, part), _asked(unfiltered), keys)


def packed(
    batches: Iterator[pa.RecordBatch], fields: Sequence[DataField], keys: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield changes with each value in an array; a ``-U`` and the ``+U`` of its key that follows become one row.

    The first column of the rows is the kind, the others are ``fields``; ``keys`` are names of fields. The arrays of an
    update have two values and its kind is ``+U``; all other arrays have one value.
    """
    schema = arrow_schema((ROW_KIND, *map(listed, fields)))
    waiting: pa.RecordBatch | None = None  # the last row of a batch, a -U whose +U is in the next batch
    for batch in itertools.chain(batches, [None]):
        if batch is None:
            rows = waiting
        else:
            rows = batch if waiting is None else _joined([waiting, batch])
        waiting = None
        if rows is None or not rows.num_rows:
            continue
        names = rows.column(0)
        before = _is(names, SHORT_NAMES[UPDATE_BEFORE])
        if batch is not None and before[-1]:
            waiting, rows = rows.slice(rows.num_rows - 1), rows.slice(0, rows.num_rows - 1)
            names, before = rows.column(0), before[:-1]
        if rows.num_rows:
            joined = before[:-1] & _is(names, SHORT_NAMES[UPDATE_AFTER])[1:]
            for key in keys:
                values = rows.column(key)
                joined &= pc.equal(values.slice(1), values.slice(0, len(values) - 1)).to_numpy(zero_copy_only=False)
            yield _in_arrays(rows, joined, schema)


def _is(names: pa.Array, kind: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    matches: np.ndarray[Any, np.dtype[np.bool_]] = pc.equal(names, kind).to_numpy(zero_copy_only=False)
    return matches


def _in_arrays(rows: pa.RecordBatch, joined: np.ndarray[Any, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as arrays of values. ``joined[i]``: row ``i + 1`` is the second value of row ``i``."""
    second = np.concatenate([[False], joined])
    starts = np.flatnonzero(~second)
    offsets = pa.array(np.append(starts, rows.num_rows), pa.int32())
    lasts = np.append(starts[1:], rows.num_rows) - 1
    kinds = rows.column(0).take(pa.array(lasts))
    columns = zip(rows.columns[1:], schema.types[1:], strict=True)
    lists = [
        pa.ListArray.from_arrays(offsets, column, type=kind) if pa.types.is_list(kind) else column.take(pa.array(lasts))
        for column, kind in columns
    ]
    return pa.RecordBatch.from_arrays([kinds, *lists], schema=schema)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _plan_tracked(request: Request) -> list[Part]:
    _tracking(request.store)
    names = {f.name for f in request.store.schema.fields}
    predicate = None if request.predicate is None else restrict(request.predicate, names)
    return list(TableScan(request.store, request.snapshot, predicate).plan().splits)


def _read_tracked(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a snapshot with the row-tracking columns."""
    every = _tracking(request.store)
    fields = tuple(f for f in every if f.name in request.columns)
    names = {f.name for f in request.store.schema.fields}
    predicate = None if request.predicate is None else restrict(request.predicate, names)
    return TableRead(request.store, fields, predicate, skip_bad_files=True).to_batches(part)


AUDIT_LOG = SystemTableKind("audit_log", _audit_fields, _read_audit, _plan, travels=True, of_rows=True)
BINLOG = SystemTableKind("binlog", _binlog_fields, _read_binlog, _plan_arrays, travels=True, of_rows=True)
ROW_TRACKING = SystemTableKind("row_tracking", _tracking, _read_tracked, _plan_tracked, travels=True, of_rows=True)
