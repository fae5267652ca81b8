"""The reader of one data file: batches of the requested columns, in the reader's schema."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.datafile.file_columns import file_format
from paimon_core.datafile.indexes import indexed_rows
from paimon_core.datafile.read_counts import ReadCounts
from paimon_core.datafile.row_tracking import asks_row_ids, with_tracking
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.fileindex.index import Found
from paimon_core.format.conform import counted
from paimon_core.format.file_format import ReadRequest
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.memory import MemoryShares
from paimon_core.options.merge import SEQUENCE_SNAPSHOT_ORDERING
from paimon_core.options.scan import READ_BATCH_SIZE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.predicate.rewrite import to_file
from paimon_core.row.binary_row import deserialize
from paimon_core.schema.evolution import evolve, narrowed
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import Positions, bits, filter_rows
from paimon_core.types.system_fields import ROW_ID, ROW_POSITION, ROW_SEQUENCE, SEQUENCE_NUMBER, VALUE_KIND

BATCH_ROWS = 1 << 17
_MIN_BATCH_BYTES = 1 << 18  # in a smaller batch the cost per batch exceeds the cost of its rows
_NO_POSITIONS = np.zeros(0, np.int64)
RowPositions: TypeAlias = slice | Positions
"""The positions of a batch's rows in their file: a slice if consecutive, else an int64 array."""


def batch_limits(store: FileStore, parallel_files: int = 1) -> tuple[int, int]:
    """Return the maximum rows and bytes of a decoded batch: 32 MiB, and ``read.batch-size`` rows if the option is set.

    The ``parallel_files`` files that are decoded at the same time share the bytes: beyond this size, page faults cost
    more than decoding. With ``memory-limit``, the bytes may be fewer.
    """
    rows = store.options.value(READ_BATCH_SIZE) if store.options.has(READ_BATCH_SIZE) else BATCH_ROWS
    return max(1, rows), max(_MIN_BATCH_BYTES, MemoryShares.of(store.options).batches // parallel_files)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The rows of a file that a read may skip or must leave out, and the limits of its batches."""

    predicate: Predicate | None = None
    """A filter bound to the table's schema. Parts of the file without a match may be skipped; other rows are kept."""
    deletions: DeletionVector | None = None
    """The positions of deleted rows, which are left out."""
    parallel_files: int = 1
    """The number of files that are read at the same time; they share the bytes of the batches."""
    row_mask: Mask | None = None
    """A bool for each row of the file: True for the rows to return."""
    part: range | None = None
    """Only row groups whose middle row is in this range of row positions are read. REQUIRES: a Parquet file."""
    unbounded: bool = False
    """True if the size of a batch needs no limit, because the caller keeps all rows in memory."""
    counts: ReadCounts | None = None
    """Counts to update; `None`: nothing is counted."""

    @property
    def count_bytes(self) -> Callable[[int], None] | None:
        """The function that counts encoded bytes; `None`: they are not counted."""
        return None if self.counts is None else self.counts.add_bytes


_WHOLE = ReadOptions()


def read_file(
    store: FileStore,
    bucket: BucketRef,
    meta: DataFileMeta,
    fields: Sequence[DataField],
    options: ReadOptions = _WHOLE,
) -> Iterator[pa.RecordBatch]:
    """Read the rows of one data file with exactly ``fields``.

    Columns are matched by field id and cast to the type of ``fields``. Missing columns are null; partition values come
    from the metadata.

    Args:
        store: the table.
        bucket: the file's bucket.
        meta: metadata of the file.
        fields: columns to read. They may include the system fields ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``, or, in a
            table without a primary key, the tracking fields and ``ROW_POSITION``.
        options: rows to skip or leave out, and limits of the batches.

    Raises CorruptedError if the file is missing or unreadable, or if its number of rows differs from its metadata, and
    UnsupportedError if its metadata does not say how its rows are ordered.
    """
    predicate, deletions, counts = options.predicate, options.deletions, options.counts or ReadCounts()
    if meta.write_cols is not None and len(meta.write_cols) == 0:
        raise UnsupportedError(f"data file {meta.file_name} cannot be read: its metadata lists no columns")
    path = store.file_path(bucket, meta)
    file_schema = store.schemas.get(meta.schema_id)
    constants = _partition_constants(store, bucket.partition, fields)
    stored = [f for f in fields if f.name not in constants and f.id != ROW_POSITION.id]
    row_tracking = not store.schema.primary_keys
    snapshot_id = _ordering_snapshot(store, meta, path)
    system = (ROW_ID, ROW_SEQUENCE) if row_tracking else (SEQUENCE_NUMBER, VALUE_KIND)
    stored_columns = _decodable(store, meta, file_schema.fields, stored)
    plan = evolve((*stored_columns, *system), tuple(stored))
    pushed = None if predicate is None else to_file(predicate, store.schema.fields, file_schema.fields)
    candidates: Found = True if options.row_mask is None else options.row_mask
    if pushed is not None and options.row_mask is None:
        candidates = indexed_rows(store, path, meta, pushed)
    counts.begin(meta, options.part)
    if candidates is False:
        counts.files_skipped += 1
        return
    row_mask = candidates if isinstance(candidates, np.ndarray) else None
    narrowed = pushed is not None or row_mask is not None or options.part is not None
    skips = narrowed and file_format(store, meta).skips_rows
    if options.part is not None and not skips:
        raise UnsupportedError(f"part {options.part} of {path} cannot be read: only Parquet files are read in parts")
    drops = deletions is not None or row_mask is not None
    numbered = len(stored) + len(constants) < len(fields) or asks_row_ids(stored)
    needs_positions = skips and (numbered or drops)
    _check_within(meta, deletions, path)
    seen = 0
    columns = (*plan.file_columns, ROW_POSITION) if needs_positions else plan.file_columns
    rows, size = _with_constants(batch_limits(store, options.parallel_files), constants)
    batch_bytes = None if options.unbounded else size
    threads = MemoryShares.of(store.options).threads
    request = ReadRequest(
        columns, rows, batch_bytes, pushed, row_mask, options.part, meta.row_count, path, options.count_bytes, threads
    )
    for whole in _decode(store, meta, request):
        batch, rows_at = _split_positions(whole) if needs_positions else (whole, slice(seen, seen + whole.num_rows))
        if (seen := seen + batch.num_rows) > meta.row_count:
            break
        positions = _position_array(rows_at) if numbered else _NO_POSITIONS
        if drops and not (mask := _remaining(rows_at, deletions, row_mask)).all():
            counts.rows_deleted += _deleted(mask, rows_at, row_mask)
            if not mask.any():
                continue
            batch, positions = filter_rows(batch, bits(mask)), positions[mask] if numbered else positions
        counts.rows_decoded += batch.num_rows
        evolved = plan.apply(batch)
        evolved = with_tracking(evolved, meta, positions) if row_tracking else _check_system_columns(evolved, path)
        evolved = evolved if snapshot_id is None else _with_sequence(evolved, snapshot_id)
        yield evolved if len(stored) == len(fields) else _with_unstored(evolved, fields, constants, positions)
    if seen > meta.row_count or (seen < meta.row_count and not skips):
        raise CorruptedError(f"{path} holds {seen} rows where its manifest entry promises {meta.row_count}")


def _decodable(
    store: FileStore, meta: DataFileMeta, file_fields: tuple[DataField, ...], fields: Sequence[DataField]
) -> tuple[DataField, ...]:
    """Return the columns of the file, without the fields of structs that need not be decoded for ``fields``."""
    return narrowed(file_fields, fields) if file_format(store, meta).reads_fields else file_fields


def _check_system_columns(rows: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """Return the rows unchanged. Raises CorruptedError if a row has no sequence number or no kind."""
    for name in {SEQUENCE_NUMBER.name, VALUE_KIND.name}.intersection(rows.schema.names):
        if rows.column(name).null_count:
            raise CorruptedError(f"{path} is damaged: there are rows without {name}")
    return rows


def _ordering_snapshot(store: FileStore, meta: DataFileMeta, path: str) -> int | None:
    """Return the snapshot id that is the sequence number of all rows of the file; `None`: each row stores its number.

    With ``sequence.snapshot-ordering``, a commit writes its snapshot id into the metadata of the files that it adds,
    and compactions store it with each row. UnsupportedError if the metadata does not say which of them wrote the file.
    """
    if not store.options.value(SEQUENCE_SNAPSHOT_ORDERING):
        return None
    if meta.file_source is None:
        raise UnsupportedError(
            f"{path} cannot be read: option {SEQUENCE_SNAPSHOT_ORDERING.key!r} orders rows by snapshot, but the file's "
            "metadata does not say whether a compaction wrote it. Rewrite the table with an engine that sets it"
        )
    return meta.min_sequence_number if meta.file_source == FileSource.APPEND else None


def _with_sequence(rows: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """Return the rows with this sequence number, if they have the column."""
    at = rows.schema.get_field_index(SEQUENCE_NUMBER.name)
    return rows if at < 0 else rows.set_column(at, rows.schema.field(at), pa.repeat(number, rows.num_rows))


def _check_within(meta: DataFileMeta, deletions: DeletionVector | None, path: str) -> None:
    """Raise CorruptedError if the deletion vector deletes a row past the end of the file."""
    if deletions is not None and deletions.cardinality and (last := deletions.positions()[-1]) >= meta.row_count:
        raise CorruptedError(f"the deletion vector of {path} deletes row {last} of {meta.row_count}, counted from 0")


def _decode(store: FileStore, meta: DataFileMeta, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the stored columns of a request. CorruptedError if the file is missing or unreadable."""
    if not request.fields and request.part is None:  # all columns are constants: only the number of rows matters
        yield from counted(meta.row_count, request.batch_rows)
        return
    try:
        source = store.io.open(request.path, meta.file_size)
    except FileNotFoundError as missing:
        raise CorruptedError(
            f"data file {request.path} is missing: its snapshot has expired while being read, or the file was deleted"
        ) from missing
    file_type = file_format(store, meta)
    if request.count_bytes is not None and not file_type.skips_rows:
        request.count_bytes(meta.file_size)
    with source:
        yield from file_type.read(source, request)


def _partition_constants(store: FileStore, partition: bytes, fields: Sequence[DataField]) -> dict[str, pa.Scalar]:
    """Return the values of the requested partition columns, by name."""
    keys = store.schema.partition_keys
    requested = tuple(f for f in fields if f.name in keys) if keys else ()
    return _constants(partition, store.schema.partition_arrow, requested) if requested else {}


@lru_cache(maxsize=256)
def _constants(partition: bytes, stored: pa.Schema, requested: tuple[DataField, ...]) -> dict[str, pa.Scalar]:
    """Return a serialised partition's values of these columns. REQUIRES: callers do not modify the cached result."""
    values = dict(zip(stored.names, deserialize(partition, stored), strict=True))
    return {f.name: pa.array([values[f.name]], to_arrow(f.type))[0] for f in requested}


def _split_positions(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Positions]:
    """Return the batch without its last column, and this column: the rows' positions in the file."""
    last = batch.num_columns - 1
    return batch.remove_column(last), batch.column(last).to_numpy()


def _position_array(rows_at: RowPositions) -> Positions:
    return np.arange(rows_at.start, rows_at.stop) if isinstance(rows_at, slice) else rows_at


def _remaining(rows_at: RowPositions, deletions: DeletionVector | None, row_mask: Mask | None) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows at these positions: True if not deleted and True in ``row_mask``."""
    if deletions is None:
        return np.ones(0, bool) if row_mask is None else row_mask[rows_at]
    if isinstance(rows_at, slice):
        deleted = deletions.mask(rows_at.start, rows_at.stop - rows_at.start)
    else:
        deleted = deletions.among(rows_at)
    return ~deleted if row_mask is None else row_mask[rows_at] & ~deleted


def _deleted(remaining: npt.NDArray[np.bool_], rows_at: RowPositions, row_mask: Mask | None) -> int:
    """Return the number of rows at these positions that ``row_mask`` allows and that do not remain."""
    allowed = len(remaining) if row_mask is None else np.count_nonzero(row_mask[rows_at])
    return int(allowed - np.count_nonzero(remaining))


def _with_constants(limits: tuple[int, int], constants: dict[str, pa.Scalar]) -> tuple[int, int]:
    """Return the limits of a batch to which these constants are added; they take their bytes once per row."""
    rows, size = limits
    width = sum(pa.repeat(value, 1).nbytes for value in constants.values())
    return max(1, min(rows, size // max(1, width))), size


def _with_unstored(
    batch: pa.RecordBatch,
    fields: Sequence[DataField],
    constants: dict[str, pa.Scalar],
    positions: Positions,
) -> pa.RecordBatch:
    """Add the columns that the file does not store: partition values and row positions."""
    rows, stored = batch.num_rows, iter(batch.columns)
    columns = []
    for field in fields:
        if field.id == ROW_POSITION.id:
            columns.append(pa.array(positions))
        else:
            columns.append(pa.repeat(constants[field.name], rows) if field.name in constants else next(stored))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields))
