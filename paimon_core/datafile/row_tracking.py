"""Ids of rows and the snapshots that changed them last: stored with the rows, else known from a file's metadata."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID, ROW_SEQUENCE, TRACKING_FIELDS

__all__ = ["asks_row_ids", "tracking_fields", "with_tracking"]


def tracking_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """The columns rows of the table have beside its own; none where they are not tracked."""
    return TRACKING_FIELDS if schema.options.value(ROW_TRACKING_ENABLED) else ()


def asks_row_ids(fields: Sequence[DataField]) -> bool:
    """Whether one of the fields is the id of a row."""
    return any(f.id == ROW_ID.id for f in fields)


def with_tracking(batch: pa.RecordBatch, meta: DataFileMeta, positions: np.ndarray) -> pa.RecordBatch:
    """The batch with its tracking columns filled where the file left them out.

    ``positions`` of its rows in the file make the ids; all rows were changed by the newest snapshot the file knows.
    A file without ids, as it is before its commit, leaves them null.
    """
    for at, name in enumerate(batch.schema.names):
        if name == ROW_ID.name and meta.first_row_id is not None:
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
