"""The live files of a snapshot as columns of numbers, read once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.datafile.indexes import index_names
from paimon_core.fileindex.indexed_columns import indexed_columns_then
from paimon_core.lsm.intervals import ranks
from paimon_core.lsm.row_ranges import is_blob
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.entry_list import EntryList
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.options.file_index import indexed
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_columns_in_parts, live_in_parts
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.types.selection import Mask, Positions

UNKNOWN = -1
_ATTRIBUTES = {
    "level": "level",
    "rows": "row_count",
    "size": "file_size",
    "sequence": "min_sequence_number",
    "created": "creation_time",
    "deletes": "delete_row_count",
    "first_row": "first_row_id",
}
"""The columns of `Files` that are attributes of files."""
_NUMBERS = ("bucket", "total", *_ATTRIBUTES, "deleted", "blob")
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

    Memory: about 200 bytes and two keys for each file, and the files of one part of a manifest.
    """
    deleted = _deleted_rows(store, snapshot)
    lacks_index, blob_kind = _lacking(store), _blob_kinds(store)
    numbers: list[np.ndarray] = [np.zeros((len(_NUMBERS), 0), np.int64)]
    flags: list[np.ndarray] = [np.zeros((len(_FLAGS), 0), np.bool_)]
    low: list[bytes] = []
    high: list[bytes] = []
    bucket_numbers: dict[tuple[bytes, int], int] = {}
    postponed = np.zeros((2, 0), np.int64)
    names: set[str] = set()
    for part in _parts(store, snapshot, entries=lacks_index is not None or blob_kind is not None):
        names.update(EntryList(part).values("file_name") if isinstance(part, list) else part.values("file_name"))
        files, waiting = _divided(part)
        postponed = np.concatenate([postponed, waiting], axis=1)
        numbers.append(_numbers(files, bucket_numbers, deleted, blob_kind))
        sources = [source == FileSource.COMPACT for source in files.values("file_source")]
        lacking = [] if lacks_index is None else [lacks_index(file) for file in _metas(files)]
        flags.append(np.array([sources, lacking or [False] * len(files)], np.bool_))
        if store.traits.keyed:
            low += files.values("min_key")
            high += files.values("max_key")
    columns = dict(zip(_NUMBERS, np.concatenate(numbers, axis=1), strict=True))
    marks = dict(zip(_FLAGS, np.concatenate(flags, axis=1), strict=True))
    order, buckets = _ordered(store, [BucketRef(*bucket) for bucket in bucket_numbers])
    columns["bucket"] = order[columns["bucket"]]
    ranked = _ranks(store, low, high, len(columns["bucket"]))
    return Files(
        buckets,
        low=ranked[0],
        high=ranked[1],
        **columns,
        **marks,
        postponed_files=postponed.shape[1],
        postponed_rows=int(postponed[0].sum()),
        postponed_bytes=int(postponed[1].sum()),
        names=frozenset(names),
    )


def _parts(
    store: FileStore, snapshot: Snapshot | None, *, entries: bool
) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the live files, as columns where that is possible. `entries`: True if the metadata of files is needed."""
    if snapshot is None:
        return iter(())
    if entries:
        return live_in_parts(store, snapshot, with_stats=False)
    keys = ("min_key", "max_key") if store.traits.keyed else ()
    return live_columns_in_parts(store, snapshot, (*_ATTRIBUTES.values(), "file_source", *keys))


def _divided(part: EntryColumns | list[ManifestEntry]) -> tuple[EntryColumns | EntryList, np.ndarray]:
    """Return the files outside postponed buckets, and the rows and bytes of the other files."""
    files = EntryList(part) if isinstance(part, list) else part
    waits = np.asarray(files.buckets(), np.int64) == POSTPONE_BUCKET
    if not waits.any():
        return files, np.zeros((2, 0), np.int64)
    sizes = [np.asarray(files.values(name), np.int64)[waits] for name in ("row_count", "file_size")]
    if isinstance(files, EntryList):
        files = EntryList(list(compress(files.entries, ~waits)))
    else:
        files.take(np.flatnonzero(~waits))
    return files, np.stack(sizes)


def _metas(files: EntryColumns | EntryList) -> list[DataFileMeta]:
    assert isinstance(files, EntryList)
    return [entry.file for entry in files.entries]


def _numbers(
    files: EntryColumns | EntryList,
    bucket_numbers: dict[tuple[bytes, int], int],
    deleted: Mapping[str, int],
    blob_kind: Callable[[DataFileMeta], int] | None,
) -> np.ndarray:
    """Return the columns `_NUMBERS`; new buckets are added to ``bucket_numbers``."""
    columns = {name: _known(files.values(attribute)) for name, attribute in _ATTRIBUTES.items()}
    places = zip(files.partitions(), np.asarray(files.buckets(), np.int64).tolist(), strict=True)
    columns["bucket"] = np.array([bucket_numbers.setdefault(at, len(bucket_numbers)) for at in places], np.int64)
    columns["total"] = np.asarray(files.total_buckets(), np.int64)
    none = np.zeros(len(files), np.int64)
    marked = np.array([deleted.get(name, 0) for name in files.values("file_name")], np.int64) if deleted else none
    columns["deleted"] = np.minimum(marked, columns["rows"])
    columns["blob"] = none if blob_kind is None else np.array([blob_kind(file) for file in _metas(files)], np.int64)
    return np.stack([columns[name] for name in _NUMBERS])


def _known(values: Sequence[int | None] | np.ndarray) -> np.ndarray:
    """Return numbers, with `UNKNOWN` for `None`."""
    if isinstance(values, np.ndarray):
        return values.astype(np.int64, copy=False)
    return np.array([UNKNOWN if value is None else value for value in values], np.int64)


def _blob_kinds(store: FileStore) -> Callable[[DataFileMeta], int] | None:
    """Return a function that maps a file to the number of its kind of blobs, 0: a data file; `None`: all are 0."""
    kinds: dict[tuple[tuple[str, ...] | None, int], int] = {}

    def kind(file: DataFileMeta) -> int:
        return 1 + kinds.setdefault((file.write_cols, file.schema_id), len(kinds)) if is_blob(file) else 0

    return kind if store.traits.data_evolution else None


def _deleted_rows(store: FileStore, snapshot: Snapshot | None) -> dict[str, int]:
    """Return the number of deleted rows by file name; an unknown number becomes `1 << 62`."""
    ranges = (r for entry in vector_entries(store, snapshot) for r in entry.deletion_ranges or ())
    return {r.data_file: 1 << 62 if r.cardinality is None else r.cardinality for r in ranges}


def _lacking(store: FileStore) -> Callable[[DataFileMeta], bool] | None:
    """Return a predicate: True for a file without an index although the options require one for its columns.

    `None`: the options require no index.
    """

    @lru_cache
    def needs_index(schema_id: int) -> bool:
        stored_fields = store.schemas.get(schema_id).fields
        return bool(indexed_columns_then(store.options, store.schema.fields, stored_fields))

    indexed_table = any(indexed(store.options)) and not store.traits.data_evolution
    keyed = store.traits.keyed

    def lacks(file: DataFileMeta) -> bool:
        if file.embedded_index is not None or index_names(file):
            return False
        return not (keyed and not file.level) and needs_index(file.schema_id)

    return lacks if indexed_table else None


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
