"""The live files of a snapshot, pruned by partition and bucket while they are read."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.entry import ADD, DELETE, Identity, ManifestEntry, merge_entries
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.prune import prune_manifests
from paimon_core.options.scan import SCAN_MANIFEST_PARALLELISM
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import And, Predicate, disjunction, is_value
from paimon_core.row.binary_row import decode_rows
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

MAX_PARTITIONS = 256  # partitions named in one predicate; for more, all partitions are read
_READ_AHEAD = 4  # manifests that are loaded in parallel while they are decoded one by one


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

    manifests = store.manifests
    only = None if buckets is None else BucketFilter.for_buckets(buckets)

    def read(meta: ManifestFileMeta) -> list[ManifestEntry]:
        entries = manifests.read(meta.file_name, meta.file_size, with_stats=with_stats, only=only)
        if test is not None:
            matching = test.matching({e.partition for e in entries})
            entries = [e for e in entries if e.partition in matching]
        return entries

    threads = store.options.value(SCAN_MANIFEST_PARALLELISM)
    changes = [entry for entries in parallel_map(read, chosen, threads) for entry in entries]
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
    manifests, fields = store.manifests, store.schema.partition_fields
    metas = prune_manifests(manifest_metas(store, snapshot), partition, fields, buckets=buckets, levels=levels)
    test = PartitionFilter(partition, store.schema.partition_arrow) if partition is not None else None
    deleted = _last_deletes(store, metas)

    def load(meta: ManifestFileMeta) -> tuple[ManifestFileMeta, bytes]:
        return meta, manifests.load(meta.file_name, meta.file_size)

    threads = store.options.value(SCAN_MANIFEST_PARALLELISM) or _READ_AHEAD
    for at, (meta, data) in enumerate(parallel_map(load, metas, threads)):
        first = 0
        for entries in manifests.decode_batches(meta, data, with_stats=with_stats):
            live = [e for e in entries if e.kind == ADD]
            if deleted:
                numbered = enumerate(entries, first)
                live = [e for n, e in numbered if e.kind == ADD and deleted.get(e.identity, (-1, -1)) < (at, n)]
            first += len(entries)
            if buckets is not None:
                live = [e for e in live if e.bucket in buckets]
            if levels is not None:
                live = [e for e in live if e.file.level in levels]
            if test is not None:
                matching = test.matching({e.partition for e in live})
                live = [e for e in live if e.partition in matching]
            yield live


def _last_deletes(store: FileStore, metas: Sequence[ManifestFileMeta]) -> dict[Identity, tuple[int, int]]:
    """Return, for each deleted file, the index of the manifest and the position in it of the file's last DELETE."""
    deletes: dict[Identity, tuple[int, int]] = {}
    for at, meta in enumerate(metas):
        if meta.num_deleted_files:
            entries = store.manifests.read(meta.file_name, meta.file_size, with_stats=False)
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
    return disjunction([_is_partition(keys, store.partition_values(p)) for p in partitions])


def _is_partition(keys: Sequence[str], values: Sequence[object]) -> Predicate:
    tests = [is_value(k, v) for k, v in zip(keys, values, strict=True)]
    return And(tuple(tests)) if len(tests) > 1 else tests[0]


class PartitionFilter:
    """A partition predicate that is evaluated once for each distinct partition."""

    def __init__(self, predicate: Predicate, schema: pa.Schema) -> None:
        self._predicate, self._schema = predicate, schema
        self._matches: dict[bytes, bool] = {}

    def matching(self, partitions: Collection[bytes]) -> set[bytes]:
        """Return the partitions (serialised BinaryRows) that match."""
        new = [p for p in partitions if p not in self._matches]
        if new:
            result = evaluate(self._predicate, decode_rows(new, self._schema))
            self._matches.update(zip(new, result.to_numpy(zero_copy_only=False).tolist(), strict=True))
        return {p for p in partitions if self._matches[p]}
