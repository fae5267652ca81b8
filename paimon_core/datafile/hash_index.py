"""Hash index files: the hashes of all keys of one dynamic bucket (format 8.2).

A file consists of big-endian 32-bit numbers in any order, one per hash; its index entry records how many.
"""

import numpy as np

from paimon_core.errors import CorruptedError
from paimon_core.fileio.fileio import join
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.entry import ADD
from paimon_core.manifest.index_entry import HASH, IndexManifestEntry
from paimon_core.store.file_store import FileStore

_STORED = np.dtype(">i4")


def read_hashes(store: FileStore, entry: IndexManifestEntry) -> np.ndarray:
    """Read the hashes (int32, in any order). Raises CorruptedError naming the file if hashes are missing."""
    path = store.index_path(entry)
    try:
        data = store.io.read(path)
    except FileNotFoundError as missing:
        raise CorruptedError(
            f"hash index {path} is missing: its snapshot has expired, or the file was deleted"
        ) from missing
    if len(data) != entry.row_count * _STORED.itemsize:
        raise CorruptedError(
            f"hash index {path} has {len(data)} bytes, but its entry has {entry.row_count} hashes of 4 bytes"
        )
    return np.frombuffer(data, _STORED).astype(np.int32)


def write_hashes(store: FileStore, bucket: BucketRef, hashes: np.ndarray, kind: str = HASH) -> IndexManifestEntry:
    """Write a new index file with these hashes (int32, each once); it is not yet in a snapshot."""
    name = f"index-{store.new_name()}-0"
    data = hashes.astype(_STORED).tobytes()
    entry = IndexManifestEntry(ADD, *bucket, kind, name, len(data), len(hashes))
    store.io.write(join(store.index_directory(bucket), name), data)
    return entry
