"""Recompute the metadata of a data file from its rows."""

from dataclasses import replace

import pyarrow as pa

from paimon_core.datafile.reader import read_file
from paimon_core.datafile.row_summary import RowSummary
from paimon_core.datafile.spec import DataFileSpec
from paimon_core.errors import UnsupportedError
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import is_blob_type
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND


def measured(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> DataFileMeta:
    """Return the metadata of a data file with the keys, sequence numbers, deletes and statistics of its rows.

    All other fields stay unchanged, such as the number of rows, and the sequence numbers of files that do not store
    them. The options of the table select the statistics. Memory: one batch.

    Raises CorruptedError if the rows cannot be read or their number differs from ``meta``, UnsupportedError for a file
    with BLOB columns.
    """
    store = store.at_schema(meta.schema_id)
    spec = DataFileSpec.of(store, meta.level, FileSource.APPEND if meta.file_source is None else meta.file_source)
    spec = replace(spec, stores_tracking=False)
    names = [f.name for f in store.schema.fields] if meta.write_cols is None else meta.write_cols
    fields = tuple(f for f in store.schema.fields if f.name in names)
    if any(is_blob_type(f.type) for f in fields):
        raise UnsupportedError(f"the metadata of {meta.file_name} cannot be recomputed: it has BLOB columns")
    if meta.write_cols is not None:
        spec = spec.of_columns(fields, spec.target_size)
    keyed, summary = bool(spec.key_fields), RowSummary(spec)
    for batch in read_file(store, bucket, meta, (*fields, SEQUENCE_NUMBER, VALUE_KIND) if keyed else fields):
        summary.add(pa.Table.from_batches([batch]))
    stats, columns = summary.value_stats
    with_stats = replace(
        meta,
        value_stats=stats,
        value_stats_cols=tuple(f.name for f in fields) if columns is None and meta.write_cols is not None else columns,
    )
    if not keyed:
        return with_stats
    return replace(
        with_stats,
        min_key=summary.min_key,
        max_key=summary.max_key,
        key_stats=summary.key_stats,
        min_sequence_number=summary.min_sequence,
        max_sequence_number=summary.max_sequence,
        delete_row_count=summary.retracts,
    )
