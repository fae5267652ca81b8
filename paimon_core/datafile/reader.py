"""One data file as batches of the columns asked for, in the reader's schema."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.datafile.columns import file_format
from paimon_core.datafile.indexes import indexed_rows
from paimon_core.datafile.row_tracking import asks_row_ids, with_tracking
from paimon_core.deletion.vector import DeletionVector, Positions
from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.fileindex.index import Found
from paimon_core.format.conform import counted
from paimon_core.format.parquet import ParquetFormat
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.scan import READ_BATCH_SIZE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.predicate.rewrite import to_file
from paimon_core.schema.evolution import evolve
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import bits, kept
from paimon_core.types.system_fields import ROW_ID, ROW_POSITION, ROW_SEQUENCE, SEQUENCE_NUMBER, VALUE_KIND

BATCH_ROWS = 1 << 17
BATCH_BYTES = 32 << 20
_LEAST_BYTES = 1 << 18  # below this the cost of a batch outweighs that of its rows
_NOWHERE = np.zeros(0, np.int64)
RowPositions: TypeAlias = slice | Positions
"""Where the rows of a batch lie in their file: from one position to another, or here and there."""


def batch_limits(store: FileStore, parallel_files: int = 1) -> tuple[int, int]:
    """Most rows and bytes of a decoded batch: 32 MiB, of fewer rows where ``read.batch-size`` says so.

    ``parallel_files`` files are decoded side by side and share these: what is held beyond the processor's caches costs
    more in page faults than decoding it does.
    """
    rows = store.options.value(READ_BATCH_SIZE) if store.options.has(READ_BATCH_SIZE) else BATCH_ROWS
    return max(1, rows), max(_LEAST_BYTES, BATCH_BYTES // parallel_files)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read: what may be left out of it, and what must."""

    predicate: Predicate | None = None
    """Bound to the table's schema. Parts of the file that cannot match may be skipped; other rows still come out."""
    deletions: DeletionVector | None = None
    """Rows to be left out, by position."""
    parallel_files: int = 1
    """The number of files read side by side, for the size of the batches."""
    wanted: Mask | None = None
    """The only rows to come out, of all rows of the file."""
    part: range | None = None
    """Only row groups of the file, which is Parquet, whose middle row lies in this range of row positions come out."""
    kept: bool = False
    """The caller keeps all rows together, so the size of a batch needs no bound, nor a look at the file to find it."""


_WHOLE = ReadOptions()


def read_file(
    store: FileStore,
    partition: bytes,
    bucket: int,
    meta: DataFileMeta,
    fields: Sequence[DataField],
    how: ReadOptions = _WHOLE,
) -> Iterator[pa.RecordBatch]:
    """The rows of one data file with exactly ``fields``: by field id, cast, filled, partition values from metadata.

    ``fields`` may hold the system fields ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``, or, of a table without a primary
    key, those that track rows, and ``ROW_POSITION``.
    Raises CorruptedError when the file is missing, unreadable or does not hold the rows its metadata promise.
    """
    predicate, deletions = how.predicate, how.deletions
    if meta.write_cols is not None and len(meta.write_cols) == 0:
        raise UnsupportedError(f"data file {meta.file_name} says that it holds no columns at all")
    path = store.file_path(partition, bucket, meta)
    if how.part is not None and not meta.file_name.endswith(".parquet"):
        raise UnsupportedError(f"{path} is to be read in parts, which only Parquet files can be")
    file_schema = store.schemas.get(meta.schema_id)
    constants = _partition_constants(store, partition, fields)
    stored = [f for f in fields if f.name not in constants and f.id != ROW_POSITION.id]
    row_tracking = not store.schema.primary_keys
    system = (ROW_ID, ROW_SEQUENCE) if row_tracking else (SEQUENCE_NUMBER, VALUE_KIND)
    plan = evolve((*file_schema.fields, *system), tuple(stored))
    pushed = None if predicate is None else to_file(predicate, store.schema.fields, file_schema.fields)
    found: Found = True if how.wanted is None else how.wanted
    if pushed is not None and how.wanted is None:
        found = indexed_rows(store, path, meta, pushed)
    if found is False:
        return
    wanted = found if isinstance(found, np.ndarray) else None
    narrowed = pushed is not None or wanted is not None or how.part is not None
    skips = narrowed and meta.file_name.endswith(".parquet")
    drops = deletions is not None or wanted is not None
    numbered = len(stored) + len(constants) < len(fields) or asks_row_ids(stored)
    placed = skips and (numbered or drops)
    _check_within(meta, deletions, path)
    seen = 0
    columns = (*plan.file_columns, ROW_POSITION) if placed else plan.file_columns
    rows, size = _with_constants(batch_limits(store, how.parallel_files), constants)
    limits = rows, None if how.kept else size
    for whole in _decode(store, path, meta, columns, _Skipping(pushed, wanted, how.part), limits):
        batch, places = _parted(whole) if placed else (whole, slice(seen, seen + whole.num_rows))
        if (seen := seen + batch.num_rows) > meta.row_count:
            break
        positions = _numbers(places) if numbered else _NOWHERE
        if drops and not (left := _left(places, deletions, wanted)).all():
            if not left.any():
                continue
            batch, positions = kept(batch, bits(left)), positions[left] if numbered else positions
        evolved = plan.apply(batch)
        evolved = with_tracking(evolved, meta, positions) if row_tracking else _numbered(evolved, path)
        yield evolved if len(stored) == len(fields) else _completed(evolved, fields, constants, positions)
    if seen > meta.row_count or (seen < meta.row_count and not skips):
        raise CorruptedError(f"{path} holds {seen} rows where its manifest entry promises {meta.row_count}")


def _numbered(rows: pa.RecordBatch, path: str) -> pa.RecordBatch:
    """The rows. Raises CorruptedError where one lacks the number or the kind that each row of a keyed table has."""
    for name in {SEQUENCE_NUMBER.name, VALUE_KIND.name}.intersection(rows.schema.names):
        if rows.column(name).null_count:
            raise CorruptedError(f"{path} is damaged: there are rows without {name}")
    return rows


def _check_within(meta: DataFileMeta, deletions: DeletionVector | None, path: str) -> None:
    if deletions is not None and deletions.cardinality and (last := deletions.positions()[-1]) >= meta.row_count:
        raise CorruptedError(f"the deletion vector of {path} deletes row {last} of {meta.row_count}, counted from 0")


@dataclass(frozen=True, slots=True)
class _Skipping:
    """What tells which parts of a file need not be decoded: a predicate on its columns, and a mask of its rows.

    ``part``: those whose rows are read by somebody else must not be.
    """

    predicate: Predicate | None
    wanted: Mask | None
    part: range | None


def _decode(
    store: FileStore,
    path: str,
    meta: DataFileMeta,
    columns: Sequence[DataField],
    skipping: _Skipping,
    limits: tuple[int, int | None],
) -> Iterator[pa.RecordBatch]:
    if not columns and skipping.part is None:  # only constants are asked for: their number is all that matters
        yield from counted(meta.row_count, limits[0])
        return
    try:
        source = store.io.open(path, meta.file_size)
    except FileNotFoundError as missing:
        raise CorruptedError(
            f"data file {path} is missing: its snapshot has expired while being read, or the file was deleted"
        ) from missing
    rows, size = limits
    whole = skipping.part is None
    with source:
        yield from (file_format(store, meta) if whole else ParquetFormat(skipping.part, meta.row_count)).read(
            source,
            columns,
            rows,
            predicate=skipping.predicate,
            wanted=skipping.wanted,
            batch_bytes=size,
            path=path,
        )


def _partition_constants(store: FileStore, partition: bytes, fields: Sequence[DataField]) -> dict[str, pa.Scalar]:
    keys = store.schema.partition_keys
    if not keys or not any(f.name in keys for f in fields):
        return {}
    wanted = {f.name: f for f in fields if f.name in keys}
    values = zip(keys, store.partition_values(partition), strict=True)
    return {k: pa.array([v], to_arrow(wanted[k].type))[0] for k, v in values if k in wanted}


def _parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Positions]:
    """The batch without its last column, and that: the positions of its rows in a file of which parts are skipped."""
    last = batch.num_columns - 1
    return batch.remove_column(last), batch.column(last).to_numpy()


def _numbers(places: RowPositions) -> Positions:
    return np.arange(places.start, places.stop) if isinstance(places, slice) else places


def _left(places: RowPositions, deletions: DeletionVector | None, wanted: Mask | None) -> npt.NDArray[np.bool_]:
    """Which of the rows at these places are neither deleted nor unwanted."""
    if deletions is None:
        return np.ones(0, bool) if wanted is None else wanted[places]
    if isinstance(places, slice):
        deleted = deletions.mask(places.start, places.stop - places.start)
    else:
        deleted = deletions.among(places)
    return ~deleted if wanted is None else wanted[places] & ~deleted


def _with_constants(limits: tuple[int, int], constants: dict[str, pa.Scalar]) -> tuple[int, int]:
    """Return the limits of a batch for rows that these values are added to: a text stands there once for each row."""
    rows, size = limits
    width = sum(pa.repeat(value, 1).nbytes for value in constants.values())
    return max(1, min(rows, size // max(1, width))), size


def _completed(
    batch: pa.RecordBatch,
    fields: Sequence[DataField],
    constants: dict[str, pa.Scalar],
    positions: Positions,
) -> pa.RecordBatch:
    """With what the file does not store: values of its partition, and positions."""
    rows, stored = batch.num_rows, iter(batch.columns)
    columns = []
    for field in fields:
        if field.id == ROW_POSITION.id:
            columns.append(pa.array(positions))
        else:
            columns.append(pa.repeat(constants[field.name], rows) if field.name in constants else next(stored))
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields))
