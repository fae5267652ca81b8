"""The system table ``file_indexes``: the indexes of data files, embedded in metadata or in separate index files."""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from paimon_core.datafile.indexes import index_names, index_sizes
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.system_tables.file_tables import Locations, files_of
from paimon_core.inspect.system_tables.kind import (
    SOME_INT,
    SOME_LONG,
    SOME_TEXT,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.entry_list import EntryList
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import BOOLEAN, STRING, with_nullable

_FILE_INDEXES = columns(
    ("partition", STRING),
    ("bucket", SOME_INT),
    ("file_path", SOME_TEXT),
    ("file_size_in_bytes", SOME_LONG),
    ("record_count", SOME_LONG),
    ("schema_id", SOME_LONG),
    ("column_name", SOME_TEXT),
    ("index_type", SOME_TEXT),
    ("storage_type", SOME_TEXT),
    ("index_file_path", STRING),
    ("index_size_in_bytes", SOME_LONG),
    ("index_container_size_in_bytes", SOME_LONG),
    ("is_empty", with_nullable(BOOLEAN, False)),
)
_Index = tuple[ManifestEntry, str, str, int, int]
"""A file, the column and kind of one of its indexes, and the sizes in bytes of the index and its container."""


def _read(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each index of each live file outside postponed buckets, reading only the index headers."""
    store, locations = request.store, Locations(request.store)
    for entries in files_of(request):
        indexed = [e for e in entries if e.bucket >= 0 and (e.file.embedded_index is not None or index_names(e.file))]
        indexes = [index for of_file in parallel_map(partial(_indexes, store), indexed) for index in of_file]
        of_indexes = [index[0] for index in indexes]
        files, paths = [entry.file for entry in of_indexes], locations.paths(EntryList(of_indexes))
        yield batch_of(
            _FILE_INDEXES,
            request.columns,
            {
                "partition": locations.partitions(EntryList(of_indexes)),
                "bucket": [entry.bucket for entry in of_indexes],
                "file_path": paths,
                "file_size_in_bytes": [file.file_size for file in files],
                "record_count": [file.row_count for file in files],
                "schema_id": [file.schema_id for file in files],
                "column_name": [column for _, column, _, _, _ in indexes],
                "index_type": [kind for _, _, kind, _, _ in indexes],
                "storage_type": ["FILE" if file.embedded_index is None else "EMBEDDED" for file in files],
                "index_file_path": list(map(_index_path, files, paths)),
                "index_size_in_bytes": [size for _, _, _, size, _ in indexes],
                "index_container_size_in_bytes": [container for *_, container in indexes],
                "is_empty": [not size for _, _, _, size, _ in indexes],
            },
        )


def _indexes(store: FileStore, entry: ManifestEntry) -> list[_Index]:
    container, sizes = index_sizes(store, store.file_path(entry.bucket_ref, entry.file), entry.file)
    return [(entry, column, kind, sizes[column][kind], container) for column in sizes for kind in sizes[column]]


def _index_path(file: DataFileMeta, path: str) -> str | None:
    """Return the path of the index file of the file at `path`; `None` if the index is embedded in the metadata."""
    if file.embedded_index is not None:
        return None
    return join(path.rpartition("/")[0], index_names(file)[0])


FILE_INDEXES = SystemTableKind("file_indexes", Fixed(_FILE_INDEXES), _read, travels=True)
