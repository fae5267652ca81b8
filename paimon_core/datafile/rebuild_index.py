"""Build the file indexes that a data file lacks from its rows; the data file itself does not change."""

from dataclasses import replace

import pyarrow as pa

from paimon_core.datafile.indexes import INDEX_SUFFIX, index_names, index_sizes
from paimon_core.datafile.reader import read_file
from paimon_core.errors import CorruptedError
from paimon_core.fileindex.index_file import pack
from paimon_core.fileindex.indexed_columns import FileIndexes, IndexedColumn, indexed_columns_then
from paimon_core.fileio.fileio import join
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.options.file import FILE_INDEX_IN_MANIFEST_THRESHOLD
from paimon_core.options.file_index import index_column
from paimon_core.store.file_store import FileStore


def lacks_indexes(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> bool:
    """Return True if the table's options define an index that a data file lacks, or has in an unreadable file."""
    defined = {(index.item, index.kind) for index in _defined(store, meta)}
    return bool(defined) and not defined <= _stored(store, bucket, meta)


def with_indexes(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> DataFileMeta:
    """Return a data file with exactly the indexes that the options define; ``meta`` itself if it has them all.

    An index is left out if its values cannot be indexed. A large container is written to a file with a new name, which
    no other writer can have written or can delete. So is a container that replaces another container: an entry with the
    bytes of an earlier entry would equal that entry, and the DELETE of the earlier entry would cancel both. Memory: the
    same as `FileIndexes`.
    """
    bodies = index_bodies(store, bucket, meta)
    if {(item, kind) for item, kinds in bodies.items() for kind in kinds} <= _stored(store, bucket, meta):
        return meta
    data, old = pack(bodies), index_names(meta)
    other_files = tuple(name for name in meta.extra_files if name not in old)
    is_first = meta.embedded_index is None and not old
    if is_first and len(data) <= store.options.value(FILE_INDEX_IN_MANIFEST_THRESHOLD):
        return replace(meta, embedded_index=data, extra_files=other_files)
    name = f"{meta.file_name}-{store.new_name()}{INDEX_SUFFIX}"
    store.io.write(join(store.file_path(bucket, meta).rpartition("/")[0], name), data)
    return replace(meta, embedded_index=None, extra_files=(*other_files, name))


def index_bodies(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> dict[str, dict[str, bytes]]:
    """Build the indexes that the options define from the rows of a data file, by column and kind."""
    defined = _defined(store, meta)
    columns = {index_column(index.item) for index in defined}
    fields = [f for f in store.schemas.get(meta.schema_id).fields if f.name in columns]
    builder = FileIndexes(defined)
    for batch in read_file(store, bucket, meta, fields) if defined else ():
        builder.add(pa.Table.from_batches([batch]))
    return builder.bodies()


def _defined(store: FileStore, meta: DataFileMeta) -> tuple[IndexedColumn, ...]:
    """Return the indexes that the options define and that the columns of the file can have."""
    fields = store.schemas.get(meta.schema_id).fields
    stored = fields if meta.write_cols is None else tuple(f for f in fields if f.name in meta.write_cols)
    return indexed_columns_then(store.options, store.schema.fields, stored)


def _stored(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> set[tuple[str, str]]:
    """Return the column and kind of each index that a file has; empty if they cannot be read."""
    try:
        _, sizes = index_sizes(store, store.file_path(bucket, meta), meta)
    except CorruptedError:
        return set()
    return {(item, kind) for item, kinds in sizes.items() for kind in kinds}
