"""The file indexes that a data file lacks, made of its rows; the file itself stays as it is."""

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
    """Return True if the options of the table ask for an index that a data file has not, or not in a readable file."""
    wanted = {(one.item, one.kind) for one in _wanted(store, meta)}
    return bool(wanted) and not wanted <= _stored(store, bucket, meta)


def with_indexes(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> DataFileMeta:
    """Return a data file with the indexes that the options ask for, and no others; ``meta`` itself: it has them all.

    Values that cannot be indexed leave an index out. A large container is written to a file of a new name, so that
    no other writer can have written, or can delete, the same one. So is a container that replaces another: an entry
    with the bytes of an earlier one would be the same entry, and the DELETE of that one would cancel both. Memory: as
    of `FileIndexes`.
    """
    bodies = index_bodies(store, bucket, meta)
    if {(item, kind) for item, kinds in bodies.items() for kind in kinds} <= _stored(store, bucket, meta):
        return meta
    data, old = pack(bodies), index_names(meta)
    others = tuple(name for name in meta.extra_files if name not in old)
    is_first = meta.embedded_index is None and not old
    if is_first and len(data) <= store.options.value(FILE_INDEX_IN_MANIFEST_THRESHOLD):
        return replace(meta, embedded_index=data, extra_files=others)
    name = f"{meta.file_name}-{store.new_name()}{INDEX_SUFFIX}"
    store.io.write(join(store.file_path(bucket, meta).rpartition("/")[0], name), data)
    return replace(meta, embedded_index=None, extra_files=(*others, name))


def index_bodies(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> dict[str, dict[str, bytes]]:
    """Return the indexes that the options ask for, made of the rows of a data file, by column and kind."""
    wanted = _wanted(store, meta)
    columns = {index_column(one.item) for one in wanted}
    fields = [f for f in store.schemas.get(meta.schema_id).fields if f.name in columns]
    builder = FileIndexes(wanted)
    for batch in read_file(store, bucket, meta, fields) if wanted else ():
        builder.add(pa.Table.from_batches([batch]))
    return builder.bodies()


def _wanted(store: FileStore, meta: DataFileMeta) -> tuple[IndexedColumn, ...]:
    """Return the indexes that the options ask for, as far as the columns of the file can have them."""
    then = store.schemas.get(meta.schema_id).fields
    stored = then if meta.write_cols is None else tuple(f for f in then if f.name in meta.write_cols)
    return indexed_columns_then(store.options, store.schema.fields, stored)


def _stored(store: FileStore, bucket: BucketRef, meta: DataFileMeta) -> set[tuple[str, str]]:
    """Return the column and kind of each index that a file has; none if they cannot be read."""
    try:
        _, sizes = index_sizes(store, store.file_path(bucket, meta), meta)
    except CorruptedError:
        return set()
    return {(item, kind) for item, kinds in sizes.items() for kind in kinds}
