"""Row ids, and the snapshots that last changed rows: stored in a file, or computed from its metadata."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.manifest.counters import check_row_ids
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID, ROW_SEQUENCE, TRACKING_FIELDS


def tracking_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the tracking columns of the table's rows; empty if ``row-tracking.enabled`` is off."""
    return TRACKING_FIELDS if schema.options.value(ROW_TRACKING_ENABLED) else ()


def asks_row_ids(fields: Sequence[DataField]) -> bool:
    """Return True if one of the fields is the row id."""
    return any(f.id == ROW_ID.id for f in fields)


def with_tracking(batch: pa.RecordBatch, meta: DataFileMeta, positions: np.ndarray) -> pa.RecordBatch:
    """Fill the nulls of the tracking columns of a batch.

    Row ids are ``meta.first_row_id + positions``, where ``positions`` (int64) are the rows' positions in the file. The
    last change is the file's largest sequence number. Ids stay null if the file has no first row id, which is the case
    before its commit. Raises CorruptedError for ids out of range.
    """
    for at, name in enumerate(batch.schema.names):
        if name == ROW_ID.name and meta.first_row_id is not None:
            check_row_ids(meta.first_row_id, meta.row_count, meta.file_name)
            batch = _filled(batch, at, pa.array(positions + meta.first_row_id))
        elif name == ROW_SEQUENCE.name:
            batch = _filled(batch, at, pa.repeat(meta.max_sequence_number, batch.num_rows))
    return batch


def _filled(batch: pa.RecordBatch, at: int, values: pa.Array) -> pa.RecordBatch:
    stored = batch.column(at)
    if not stored.null_count:
        return batch
    filled = values if stored.null_count == len(stored) else pc.coalesce(stored, values)
    return batch.set_column(at, batch.schema.field(at), filled)
