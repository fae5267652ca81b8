"""One data file as batches of the columns asked for, in the reader's schema."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.datafile.row_tracking import asks_row_ids, with_tracking
from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format import format_of
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.scan import READ_BATCH_SIZE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import to_file
from paimon_core.schema.evolution import evolve
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_field, arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID, ROW_SEQUENCE, SEQUENCE_NUMBER, VALUE_KIND

BATCH_ROWS = 1 << 17
BATCH_BYTES = 32 << 20
_LEAST_BYTES = 1 << 18  # below this the cost of a batch outweighs that of its rows


def batch_limits(store: FileStore, together: int = 1) -> tuple[int, int]:
    """Most rows and bytes of a decoded batch: 32 MiB, of fewer rows where ``read.batch-size`` says so.

    ``together`` files are decoded side by side and share these: what is held beyond the processor's caches costs more
    in page faults than decoding it does.
    """
    rows = store.options.value(READ_BATCH_SIZE) if store.options.has(READ_BATCH_SIZE) else BATCH_ROWS
    return max(1, rows), max(_LEAST_BYTES, BATCH_BYTES // together)


def read_file(
    store: FileStore,
    partition: bytes,
    bucket: int,
    meta: DataFileMeta,
    fields: Sequence[DataField],
    *,
    predicate: Predicate | None = None,
    together: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The rows of one data file with exactly ``fields``: by field id, cast, filled, partition values from metadata.

    ``fields`` may hold the system fields ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``, or, of a table without a primary
    key, those that track rows. ``predicate`` (bound to the table's
    schema) may skip parts of the file that cannot match; rows that do not match still come out.
    ``together`` is the number of files read side by side, for the size of the batches.
    Raises CorruptedError when the file is missing, unreadable or does not hold the rows its metadata promise.
    """
    if meta.write_cols is not None and len(meta.write_cols) == 0:
        raise UnsupportedError(f"data file {meta.file_name} names no written columns (data evolution is not supported)")
    path = store.file_path(partition, bucket, meta)
    file_schema = store.schemas.get(meta.schema_id)
    constants = _partition_constants(store, partition, fields)
    stored = [f for f in fields if f.name not in constants]
    tracked = not store.schema.primary_keys
    system = (ROW_ID, ROW_SEQUENCE) if tracked else (SEQUENCE_NUMBER, VALUE_KIND)
    plan = evolve((*file_schema.fields, *system), tuple(stored))
    pushed = None
    if predicate is not None and not (tracked and asks_row_ids(fields)):  # ids go by position
        pushed = to_file(predicate, store.schema.fields, file_schema.fields)
    seen = 0
    for batch in _decode(store, path, meta, plan.file_columns, pushed, together):
        evolved = plan.apply(batch)
        if tracked:
            evolved = with_tracking(evolved, meta, np.arange(seen, seen + batch.num_rows))
        seen += batch.num_rows
        yield _with_constants(evolved, fields, constants) if constants else evolved
    skips = pushed is not None and meta.file_name.endswith(".parquet")
    if seen > meta.row_count or (seen < meta.row_count and not skips):
        raise CorruptedError(f"{path} holds {seen} rows where its manifest entry promises {meta.row_count}")


def _decode(
    store: FileStore,
    path: str,
    meta: DataFileMeta,
    columns: Sequence[DataField],
    predicate: Predicate | None,
    together: int,
) -> Iterator[pa.RecordBatch]:
    if not columns:  # only constants are asked for: their number is all that matters
        rows = pa.nulls(meta.row_count)
        yield pa.RecordBatch.from_arrays([rows], names=["_"]).select([])
        return
    try:
        source = store.io.open(path, meta.file_size)
    except FileNotFoundError as missing:
        raise CorruptedError(
            f"data file {path} is missing: its snapshot has expired while being read, or the file was deleted"
        ) from missing
    rows, size = batch_limits(store, together)
    with source:
        yield from format_of(meta.file_name).read(
            source, columns, rows, predicate=predicate, batch_bytes=size, path=path
        )


def _partition_constants(store: FileStore, partition: bytes, fields: Sequence[DataField]) -> dict[str, pa.Scalar]:
    keys = store.schema.partition_keys
    if not keys or not any(f.name in keys for f in fields):
        return {}
    wanted = {f.name: f for f in fields}
    values = zip(keys, store.partition_values(partition), strict=True)
    return {k: pa.array([v], arrow_field(wanted[k]).type)[0] for k, v in values if k in wanted}


def _with_constants(
    batch: pa.RecordBatch, fields: Sequence[DataField], constants: dict[str, pa.Scalar]
) -> pa.RecordBatch:
    rows = batch.num_rows
    columns = [pa.repeat(constants[f.name], rows) if f.name in constants else batch.column(f.name) for f in fields]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields))
