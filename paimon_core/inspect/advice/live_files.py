"""The live files of a snapshot as columns of numbers, read once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.datafile.indexes import index_names
from paimon_core.fileindex.indexed_columns import indexed_columns_then
from paimon_core.lsm.intervals import ranks
from paimon_core.lsm.row_ranges import is_blob
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.options.file_index import indexed
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_in_parts
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.types.selection import Mask, Positions

UNKNOWN = -1
_SIZES = ("level", "rows", "size", "sequence", "created")
_NUMBERS = ("bucket", "total", *_SIZES, "deletes", "deleted", "first_row", "blob")
_FLAGS = ("compacted", "lacks_index")


@dataclass(frozen=True, slots=True)
class Files:
    """One position for each live file. ``bucket`` numbers ``buckets``, which are sorted by partition and number.

    ``total``: the writer's number of buckets; ``created``: local wall clock (ms); ``deletes``: rows of kind -D and -U;
    ``deleted``: rows in the deletion vector; ``low`` and ``high``: ranks of the smallest and largest key among the keys
    of all files, 0 without a primary key; ``lacks_index``: the options require an index, and the file has no index;
    ``first_row``: id of the first row; ``blob``: 0 for a data file, else a number for the column and schema of a blob
    file (only with ``data-evolution.enabled``). -1: unknown. Files of postponed buckets, which reads do not show,
    are only counted.
    """

    buckets: tuple[BucketRef, ...]
    bucket: Positions
    total: Positions
    level: Positions
    rows: Positions
    size: Positions
    sequence: Positions
    created: Positions
    deletes: Positions
    deleted: Positions
    first_row: Positions
    blob: Positions
    low: Positions
    high: Positions
    compacted: Mask
    lacks_index: Mask
    postponed_files: int
    postponed_rows: int
    postponed_bytes: int
    names: frozenset[str]
    """The names of all files, also of postponed buckets."""

    def __len__(self) -> int:
        return len(self.bucket)


def read_files(store: FileStore, snapshot: Snapshot | None) -> Files:
    """Return the live files of a snapshot; no files if the snapshot is `None`.

    Memory: about 200 bytes and two keys for each file, and the entries of one manifest.
    """
    deleted = _deleted_rows(store, snapshot)
    lacks_index = _lacking(store)
    numbers: list[np.ndarray] = [np.zeros((len(_NUMBERS), 0), np.int64)]
    flags: list[np.ndarray] = [np.zeros((len(_FLAGS), 0), np.bool_)]
    low: list[bytes] = []
    high: list[bytes] = []
    bucket_numbers: dict[BucketRef, int] = {}
    blob_kind = _blob_kinds(store)
    postponed: list[DataFileMeta] = []
    names: set[str] = set()
    if snapshot is not None:
        for entries in live_in_parts(store, snapshot, with_stats=False):
            names.update(entry.file.file_name for entry in entries)
            postponed += [entry.file for entry in entries if entry.bucket == POSTPONE_BUCKET]
            entries = [entry for entry in entries if entry.bucket != POSTPONE_BUCKET]
            files = [entry.file for entry in entries]
            numbers.append(_numbers(entries, bucket_numbers, deleted, blob_kind))
            sources = [file.file_source == FileSource.COMPACT for file in files]
            flags.append(np.array([sources, [lacks_index(file) for file in files]], np.bool_))
            if store.traits.keyed:
                low += [file.min_key for file in files]
                high += [file.max_key for file in files]
    columns = dict(zip(_NUMBERS, np.concatenate(numbers, axis=1), strict=True))
    marks = dict(zip(_FLAGS, np.concatenate(flags, axis=1), strict=True))
    order, buckets = _ordered(store, list(bucket_numbers))
    columns["bucket"] = order[columns["bucket"]]
    ranked = _ranks(store, low, high, len(columns["bucket"]))
    return Files(
        buckets,
        low=ranked[0],
        high=ranked[1],
        **columns,
        **marks,
        postponed_files=len(postponed),
        postponed_rows=sum(file.row_count for file in postponed),
        postponed_bytes=sum(file.file_size for file in postponed),
        names=frozenset(names),
    )


def _numbers(
    entries: Sequence[ManifestEntry],
    bucket_numbers: dict[BucketRef, int],
    deleted: Mapping[str, int],
    blob_kind: Callable[[DataFileMeta], int],
) -> np.ndarray:
    """Return the columns `_NUMBERS`; new buckets are added to ``known``."""
    files = [entry.file for entry in entries]
    columns = (
        [bucket_numbers.setdefault(entry.bucket_ref, len(bucket_numbers)) for entry in entries],
        [entry.total_buckets for entry in entries],
        [file.level for file in files],
        [file.row_count for file in files],
        [file.file_size for file in files],
        [file.min_sequence_number for file in files],
        [UNKNOWN if file.creation_time is None else file.creation_time for file in files],
        [UNKNOWN if file.delete_row_count is None else file.delete_row_count for file in files],
        [min(deleted.get(file.file_name, 0), file.row_count) for file in files],
        [UNKNOWN if file.first_row_id is None else file.first_row_id for file in files],
        [blob_kind(file) for file in files],
    )
    return np.array(columns, np.int64)


def _blob_kinds(store: FileStore) -> Callable[[DataFileMeta], int]:
    """Return a function that maps a file to the number of its kind of blobs; 0: a data file."""
    kinds: dict[tuple[tuple[str, ...] | None, int], int] = {}

    def kind(file: DataFileMeta) -> int:
        return 1 + kinds.setdefault((file.write_cols, file.schema_id), len(kinds)) if is_blob(file) else 0

    return kind if store.traits.data_evolution else lambda file: 0


def _deleted_rows(store: FileStore, snapshot: Snapshot | None) -> dict[str, int]:
    """Return the number of deleted rows by file name; an unknown number becomes `1 << 62`."""
    ranges = (r for entry in vector_entries(store, snapshot) for r in entry.deletion_ranges or ())
    return {r.data_file: 1 << 62 if r.cardinality is None else r.cardinality for r in ranges}


def _lacking(store: FileStore) -> Callable[[DataFileMeta], bool]:
    """Return a predicate: True for a file without an index although the options require one for its columns."""

    @lru_cache
    def needs_index(schema_id: int) -> bool:
        stored_fields = store.schemas.get(schema_id).fields
        return bool(indexed_columns_then(store.options, store.schema.fields, stored_fields))

    indexed_table = any(indexed(store.options)) and not store.traits.data_evolution
    keyed = store.traits.keyed

    def lacks(file: DataFileMeta) -> bool:
        if not indexed_table or file.embedded_index is not None or index_names(file):
            return False
        return not (keyed and not file.level) and needs_index(file.schema_id)

    return lacks


def _ordered(store: FileStore, buckets: Sequence[BucketRef]) -> tuple[Positions, tuple[BucketRef, ...]]:
    """Sort buckets by partition and number; return each bucket's position in this order, and the sorted buckets."""
    if not buckets:
        return np.zeros(0, np.int64), ()
    numbers = np.array([bucket.bucket for bucket in buckets], np.int64)
    partitions = np.zeros(len(buckets), np.int64)
    if store.schema.partition_keys:
        distinct = list(dict.fromkeys(bucket.partition for bucket in buckets))
        ranked = dict(zip(distinct, ranks(decode_rows(distinct, store.schema.partition_arrow)).tolist(), strict=True))
        partitions = np.array([ranked[bucket.partition] for bucket in buckets], np.int64)
    sequence = np.lexsort((numbers, partitions))
    position = np.empty(len(buckets), np.int64)
    position[sequence] = np.arange(len(buckets))
    return position, tuple(buckets[i] for i in sequence.tolist())


def _ranks(store: FileStore, low: list[bytes], high: list[bytes], count: int) -> tuple[Positions, Positions]:
    if not low:
        return np.zeros(count, np.int64), np.zeros(count, np.int64)
    ranked = ranks(decode_rows(low + high, store.schema.key_arrow))
    return ranked[:count], ranked[count:]
