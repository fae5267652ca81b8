"""The live files of a snapshot, pruned by partition and bucket while they are read."""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_core.fileio.parallel import default_threads, parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.bucket_filter import BucketFilter, EntryFilter
from paimon_core.manifest.entry import ADD, DELETE, Identity, ManifestEntry, merge_entries
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.prune import prune_manifests
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.options.scan import SCAN_MANIFEST_PARALLELISM
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import And, Predicate, disjunction, is_value
from paimon_core.predicate.rewrite import pinned_values
from paimon_core.row.binary_row import decode_rows, serialize
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.small_arrays import mask_of

MAX_PARTITIONS = 256  # partitions named in one predicate; for more, all partitions are read
_FEW_ENTRIES = 2_000  # a manifest with at most this number of entries is decoded as a whole, and cached
_MAX_PINNED = 16  # partitions whose bytes are searched in a manifest
_READ_AHEAD = 4  # least number of threads that load manifests while they are decoded one by one
_READ_AHEAD_BYTES = 32 << 20  # bytes of manifests above which threads do not become more


@dataclass(frozen=True, slots=True)
class Entries:
    """Live entries, and the number of manifests that were listed and read to find them.

    ``files``: number of live files of the whole snapshot, from the counts in its manifest lists.
    """

    live: list[ManifestEntry]
    manifests: int
    manifests_read: int
    files: int


def manifest_metas(store: FileStore, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """Return all manifests of a snapshot, oldest first."""
    lists = (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    )
    return [meta for name, size in lists for meta in store.manifests.read_list(name, size)]


def live_entries(
    store: FileStore,
    snapshot: Snapshot,
    *,
    partition: Predicate | None = None,
    buckets: Collection[BucketRef] | None = None,
    with_stats: bool = True,
) -> Entries:
    """Return the live files of a snapshot.

    Filters never bring back a deleted file: the entries that add and delete a file have the same partition and bucket.

    Args:
        store: the table.
        snapshot: the snapshot to read.
        partition: selects files by partition; bound to the table's schema. `None`: all partitions.
        buckets: selects the files of these buckets. `None`: all buckets.
        with_stats: decode the statistics of the files.
    """
    if partition is None and buckets is not None:
        partition = partitions_predicate(store, {bucket.partition for bucket in buckets})
    metas = manifest_metas(store, snapshot)
    fields = store.schema.partition_fields
    chosen = prune_manifests(metas, partition, fields, buckets=None if buckets is None else {b.bucket for b in buckets})
    test = PartitionFilter(partition, store.schema.partition_arrow) if partition is not None else None

    only = test if buckets is None else BucketFilter.for_buckets(buckets)

    def decode(meta: ManifestFileMeta, data: bytes) -> list[ManifestEntry]:
        few = buckets is None and meta.num_added_files + meta.num_deleted_files <= _FEW_ENTRIES
        entries = store.manifests.decode(meta.file_name, data, with_stats=with_stats, only=None if few else only)
        if test is not None:
            matching = test.matching({e.partition for e in entries})
            entries = [e for e in entries if e.partition in matching]
        return entries

    # Threads only load: decoding holds the interpreter's lock, and several decoders at once need more memory.
    changes = [entry for meta, data in _loaded(store, chosen) for entry in decode(meta, data)]
    files = sum(meta.num_added_files - meta.num_deleted_files for meta in metas)
    return Entries([e for e in merge_entries(changes) if e.kind == ADD], len(metas), len(chosen), files)


def live_in_parts(
    store: FileStore,
    snapshot: Snapshot,
    *,
    partition: Predicate | None = None,
    buckets: Collection[int] | None = None,
    levels: Collection[int] | None = None,
    with_stats: bool = True,
) -> Iterator[list[ManifestEntry]]:
    """Yield the live files of a snapshot, a few thousand at a time.

    Memory: these entries, the bytes of a few manifests, and a name for each deleted file. Manifests with deleted files
    are read twice. Arguments as in `live_entries`, except ``buckets`` and ``levels``, which are numbers; `None`: all.
    """
    for batch in _live(store, snapshot, None, partition, buckets, levels, with_stats):
        assert not isinstance(batch, EntryColumns)
        yield batch


def live_columns_in_parts(
    store: FileStore,
    snapshot: Snapshot,
    attributes: Collection[str],
    *,
    partition: Predicate | None = None,
    buckets: Collection[int] | None = None,
    levels: Collection[int] | None = None,
) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the same files as `live_in_parts`, as columns where that is possible.

    Args:
        store: the table.
        snapshot: the snapshot to read.
        attributes: the attributes of files that columns must have; ``value_stats`` for statistics.
        partition: selects files by partition; bound to the table's schema. `None`: all partitions.
        buckets: bucket numbers; `None`: all.
        levels: levels of files; `None`: all.
    """
    attributes = {*attributes, "level"}
    return _live(store, snapshot, attributes, partition, buckets, levels, "value_stats" in attributes)


def live_partitions(store: FileStore, snapshot: Snapshot) -> set[bytes]:
    """Return the serialised partitions that have live files. Memory: the partitions, and the files of one part."""
    partitions: set[bytes] = set()
    for part in live_columns_in_parts(store, snapshot, ()):
        partitions.update([entry.partition for entry in part] if isinstance(part, list) else part.partitions())
    return partitions


def _live(
    store: FileStore,
    snapshot: Snapshot,
    attributes: Collection[str] | None,
    partition: Predicate | None,
    buckets: Collection[int] | None,
    levels: Collection[int] | None,
    with_stats: bool,
) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the live files; see `live_in_parts`. ``attributes``: `None`: entries only."""
    manifests, fields = store.manifests, store.schema.partition_fields
    metas = prune_manifests(manifest_metas(store, snapshot), partition, fields, buckets=buckets, levels=levels)
    test = PartitionFilter(partition, store.schema.partition_arrow) if partition is not None else None
    deleted = _last_deletes(store, metas, test)
    deleted_names = {file_name for _, _, _, file_name, *_ in deleted}

    for at, (meta, data) in enumerate(_loaded(store, metas)):
        if attributes is None:
            batches: Iterator[Any] = manifests.decode_batches(meta, data, with_stats=with_stats, only=test)
        else:
            batches = manifests.decode_column_batches(
                meta, data, attributes, with_stats=with_stats, only=test, without=deleted_names
            )
        first = 0
        for batch in batches:
            if isinstance(batch, EntryColumns):
                first += len(batch)
                batch.take(_matching(batch, buckets, levels))
                yield batch
                continue
            live = [e for e in batch if e.kind == ADD]
            if deleted:
                numbered = enumerate(batch, first)
                live = [e for n, e in numbered if e.kind == ADD and deleted.get(e.identity, (-1, -1)) < (at, n)]
            first += len(batch)
            if buckets is not None:
                live = [e for e in live if e.bucket in buckets]
            if levels is not None:
                live = [e for e in live if e.file.level in levels]
            yield live


def _matching(columns: EntryColumns, buckets: Collection[int] | None, levels: Collection[int] | None) -> np.ndarray:
    """Return the positions of the entries with one of the buckets and one of the levels; `None`: all."""
    chosen = np.ones(len(columns), bool)
    if buckets is not None:
        chosen &= np.isin(columns.buckets(), list(buckets))
    if levels is not None:
        chosen &= np.isin(columns.values("level"), list(levels))
    return np.flatnonzero(chosen)


def _loaded(store: FileStore, metas: Sequence[ManifestFileMeta]) -> Iterator[tuple[ManifestFileMeta, bytes]]:
    """Yield the manifests with their bytes, which threads load ahead: few large manifests, or many small ones."""
    threads = store.options.value(SCAN_MANIFEST_PARALLELISM)
    if threads is None:
        largest = max((meta.file_size for meta in metas), default=0)
        threads = max(_READ_AHEAD, min(default_threads(), _READ_AHEAD_BYTES // max(1, largest)))

    def load(meta: ManifestFileMeta) -> tuple[ManifestFileMeta, bytes]:
        return meta, store.manifests.load(meta.file_name, meta.file_size)

    return parallel_map(load, metas, threads)


def _last_deletes(
    store: FileStore, metas: Sequence[ManifestFileMeta], only: EntryFilter | None
) -> dict[Identity, tuple[int, int]]:
    """Return, for each deleted file, the index of the manifest and the position in it of the file's last DELETE.

    Positions count the entries that ``only`` accepts; `None`: all entries.
    """
    deletes: dict[Identity, tuple[int, int]] = {}
    for at, meta in enumerate(metas):
        if meta.num_deleted_files:
            entries = store.manifests.read(meta.file_name, meta.file_size, with_stats=False, only=only)
            deletes.update({e.identity: (at, position) for position, e in enumerate(entries) if e.kind == DELETE})
    return deletes


def partitions_predicate(
    store: FileStore, partitions: Collection[bytes], *, most: int = MAX_PARTITIONS
) -> Predicate | None:
    """Return a bound predicate that is true in these partitions only.

    `None`: the table has no partition columns, or there are more than `most` partitions.
    """
    keys = store.schema.partition_keys
    if not keys or len(partitions) > most:
        return None
    return disjunction([is_partition(keys, store.partition_values(p)) for p in partitions])


def is_partition(keys: Sequence[str], values: Sequence[object]) -> Predicate:
    """Return a predicate that is true in the partition with these values only."""
    tests = [is_value(k, v) for k, v in zip(keys, values, strict=True)]
    return And(tuple(tests)) if len(tests) > 1 else tests[0]


class PartitionFilter:
    """A partition predicate that is evaluated once for each distinct partition; an `EntryFilter`. Thread-safe."""

    def __init__(self, predicate: Predicate, schema: pa.Schema) -> None:
        self._predicate, self._schema = predicate, schema
        self._matches: dict[bytes, bool] = {}

    def matching(self, partitions: Collection[bytes]) -> set[bytes]:
        """Return the partitions (serialised BinaryRows) that match."""
        new = [p for p in partitions if p not in self._matches]
        if new:
            result = evaluate(self._predicate, decode_rows(new, self._schema))
            self._matches.update(zip(new, mask_of(result).tolist(), strict=True))
        return {p for p in partitions if self._matches[p]}

    def accepted(self, buckets: Collection[BucketRef]) -> set[BucketRef]:
        """Return the buckets of matching partitions."""
        matching = self.matching({partition for partition, _ in buckets})
        return {bucket for bucket in buckets if bucket[0] in matching}

    def byte_patterns(self, schema: Any) -> list[bytes] | None:
        """Return byte strings; each encoded entry of a matching partition contains one of them.

        ``schema``: the Avro schema of the entries. `None`: the predicate does not pin every partition column to a few
        values, or equal values of a column can have different bytes.
        """
        return None if self._pinned is None else BucketFilter(self._pinned).byte_patterns(schema)

    @cached_property
    def _pinned(self) -> frozenset[bytes] | None:
        if not all(map(has_one_encoding, self._schema.types)):
            return None
        pinned = pinned_values(self._predicate, self._schema.names)
        if pinned is None or math.prod(map(len, pinned.values())) > _MAX_PINNED:
            return None
        rows = itertools.product(*(pinned[name] for name in self._schema.names))
        return frozenset(serialize(row, self._schema) for row in rows)


def has_one_encoding(kind: pa.DataType) -> bool:
    """Return True if equal values of a partition column have equal bytes, whichever engine wrote them."""
    return bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_string(kind))
