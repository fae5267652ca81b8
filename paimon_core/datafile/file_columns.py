"""The columns and the format of a data file."""

from paimon_core.errors import UnsupportedError
from paimon_core.format import format_of
from paimon_core.format.file_format import FileFormat, ReadRequest
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import TRACKING_FIELDS

_BATCH_ROWS = 1 << 12


def stored_columns(store: FileStore, meta: DataFileMeta) -> tuple[DataField, ...]:
    """Return the columns of a file of a table without a primary key, in the file's order and schema."""
    fields = store.schemas.get(meta.schema_id).fields
    if meta.write_cols is None:
        return fields
    by_name = {f.name: f for f in (*fields, *TRACKING_FIELDS)}
    return tuple(by_name[name] for name in meta.write_cols if name in by_name)


def file_format(store: FileStore, meta: DataFileMeta) -> FileFormat:
    """Return the format of the file. UnsupportedError for an unknown format, and for CSV in a table with a key."""
    result = format_of(meta.file_name, stored_columns(store, meta), store.options)
    if result.name == "csv" and store.schema.primary_keys:
        raise UnsupportedError(
            f"data file {meta.file_name} is CSV: CSV files of a table with a primary key cannot be read"
        )
    return result


def is_all_null(store: FileStore, bucket: BucketRef, meta: DataFileMeta, column: DataField) -> bool:
    """Return True if a file lacks a column, or holds only NULL in it. Cost: reads the column up to its first value."""
    path = store.file_path(bucket, meta)
    with store.io.open(path, meta.file_size) as source:
        batches = file_format(store, meta).read(source, ReadRequest((column,), _BATCH_ROWS, path=path))
        return all(batch.column(0).null_count == batch.num_rows for batch in batches)
